"""What nvcc made of the kernels: registers, shared memory, stack, spills, and which instructions.

    static_gates_test.py KEPT [--cuobjdump CUOBJDUMP] [--write]

KEPT is the folder where the build keeps PTX and cubins of launchers_gpu.cu and what ptxas said of
each kernel (ptxas.log); resources.json says what it may take. Registers and shared memory may not grow, a stack or a spill is never allowed, and
instructions that a kernel is built on have to be there. --write makes resources.json anew.

With cuobjdump and nvdisasm (the Python packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm have
them) the machine code is read, too; without them PTX alone. Without KEPT the exit code is 77.
"""

import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("resources.json")
ARCHITECTURES = ("sm_80", "sm_90")
SKIPPED = 77
RENEW = "tests/kernels/cuda/static_gates_test.py build/release/kernels/cuda/kept --write"

# What is counted: a name, and the PTX and machine instructions that it stands for.
INSTRUCTIONS = {
    "16-byte load": (r"ld\.(?:global\.)?(?:cs\.)?v4\.[bfu]32", r"LDG?\.E\.(?:\w+\.)*128"),
    "cp.async": (r"cp\.async\.c[ag]\.", r"LDGSTS"),
    "ldmatrix": (r"ldmatrix\.", r"LDSM"),
    "mma": (r"mma\.sync\.", r"HMMA"),
}
# Of machine code: what PTX keeps in local memory may end in registers; a stack tells where not.
LOCAL = r"LDL|STL"

# Kernels whose names match have to have these.
NEEDED = [
    (r"append_kernel|move_kernel", {"16-byte load"}),
    (r"^decode_kernel", {"16-byte load", "cp.async"}),
    (r"matrix|prefill", {"cp.async", "ldmatrix", "mma"}),
]


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{result.stderr[-2000:]}")
    return result.stdout + result.stderr


def short_names(mangled):
    """Each name as a reader knows it: append_kernel<F16>."""
    plain = run("c++filt", *mangled).splitlines() if mangled else []
    names = {}
    for name, text in zip(mangled, plain):
        text = re.sub(r"^void |\((?:kvcheck|anonymous)[\w: ]*\w*\)::", "", text)
        text = re.sub(r"\(anonymous namespace\)::|\b\w+::", "", text).replace("> >", ">>")
        text = re.sub(r"\(\w*Parameters\)$", "", text)
        text = re.sub(r", \(Fault\)0(?=[,>])|<\(Fault\)0>|(?<=<)\(Fault\)0, ", "", text)
        text = re.sub(r"\((?:int|bool|unsigned int|unsigned)\)", "", text).replace("true", "1")
        names[name] = text.replace("false", "0").replace("signed char", "int8")
    return names


def resources(log):
    """Architecture -> kernel -> what ptxas said that it takes."""
    found = collections.defaultdict(dict)
    for part in log.split("Compiling entry function '")[1:]:
        name, architecture = re.match(r"(\w+)' for '(\w+)'", part).groups()
        number = lambda pattern: int((re.search(pattern, part) or [0, 0])[1])
        found[architecture][name] = {"registers": number(r"Used (\d+) registers"),
                                     "shared": number(r"(\d+) bytes smem"),
                                     "stack": number(r"(\d+) bytes stack frame"),
                                     "spills": number(r"(\d+) bytes spill stores")
                                     + number(r"(\d+) bytes spill loads")}
    return found


def count(text, which):
    counts = {name: len(re.findall(patterns[which], text))
              for name, patterns in INSTRUCTIONS.items()}
    counts["local memory"] = len(re.findall(LOCAL, text)) if which == 1 else 0
    return counts


def ptx_counts(ptx):
    parts = re.split(r"^(?:\.visible )?\.entry (\w+)\(", ptx.read_text(encoding="utf-8"),
                     flags=re.MULTILINE)
    return {name: count(body, 0) for name, body in zip(parts[1::2], parts[2::2])}


def machine_counts(cuobjdump, cubin):
    parts = re.split(r"^\s*Function : (\w+)$", run(cuobjdump, "-sass", cubin), flags=re.MULTILINE)
    return {name: count(body, 1) for name, body in zip(parts[1::2], parts[2::2])}


def measure(kept, cuobjdump):
    """Kernel -> architecture -> what it takes and has."""
    table = collections.defaultdict(dict)
    taken = resources((kept / "ptxas.log").read_text(encoding="utf-8"))
    for architecture in ARCHITECTURES:
        stem = f"{kept}/launchers_gpu.compute_{architecture[3:]}"
        counts = ptx_counts(pathlib.Path(f"{stem}.ptx"))
        if cuobjdump:
            counts = machine_counts(cuobjdump, f"{stem}.cubin")
        names = short_names(list(counts))
        if set(taken[architecture]) != set(counts) or len(set(names.values())) != len(names):
            sys.exit(f"ptxas.log and {stem} are not of one build, or two kernels share a name")
        for name, short in names.items():
            table[short][architecture] = taken[architecture][name] | {"has": counts[name]}
    return table


def breaches(table, allowed, compares):
    """One line for each thing that is not as it should be."""
    found = []
    for name, architectures in sorted(table.items()):
        needed = set().union(*(has for pattern, has in NEEDED if re.search(pattern, name)))
        for architecture, is_ in architectures.items():
            place = f"{name} on {architecture}: "
            if is_["stack"] or is_["spills"] or is_["has"]["local memory"]:
                found.append(f"{place}{is_['stack']} bytes of stack, {is_['spills']} of spills, "
                             f"{is_['has']['local memory']} local loads and stores")
            found += [f"{place}no {what}" for what in sorted(needed) if not is_["has"][what]]
            may = allowed.get(name, {}).get(architecture)
            if may is None:
                found.append(f"{place}not in {TABLE.name}; {RENEW}")
            elif compares:
                found += [f"{place}{is_[what]} {what}, not {may[what]} as {TABLE.name} has it"
                          for what in ("registers", "shared") if is_[what] > may[what]]
    found += [f"{name}: in {TABLE.name}, but not built" for name in sorted(set(allowed) - set(table))]
    return found


def show(table, source):
    has = [*INSTRUCTIONS]
    print(f"{'kernel':<58} {'':<6} registers shared  " + "  ".join(has) + f"   ({source})")
    for name, architectures in sorted(table.items()):
        for architecture, is_ in architectures.items():
            counts = "  ".join(f"{is_['has'][what]:>{len(what)}}" for what in has)
            print(f"{name:<58} {architecture:<6} {is_['registers']:>9} {is_['shared']:>6}  {counts}")


def write(table, version):
    kernels = {name: {architecture: {what: is_[what] for what in ("registers", "shared")}
                      for architecture, is_ in architectures.items()}
               for name, architectures in sorted(table.items())}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(of)}" for name, of in kernels.items())
    TABLE.write_text(f'{{"nvcc": {json.dumps(version)}, "kernels": {{\n{lines}\n}}}}\n',
                     encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kept", type=pathlib.Path)
    parser.add_argument("--cuobjdump", default=shutil.which("cuobjdump"))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if not (options.kept / "ptxas.log").is_file():
        print(f"skipped: no CUDA compiler left {options.kept}/ptxas.log")
        return SKIPPED
    ptx = (options.kept / "launchers_gpu.compute_80.ptx").read_text(encoding="utf-8")
    version = re.search(r"Cuda compilation tools, release [\d.]+, V([\d.]+)", ptx)[1]
    table = measure(options.kept, options.cuobjdump)
    show(table, "machine code" if options.cuobjdump else "PTX; no cuobjdump for the machine code")
    if options.write:
        write(table, version)
    allowed = json.loads(TABLE.read_text(encoding="utf-8"))
    compares = allowed["nvcc"] == version
    if not compares:
        print(f"nvcc {version}: {TABLE.name} is of {allowed['ptxas']}, so registers are not compared")
    found = breaches(table, allowed["kernels"], compares)
    print("\n".join(found) or f"{len(table)} kernels, no stack, no spills, none grown")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
