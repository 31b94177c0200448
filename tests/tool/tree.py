"""The rules that hold for the tree as a whole; each returns one readable line per breach."""

import re
import subprocess

ROOMS = ("model", "kernels", "properties", "shrinkers", "reports", "tests")
ROOT_FILES = {"CMakeLists.txt", "CMakePresets.json", "CHANGELOG.md", "LICENSE", "README.md",
              "kvcheck", "kvcheck.cpp"}
LONGEST = 400
LIMITED = {".h", ".cpp", ".cu", ".cuh", ".py", ".js", ".css"}
TESTED = {".cpp", ".cu", ".py", ".js"}
COMMANDS = ("./kvcheck run", "./kvcheck test")

# An unfinished mark must carry the number of its issue: MARK(#12). Written so that this file
# holds none itself.
MARK = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)[^)]*\)")


def files(root, suffixes=None):
    """The files of the rooms as paths from the root, without what tools leave there."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and (
                    suffixes is None or path.suffix in suffixes):
                yield path.relative_to(root)


def top_level(root):
    """Names on the top level that belong to the project: tracked ones, or else all but build/."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True,
                            check=False) if (root / ".git").exists() else None
    if listed and listed.returncode == 0 and listed.stdout:
        return {line.split("/")[0] for line in listed.stdout.splitlines()}
    return {path.name for path in root.iterdir() if path.name != "build"}


def check_top_level(root):
    """Exactly the six rooms, and beside them only the known files."""
    found = []
    visible = {name for name in top_level(root) if not name.startswith(".")}
    for name in sorted(visible - set(ROOMS) - ROOT_FILES):
        found.append(f"{name} does not belong on the top level")
    for name in sorted((set(ROOMS) | ROOT_FILES) - visible):
        if not (root / name).exists():
            found.append(f"{name} is missing from the top level")
    return found


def check_rooms(root):
    expected = [f"{room}/{name}" for room in ROOMS for name in ("README.md", "CMakeLists.txt")]
    return [f"{name} is missing" for name in expected if not (root / name).is_file()]


def check_lengths(root):
    found = []
    for path in [*files(root, LIMITED), "kvcheck", "kvcheck.cpp"]:
        if not (root / path).is_file():
            continue
        lines = len((root / path).read_text(encoding="utf-8").splitlines())
        if lines > LONGEST:
            found.append(f"{path} has {lines} lines; more than {LONGEST} are two files")
    return found


def check_marks(root):
    found = []
    for path in files(root, LIMITED | {".txt", ".md"}):
        for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
            if MARK.search(line):
                found.append(f"{path}:{number}: an unfinished mark without its issue")
    return found


def tests_of(source):
    """Where the test of a source file may lie: as its mirror image, or flat in its room. The test
    of kernels/cpu/cache.h is cpu/cache_test, cpu_cache_test or cache_test in tests/kernels."""
    room, *folders, name = source.parts
    stem = name.rsplit(".", 1)[0]
    suffixes = (".py", ".cpp") if source.suffix == ".py" else (".cpp", ".py")
    names = ["/".join([*folders, stem]), "_".join([*folders, stem]), stem]
    return [f"tests/{room}/{name}_test{suffix}" for name in names for suffix in suffixes]


def check_mirror(root, elsewhere):
    """Every source file has its test. `elsewhere` maps those that have none of their name to the
    test that covers them, or to the reason why none is needed; an entry that is not needed any
    more is a breach too."""
    # A header and its source are one thing, named by the source.
    units = {source.with_suffix(""): source for source in files(root, {".h", ".cuh"})}
    units |= {source.with_suffix(""): source for source in files(root, TESTED)}
    untested = {source.as_posix(): tests_of(source)[0] for source in units.values()
                if source.parts[0] != "tests"
                and not any((root / test).is_file() for test in tests_of(source))}
    found = [f"{source} has no test; write {test}"
             for source, test in sorted(untested.items()) if source not in elsewhere]
    for source, covered in elsewhere.items():
        if source not in untested:
            found.append(f"{source} needs no entry: it is gone or has a test of its name")
        elif covered.startswith("tests/") and not (root / covered).is_file():
            found.append(f"{source} is said to be covered by {covered}, which is missing")
        elif not covered.startswith("tests/") and len(covered.split()) < 4:
            found.append(f"{source} has neither a test nor a reason")
    return found


def anchor(heading):
    """The address of a heading, as the usual Markdown viewers make it."""
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", ""))
    return words.replace(" ", "-")


def anchors(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {anchor(heading) for heading in re.findall(r"^#+ +(.*)$", text, flags=re.MULTILINE)}


def check_links(root):
    """Links in Markdown files lead to files of the tree and to headings in them."""
    found = []
    for page in [*root.glob("*.md"), *(root / path for path in files(root, {".md"}))]:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in LINK.findall(text):
            if re.match(r"\w+:", target):
                continue
            name, _, heading = target.partition("#")
            goal = page.parent / name if name else page
            if not goal.exists():
                found.append(f"{page.relative_to(root)}: the link {target} leads nowhere")
            elif heading and goal.suffix == ".md" and heading not in anchors(goal):
                found.append(f"{page.relative_to(root)}: no heading makes the link {target} true")
    return found


def check_readme_commands(root):
    page = root / "README.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    return [f"README.md does not show {command}" for command in COMMANDS if command not in text]
