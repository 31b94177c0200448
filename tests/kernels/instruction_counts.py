"""Counts the instructions of single steps of cpu-flash and compares them with instruction_counts.json.

    instruction_counts.py PROGRAM

PROGRAM is the built instruction_counts.cpp. It runs under valgrind's callgrind, with the AVX2
kernels, for callgrind knows no AVX-512. Counts repeat exactly, and they depend on the compiler: with
another one than the file names, or without valgrind, there is nothing to compare, and the exit code
is 77. A case may take 1 % more than the file says. KVCHECK_UPDATE_COUNTS=1 writes the file anew.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BASELINE = pathlib.Path(__file__).with_name("instruction_counts.json")
TOLERANCE = 0.01
SKIPPED = 77
RENEW = "KVCHECK_UPDATE_COUNTS=1 ./kvcheck test -R instruction_counts"
# The C library copies by vectors: callgrind would count each byte of "rep movsb" as an instruction.
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "GLIBC_TUNABLES": ":".join([
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM",
    "glibc.cpu.x86_rep_movsb_threshold=1073741824",
    "glibc.cpu.x86_rep_stosb_threshold=1073741824"])}


def count(program):
    """The build of the program, and of each case its name, its products and its instructions."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=counted_step",
             "--dump-after=counted_step", f"--callgrind-out-file={folder}/part", program],
            env=ENVIRONMENT, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"valgrind failed:\n{result.stderr[-2000:]}")
        build, *lines = result.stdout.splitlines()
        cases = []
        for number, line in enumerate(lines, 1):
            products, name = line.split(" ", 1)
            part = pathlib.Path(f"{folder}/part.{number}").read_text(encoding="utf-8")
            total = re.search(r"^(?:totals|summary): (\d+)", part, re.MULTILINE)
            cases.append((name, int(products), int(total[1])))
        return build, cases


def as_json(build, cases):
    found = {name: {"instructions": instructions, "per_product": round(instructions / products, 4)}
             for name, products, instructions in cases}
    return json.dumps({"build": build, "cases": found}, indent=2) + "\n"


def differences(baseline, cases):
    """Lines on what is worse, and on what is better or new."""
    worse, better = [], []
    for name, _, instructions in cases:
        if name not in baseline:
            worse.append(f"{name}: has no count yet")
            continue
        before = baseline[name]["instructions"]
        line = f"{name}: {instructions:,}, {(instructions / before - 1) * 100:+.2f} % of {before:,}"
        if instructions > before * (1 + TOLERANCE):
            worse.append(line)
        elif instructions < before * (1 - TOLERANCE):
            better.append(line)
    worse += [f"{name}: is counted no more" for name in sorted(baseline.keys() -
                                                               {case[0] for case in cases})]
    return worse, better


def main(program):
    build = subprocess.run([program, "--build"], capture_output=True, text=True,
                           check=True).stdout.strip()
    renews = os.environ.get("KVCHECK_UPDATE_COUNTS", "0") != "0"
    baseline = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else None
    if not renews and baseline and baseline["build"] != build:
        print(f"skipped: the counts are of {baseline['build']}, this is {build}")
        return SKIPPED
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return SKIPPED
    build, cases = count(program)
    for name, products, instructions in cases:
        print(f"{instructions:>12,} {instructions / products:8.4f} {name}")
    if renews or baseline is None:
        BASELINE.write_text(as_json(build, cases), encoding="utf-8")
        print(f"wrote {BASELINE}")
        return 0
    worse, better = differences(baseline["cases"], cases)
    if better:
        print("\n".join(["fewer instructions than before:", *better, f"keep them: {RENEW}"]))
    if worse:
        print("\n".join(["more instructions than before:", *worse, f"if that is meant: {RENEW}"]))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
