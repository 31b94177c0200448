"""What nvcc made of the kernels: registers, shared memory, stack, spills, and which instructions.

    static_gates_test.py KEPT [--nvcc NVCC] [--cuobjdump CUOBJDUMP] [--write]

KEPT is the folder where the build keeps PTX and cubins of launchers_gpu.cu. ptxas, which lies
beside nvcc, compiles the PTX once more and says what each kernel takes; resources.json says what it
may take. Registers and shared memory may not grow, a stack or a spill is never allowed, and
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
import tempfile

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
    (r"^decode_kernel", {"cp.async"}),
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
        text = text.replace("(anonymous namespace)::", "").replace("kvcheck::kernels::device::", "")
        text = re.sub(r"\(\w*Parameters\)$", "", text)
        text = re.sub(r", \(Fault\)0(?=[,>])|<\(Fault\)0>|(?<=<)\(Fault\)0, ", "", text)
        text = re.sub(r"\((?:int|bool|unsigned int|unsigned)\)", "", text).replace("true", "1")
        names[name] = text.replace("false", "0").replace("signed char", "int8")
    return names


def resources(ptxas, ptx, architecture):
    """Of each kernel in a PTX file: what ptxas says that it takes."""
    with tempfile.TemporaryDirectory() as folder:
        text = run(ptxas, "-v", "-O3", f"-arch={architecture}", ptx, "-o", f"{folder}/out.cubin")
    found = {}
    for part in text.split("Compiling entry function '")[1:]:
        name = part.split("'", 1)[0]
        number = lambda pattern: int((re.search(pattern, part) or [0, 0])[1])
        found[name] = {"registers": number(r"Used (\d+) registers"),
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


def measure(kept, ptxas, cuobjdump):
    """Kernel -> architecture -> what it takes and has."""
    table = collections.defaultdict(dict)
    for architecture in ARCHITECTURES:
        stem = kept / f"launchers_gpu.compute_{architecture[3:]}"
        taken = resources(ptxas, stem.with_suffix(f"{stem.suffix}.ptx"), architecture)
        counts = ptx_counts(stem.with_suffix(f"{stem.suffix}.ptx"))
        if cuobjdump:
            counts = machine_counts(cuobjdump, stem.with_suffix(f"{stem.suffix}.cubin"))
        for name, short in short_names(list(taken)).items():
            if short in table and architecture in table[short]:
                sys.exit(f"two kernels are called {short}")
            table[short][architecture] = taken[name] | {"has": counts[name]}
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
    TABLE.write_text(f'{{"ptxas": {json.dumps(version)}, "kernels": {{\n{lines}\n}}}}\n',
                     encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kept", type=pathlib.Path)
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "nvcc")
    parser.add_argument("--cuobjdump", default=shutil.which("cuobjdump"))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    ptxas = pathlib.Path(options.nvcc).with_name("ptxas")
    if not (options.kept / "launchers_gpu.compute_80.ptx").is_file() or not ptxas.is_file():
        print(f"skipped: no CUDA compiler made {options.kept}, or there is no {ptxas}")
        return SKIPPED
    version = re.search(r"V([\d.]+)", run(ptxas, "--version"))[1]
    table = measure(options.kept, ptxas, options.cuobjdump)
    show(table, "machine code" if options.cuobjdump else "PTX; no cuobjdump for the machine code")
    if options.write:
        write(table, version)
    allowed = json.loads(TABLE.read_text(encoding="utf-8"))
    compares = allowed["ptxas"] == version
    if not compares:
        print(f"ptxas {version}: {TABLE.name} is of {allowed['ptxas']}, so registers are not compared")
    found = breaches(table, allowed["kernels"], compares)
    print("\n".join(found) or f"{len(table)} kernels, no stack, no spills, none grown")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
