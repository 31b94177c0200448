"""compare_counters.py: what it makes of what the SIMT runtime and ncu print of one list."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "kernels/cuda"))

import compare_counters  # noqa: E402

LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
COPIES = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum"
STORES = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
CONFLICTS = [
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",
]
HEADER = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
          "Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit",
          "Metric Value"]
BEFORE = """==PROF== Connected to process 71 (build/release/kernels/cuda/kvcheck_counted_steps)
==PROF== Profiling "decode_kernel" - 0: 0%....50%....100% - 4 passes
==PROF== Disconnected from process 71
"""


def quoted(fields):
    return ",".join(f'"{field}"' for field in fields) + "\n"


def launch(number, kernel, loads=("200", "1,000"), stores="32", conflicts=("0",) * 4):
    """The rows of a launch: sectors of loads and of cp.async, of stores, conflicts."""
    values = [(LOADS, "sector", loads[0]), (COPIES, "sector", loads[1]),
              (STORES, "sector", stores)]
    values += [(name, "", value) for name, value in zip(CONFLICTS, conflicts)]
    return [[str(number), "71", "kvcheck_counted_steps", "127.0.0.1", kernel, "1", "13",
             "(128, 1, 1)", "(2, 1, 1)", "0", "9.0", "Command line profiler metrics",
             *value] for value in values]


def simt(step, kernel, loads=1200, stores=32, conflicts=0):
    return {"step": step, "kernel": kernel, "global_load_sectors": loads,
            "global_store_sectors": stores, "bank_conflicts": conflicts, "shared_accesses": 400,
            "global_loads": 9}


EXPECTED = [simt("decode, splits", "decode_kernel"), simt("decode, splits", "merge_kernel"),
            simt("prefill", "prefill_kernel")]
KERNELS = [line["kernel"] for line in EXPECTED]


class Comparison(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.simt = pathlib.Path(folder.name) / "simt.jsonl"
        self.csv = pathlib.Path(folder.name) / "ncu.csv"
        self.write_simt(EXPECTED)

    def write_simt(self, launches):
        self.simt.write_text("".join(json.dumps(line) + "\n" for line in launches))

    def write_csv(self, launches, before=BEFORE, header=HEADER):
        rows = [row for one in launches for row in one]
        self.csv.write_text(before + quoted(header) + "".join(map(quoted, rows)))

    def run_it(self, *words):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = compare_counters.main([str(word) for word in words])
        return code, out.getvalue(), errors.getvalue()

    def compare(self, launches=None, **kwargs):
        if launches is not None:
            self.write_csv(launches, **kwargs)
        return self.run_it(self.simt, self.csv)

    def agreeing(self):
        return [launch(i, kernel) for i, kernel in enumerate(KERNELS)]

    def expect_unreadable(self, found, *parts):
        code, out, errors = found
        self.assertEqual((code, out), (2, ""))
        for part in parts:
            self.assertIn(part, errors)
        self.assertEqual(errors.count("\n"), 1, errors)


class CountersAgree(Comparison):
    def test_equal_counts(self):
        code, out, errors = self.compare(self.agreeing())
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("| step | kernel | counter | SIMT | profiler | ratio |\n", out)
        self.assertIn("| decode, splits | merge_kernel | global_load_sectors | 1200 | 1200 "
                      "| 1.000 |\n", out)
        self.assertIn("| prefill | prefill_kernel | bank_conflicts | 0 | 0 | equal |\n", out)
        self.assertIn("\n9 of 9 counters agree", out)

    def test_names_with_templates_and_parameters(self):
        name = ("void kvcheck::kernels::device::<unnamed>::{}<kvcheck::kernels::device::F16, "
                "(kvcheck::kernels::device::Fault)0>(kvcheck::kernels::device::Parameters)")
        launches = [launch(i, name.format(kernel)) for i, kernel in enumerate(KERNELS)]
        self.assertEqual(self.compare(launches)[0], 0)
        name = "void kvcheck::kernels::device::(anonymous namespace)::{}<F16>(Parameters)"
        launches = [launch(i, name.format(kernel)) for i, kernel in enumerate(KERNELS)]
        self.assertEqual(self.compare(launches)[0], 0)

    def test_sectors_up_to_five_per_cent_off(self):
        for copies in ("1,060", "940"):
            launches = self.agreeing()
            launches[0] = launch(0, KERNELS[0], loads=("200", copies))
            self.assertEqual(self.compare(launches)[0], 0, copies)

    def test_conflicts_by_chance_are_stated(self):
        launches = self.agreeing()
        launches[2] = launch(2, KERNELS[2], conflicts=("3", "1", "0", "0"))
        code, out, _ = self.compare(launches)
        self.assertEqual(code, 0)
        self.assertIn("| prefill_kernel | bank_conflicts | 0 | 4 | +4 |\n", out)

    def test_other_names_of_a_device_and_other_columns(self):
        launches = self.agreeing()
        for row in launches[0]:
            row[12] = row[12].replace("sm__sass_", "smsp__sass_")
        rows = [[row + ["", ""] for row in one] for one in launches]
        rule = [*launches[1][0][:12], "", "", "", "Uncoalesced", "The rule says something."]
        rows.insert(1, [rule])
        found = self.compare(rows, header=[*HEADER, "Rule Name", "Rule Description"])
        self.assertEqual(found[0], 0, found[2])

    def test_decimals_and_what_the_program_printed(self):
        launches = self.agreeing()
        launches[2] = launch(2, KERNELS[2], loads=("200.00", "1,000.00"))
        self.write_csv(launches, before='a line, with "a quote\n' + BEFORE)
        with self.csv.open("a") as file:
            file.write("\n==WARNING== Found outstanding GPU clock reset, trying to revert...\n")
        found = self.compare()
        self.assertEqual(found[0], 0, found[2])


class CountersDiffer(Comparison):
    def test_sectors_that_are_six_per_cent_off(self):
        for copies, ratio in (("1,072", "1.060"), ("928", "0.940")):
            launches = self.agreeing()
            launches[0] = launch(0, KERNELS[0], loads=("200", copies))
            code, out, _ = self.compare(launches)
            self.assertEqual(code, 1)
            self.assertIn(f"| global_load_sectors | 1200 | {200 + int(copies.replace(',', ''))} | "
                          f"**{ratio}** (ld 200, ldgsts {copies.replace(',', '')}) |\n", out)
            self.assertTrue(out.endswith("8 of 9 counters agree: sectors within 5%, bank conflicts "
                                         "within 1% of the accesses.\n"), out)

    def test_stores(self):
        launches = self.agreeing()
        launches[1] = launch(1, KERNELS[1], stores="64")
        code, out, _ = self.compare(launches)
        self.assertEqual(code, 1)
        self.assertIn("| merge_kernel | global_store_sectors | 32 | 64 | **2.000** (st 64) |\n",
                      out)

    def test_bank_conflicts_of_any_kind(self):
        for kind, name in enumerate(("ld", "st", "ldgsts", "ldsm")):
            conflicts = ["0"] * 4
            conflicts[kind] = "5"  # 4 are 1 % of the accesses.
            launches = self.agreeing()
            launches[2] = launch(2, KERNELS[2], conflicts=conflicts)
            code, out, _ = self.compare(launches)
            self.assertEqual(code, 1, kind)
            self.assertIn(f"| prefill_kernel | bank_conflicts | 0 | 5 | **+5** ({name} 5) |\n", out)

    def test_fewer_conflicts_than_the_runtime_counts(self):
        self.write_simt([*EXPECTED[:2], simt("prefill", "prefill_kernel", conflicts=12)])
        code, out, _ = self.compare(self.agreeing())
        self.assertEqual(code, 1)
        self.assertIn("| bank_conflicts | 12 | 0 | **-12** (nothing) |\n", out)

    def test_traffic_where_the_runtime_has_none(self):
        self.write_simt([*EXPECTED[:2], simt("prefill", "prefill_kernel", stores=0)])
        code, out, _ = self.compare(self.agreeing())
        self.assertEqual(code, 1)
        self.assertIn("| global_store_sectors | 0 | 32 | **none in SIMT** (st 32) |\n", out)


class LaunchesDoNotMatch(Comparison):
    def test_a_launch_is_missing_at_the_end(self):
        self.expect_unreadable(self.compare(self.agreeing()[:2]), "ncu.csv ends after 2 of 3",
                               "prefill_kernel of step 'prefill'", "simt.jsonl, line 3")

    def test_a_launch_is_missing_in_the_middle(self):
        found = self.compare([launch(0, KERNELS[0]), launch(1, KERNELS[2])])
        self.expect_unreadable(found, 'ncu.csv, line 12: "Kernel Name" is \'prefill_kernel\'',
                               "launch 2 is merge_kernel", "simt.jsonl, line 2")

    def test_another_order(self):
        launches = [launch(i, KERNELS[k]) for i, k in enumerate((1, 0, 2))]
        self.expect_unreadable(self.compare(launches), 'ncu.csv, line 5: "Kernel Name"',
                               "launch 1 is decode_kernel of step 'decode, splits'")

    def test_a_launch_more(self):
        launches = [*self.agreeing(), launch(3, "memset_kernel")]
        self.expect_unreadable(self.compare(launches), "ncu.csv, line 26: 'memset_kernel'",
                               "one launch more")

    def test_one_number_for_two_kernels(self):
        launches = self.agreeing()
        launches[1] = launch(0, KERNELS[1])
        self.expect_unreadable(self.compare(launches), 'ncu.csv, line 12: "Kernel Name"',
                               "launch 0 was one of 'decode_kernel'")


class FilesCannotBeRead(Comparison):
    def test_a_unit_that_is_no_count(self):
        launches = self.agreeing()
        launches[0][1][13] = "Ksector"
        self.expect_unreadable(self.compare(launches), 'ncu.csv, line 6: "Metric Unit" is ',
                               "'Ksector'", "--print-units base")

    def test_a_value_that_is_no_count(self):
        for value in ("n/a", "", "nan", "inf", "-3", "1.5"):
            launches = self.agreeing()
            launches[0][2][14] = value
            self.expect_unreadable(self.compare(launches),
                                   f'ncu.csv, line 7: "Metric Value" is {value!r}')

    def test_a_metric_that_was_not_counted(self):
        launches = self.agreeing()
        del launches[1][1]
        self.expect_unreadable(self.compare(launches), "ncu.csv, line 12", '"Metric Name"', COPIES)

    def test_a_row_that_is_cut_off(self):
        self.write_csv(self.agreeing())
        text = self.csv.read_text()
        self.csv.write_text(text[: text.rindex(',"13"')] + "\n")
        self.expect_unreadable(self.compare(), "ncu.csv, line 25 has 6 fields, the header 15")

    def test_no_table_at_all(self):
        self.csv.write_text(BEFORE + "==WARNING== No kernels were profiled.\n")
        self.expect_unreadable(self.compare(), "ncu.csv has no header", "Metric Value")
        self.csv.write_text(BEFORE + quoted(HEADER))
        self.expect_unreadable(self.compare(), "ncu.csv holds no launch")

    def test_no_file(self):
        self.expect_unreadable(self.run_it(self.simt, self.csv), "ncu.csv cannot be read")

    def test_what_the_runtime_counted_is_broken(self):
        self.write_csv(self.agreeing())
        first = json.dumps(EXPECTED[0]) + "\n"
        for text, part in (("{", "simt.jsonl, line 2 is no JSON"),
                           ("[1]", "simt.jsonl, line 2 is no JSON object"),
                           ('{"step": "a"}', 'line 2: "kernel" is missing'),
                           (json.dumps(simt("a", "b", stores=-1)),
                            'line 2: "global_store_sectors" is missing or no count'),
                           (json.dumps({**EXPECTED[1], "shared_accesses": None}),
                            'line 2: "shared_accesses" is missing or no count'),
                           (json.dumps(simt("a", "b", conflicts="0")),
                            'line 2: "bank_conflicts" is missing or no count')):
            self.simt.write_text(first + text + "\n")
            self.expect_unreadable(self.compare(), part)
        self.simt.write_text("")
        self.expect_unreadable(self.compare(), "simt.jsonl holds no launch")

    def test_another_command_line(self):
        for words in ((), ("one",), ("--metrics", "one", "two")):
            self.expect_unreadable(self.run_it(*words), "usage: compare_counters.py")


class Metrics(Comparison):
    def test_the_first_names_where_nothing_is_known(self):
        code, out, _ = self.run_it("--metrics")
        self.assertEqual((code, out), (0, ",".join([LOADS, COPIES, STORES, *CONFLICTS]) + "\n"))

    def test_names_that_the_device_has(self):
        copies = "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass"
        known = self.csv
        known.write_text(f"Device NVIDIA H200 (GH100)\n{copies}   # of sectors\n"
                         "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts   # of ...\n")
        code, out, _ = self.run_it("--metrics", known)
        self.assertEqual(code, 0)
        names = out.strip().split(",")
        self.assertEqual(names[1], copies + ".sum")
        self.assertEqual(names[5],
                         "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum")
        self.assertEqual(names[6], CONFLICTS[3])


if __name__ == "__main__":
    unittest.main()
