"""The dependency table of the rooms, and a check of a whole tree against it."""

import pathlib
import re

SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".inl", ".inc"}

# Room -> the rooms and single headers that it may see, itself included.
MAY_SEE = {
    "model": {"model"},
    "kernels": {"kernels"},
    "shrinkers": {"shrinkers", "model"},
    "properties": {"properties", "shrinkers", "model", "kernels"},
    "reports": {"reports", "model", "properties/bench_record.h", "properties/run_record.h",
                "properties/verdict.h"},
    "tests": {"model", "kernels", "shrinkers", "properties", "reports", "tests"},
    "kvcheck.cpp": {"model", "kernels", "shrinkers", "properties", "reports"},
}

# Room -> third-party code that its own files may include. `system` is POSIX and the like.
MAY_USE = {
    "model": {"Boost.Multiprecision", "nlohmann", "fmt"},
    "kernels": {"Eigen", "Highway", "oneTBB", "Boost", "Boost.Multiprecision", "nlohmann", "fmt",
                "CUDA", "SIMD", "system"},
    "shrinkers": {"nlohmann", "fmt", "system"},
    "properties": {"RapidCheck", "GoogleTest", "CLI11", "nlohmann", "fmt", "system"},
    "reports": {"kainjow", "nlohmann", "fmt"},
    "kvcheck.cpp": {"CLI11", "nlohmann", "fmt", "system"},
}
MAY_USE["tests"] = set().union(*MAY_USE.values())

THIRD_PARTY = [  # The first match names it.
    (r"boost/multiprecision/", "Boost.Multiprecision"),
    (r"boost/", "Boost"),
    (r"nlohmann/", "nlohmann"),
    (r"fmt/", "fmt"),
    (r"Eigen/|unsupported/Eigen/", "Eigen"),
    (r"hwy/", "Highway"),
    (r"tbb/|oneapi/", "oneTBB"),
    (r"cuda|cooperative_groups|cub/|thrust/|mma\.h|nv/|nvrtc", "CUDA"),
    (r"rapidcheck", "RapidCheck"),
    (r"gtest/|gmock/", "GoogleTest"),
    (r"CLI/", "CLI11"),
    (r"kainjow/", "kainjow"),
    (r"\w*mmintrin\.h|immintrin\.h|cpuid\.h|arm_\w+\.h", "SIMD"),
    (r"[a-z_0-9]+$", "std"),
    (r"[\w/+-]+\.h$", "system"),
]

# CMake target of a room -> the targets of rooms that it may link.
MAY_LINK = {
    "model": set(),
    "kernels": set(),
    "shrinkers": {"model"},
    "properties": {"run_record", "shrinkers", "model", "kernels", "properties"},
    "reports": {"run_record", "model"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def third_party(header):
    """What a header that is none of the tree's belongs to; "unknown" if nothing known matches."""
    return next((name for pattern, name in THIRD_PARTY if re.match(pattern, header)), "unknown")


def room_of(path):
    """The room of a path from the root, or None."""
    first = path.split("/")[0]
    return first if first in MAY_SEE else None


def includes(path):
    """(line number, delimiter, header) of each include directive of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    matches = ((number, INCLUDE.match(line)) for number, line in enumerate(lines, 1))
    return [(number, match[1], match[2]) for number, match in matches if match]


def sources(root):
    """All C++ and CUDA files of the rooms and the front door, as paths from the root."""
    found = [root / "kvcheck.cpp"] if (root / "kvcheck.cpp").is_file() else []
    for room in MAY_SEE:
        found += [path for path in (root / room).rglob("*") if path.suffix in SOURCE_SUFFIXES]
    return sorted(path.relative_to(root).as_posix() for path in found)


def may_see(room, header):
    return header in MAY_SEE[room] or header.split("/")[0] in MAY_SEE[room]


def check_direct(root, source):
    """What the file includes itself."""
    room = room_of(source)
    for number, delimiter, header in includes(root / source):
        place = f"{source}:{number}: "
        if room_of(header):
            if not may_see(room, header):
                yield f"{place}{room} may not see {header}"
            continue
        name = third_party(header)
        if name == "unknown" or (delimiter == '"' and name in ("std", "system")):
            yield f"{place}{header} is neither a path from the root nor known third-party code"
        elif name != "std" and name not in MAY_USE[room]:
            yield f"{place}{room} may not use {name} ({header})"


def check_reached(root, source):
    """What the file sees through the headers that it includes."""
    room = room_of(source)
    seen, waiting = {source}, [(source, source)]
    while waiting:
        path, chain = waiting.pop()
        for _, _, header in includes(root / path):
            if header in seen or not room_of(header) or not (root / header).is_file():
                continue
            seen.add(header)
            if path != source and not may_see(room, header):
                yield f"{source}: {room} sees {header} through {chain}"
            else:
                waiting.append((header, f"{chain} -> {header}"))


def check_links(root):
    """What the rooms' build files link."""
    for room, allowed in MAY_LINK.items():
        path = root / room / "CMakeLists.txt"
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for target in re.findall(r"kvcheck::(\w+)", line.split("#")[0]):
                if target not in allowed and target != room:
                    yield f"{room}/CMakeLists.txt:{number}: {room} may not link kvcheck::{target}"


def violations(root):
    """Every place in the tree under `root` that breaks the table, one readable line each."""
    root = pathlib.Path(root)
    found = []
    for source in sources(root):
        found += check_direct(root, source)
        found += check_reached(root, source)
    return found + list(check_links(root))
