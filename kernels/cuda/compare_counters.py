"""Compares what the SIMT runtime counts of each launch with what a profiler counts on a GPU.

    compare_counters.py SIMT.jsonl NCU.csv
    compare_counters.py --metrics [KNOWN]

SIMT.jsonl is what `kvcheck_counted_steps simt` prints, NCU.csv what
`ncu --csv --print-units base --metrics ...` prints of `kvcheck_counted_steps gpu`: a row for each
metric of each launch, after lines that begin with "==". Prints a table in Markdown and what came of
it. Exit code 0: sectors agree within 5 %, bank conflicts within 1 % of the accesses to shared
memory; 1: some do not; 2: a file cannot be read, or the two do not hold the same launches.

--metrics prints the metrics to ask for, by commas. KNOWN is what `ncu --query-metrics` prints: of
names for the same thing, the first that is in it is taken; without it the first of all.
"""

import csv
import json
import pathlib
import re
import sys

AGREED, DIFFERENT, UNREADABLE = 0, 1, 2
MOST_OFF = 0.05  # Of sectors: a compiler may load a field again that the other one keeps.
# Of the accesses to shared memory: a GPU counts as conflicts, too, where two of its units wanted a
# bank at the same time, which is by chance. A pattern that has conflicts has them all the time.
MOST_BY_CHANCE = 0.01

# Counter of the runtime -> the parts that a profiler has of it. Each part by its names, which
# differ between devices; any one is enough. ".sum" is over all multiprocessors.
COUNTERS = {
    "global_load_sectors": [
        ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
        # cp.async.cg goes past the L1 cache.
        ["sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
         "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum"],
    ],
    "global_store_sectors": [
        ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    ],
    "bank_conflicts": [
        ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"],
        ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"],
        ["sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
         "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
         "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"],
        # ldmatrix, which the first part, of plain loads, does not hold.
        ["sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",
         "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum"],
    ],
}
COLUMNS = ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
UNITS = {"", "sector"}  # "Ksector" would be a count of thousands.


class Unreadable(Exception):
    """What is wrong with a file: its name, the line and the field."""


def read_lines(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from error


def read_simt(path):
    """[(line number, fields of the line)] in the order of the launches."""
    launches = []
    for number, line in enumerate(read_lines(path), 1):
        place = f"{path}, line {number}"
        try:
            launch = json.loads(line)
        except ValueError as error:
            raise Unreadable(f"{place} is no JSON: {error}") from error
        if not isinstance(launch, dict):
            raise Unreadable(f"{place} is no JSON object")
        for field in ("step", "kernel"):
            if not isinstance(launch.get(field), str):
                raise Unreadable(f'{place}: "{field}" is missing or no text')
        for field in (*COUNTERS, "shared_accesses"):
            if type(launch.get(field)) is not int or launch[field] < 0:
                raise Unreadable(f'{place}: "{field}" is missing or no count')
        launches.append((number, launch))
    if not launches:
        raise Unreadable(f"{path} holds no launch")
    return launches


def base_name(kernel):
    """decode_kernel, of "void device::<unnamed>::decode_kernel<...>(...)" as of itself."""
    found = re.search(r"\b(\w+_kernel)\b", kernel)
    return found[1] if found else kernel


def count_of(text, place):
    """"1,234" or "1234.00"."""
    try:
        value = float(text.replace(",", ""))
        count = int(value)
    except (ValueError, OverflowError):
        count = value = -1
    if count < 0 or count != value:
        raise Unreadable(f'{place}: "Metric Value" is {text!r}, which is no count')
    return count


def read_profiler(path):
    """[(line number, kernel, {metric: count})] in the order of the launches."""
    columns, launches = None, {}
    for number, line in enumerate(read_lines(path), 1):
        place = f"{path}, line {number}"
        if line.startswith("==") or not line.strip():
            continue
        fields = next(csv.reader([line]))
        if columns is None:
            # What the program itself printed stands before the header.
            columns = fields if set(COLUMNS) <= set(fields) else None
            continue
        if len(fields) != len(columns):
            raise Unreadable(f"{place} has {len(fields)} fields, the header {len(columns)}")
        row = dict(zip(columns, fields))
        if not row["Metric Name"]:  # What a rule says of a launch.
            continue
        if row["Metric Unit"] not in UNITS:
            raise Unreadable(f'{place}: "Metric Unit" is {row["Metric Unit"]!r}; '
                             "only whole counts are understood (ncu --print-units base)")
        _, kernel, counts = launches.setdefault(row["ID"], (number, row["Kernel Name"], {}))
        if kernel != row["Kernel Name"]:
            raise Unreadable(f'{place}: "Kernel Name" is {row["Kernel Name"]!r}, '
                             f'but launch {row["ID"]} was one of {kernel!r}')
        counts[row["Metric Name"]] = count_of(row["Metric Value"], place)
    if columns is None:
        raise Unreadable(f"{path} has no header with {', '.join(COLUMNS)}")
    if not launches:
        raise Unreadable(f"{path} holds no launch")
    return [(number, base_name(kernel), counts) for number, kernel, counts in launches.values()]


def check_same(simt, simt_path, profiled, profiled_path):
    """Both hold the same kernels in the same order."""
    for i, (number, launch) in enumerate(simt):
        kernel = launch["kernel"]
        expected = f"{kernel} of step {launch['step']!r} ({simt_path}, line {number})"
        if i == len(profiled):
            raise Unreadable(f"{profiled_path} ends after {i} of {len(simt)} launches: "
                             f"{expected} is missing")
        line, found, _ = profiled[i]
        if found != kernel:
            raise Unreadable(f'{profiled_path}, line {line}: "Kernel Name" is {found!r}, '
                             f"but launch {i + 1} is {expected}")
    if len(profiled) > len(simt):
        line, found, _ = profiled[len(simt)]
        raise Unreadable(f"{profiled_path}, line {line}: {found!r} is one launch more "
                         f"than {simt_path} holds")


def profiled_parts(counts, counter, place):
    """{name of the operation: count} of the counter's parts."""
    parts = {}
    for names in COUNTERS[counter]:
        found = [name for name in names if name in counts]
        if not found:
            raise Unreadable(f'{place}: this launch has no row whose "Metric Name" is '
                             + " or ".join(names))
        operation = re.search(r"_op_([a-z]+)", found[0])[1]
        parts[operation] = counts[found[0]]
    return parts


def judged(counter, launch, profiler):
    """Whether the two agree, and the cell of the table that says how far they are apart."""
    simt = launch[counter]
    if counter == "bank_conflicts":
        apart = "equal" if simt == profiler else f"{profiler - simt:+}"
        return abs(profiler - simt) <= MOST_BY_CHANCE * launch["shared_accesses"], apart
    if simt == 0:
        return profiler == 0, "equal" if profiler == 0 else "none in SIMT"
    return abs(profiler - simt) <= MOST_OFF * simt, f"{profiler / simt:.3f}"


def compare(simt_path, profiled_path):
    """Prints the table. Returns the exit code."""
    simt, profiled = read_simt(simt_path), read_profiler(profiled_path)
    check_same(simt, simt_path, profiled, profiled_path)
    rows, different = [], 0
    for (_, launch), (line, _, counts) in zip(simt, profiled):
        for counter in COUNTERS:
            parts = profiled_parts(counts, counter, f"{profiled_path}, line {line}")
            found = sum(parts.values())
            agrees, apart = judged(counter, launch, found)
            if not agrees:
                different += 1
                parts = ", ".join(f"{name} {count}" for name, count in parts.items() if count)
                apart = f"**{apart}** ({parts or 'nothing'})"
            rows.append(f"| {launch['step']} | {launch['kernel']} | {counter} | {launch[counter]} "
                        f"| {found} | {apart} |")
    print("| step | kernel | counter | SIMT | profiler | ratio |\n|---|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\n{len(rows) - different} of {len(rows)} counters agree: sectors within "
          f"{MOST_OFF:.0%}, bank conflicts within {MOST_BY_CHANCE:.0%} of the accesses.")
    return DIFFERENT if different else AGREED


def metrics(known):
    """The names to ask for; of several for one part the first that is in the text `known`."""
    listed = set(re.findall(r"\w+__\w+", known))
    chosen = []
    for parts in COUNTERS.values():
        for names in parts:
            there = [name for name in names if name.removesuffix(".sum") in listed]
            chosen.append((there or names)[0])
    return chosen


def main(words):
    try:
        if words[:1] == ["--metrics"] and len(words) <= 2:
            known = "\n".join(read_lines(words[1])) if len(words) == 2 else ""
            print(",".join(metrics(known)))
            return AGREED
        if len(words) == 2:
            return compare(*words)
        raise Unreadable("usage: compare_counters.py SIMT.jsonl NCU.csv, or --metrics [KNOWN]")
    except Unreadable as error:
        print(f"compare_counters.py: {error}", file=sys.stderr)
        return UNREADABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
