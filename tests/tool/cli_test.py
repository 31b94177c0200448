"""The tool as its users meet it: commands, exit codes, and one clear message for bad input."""

import json
import signal
import subprocess
import sys
import time
import unittest

from command_line import (ADAPTERS, BAD_USAGE, BROKEN_TARGET, COUNTEREXAMPLE, HELD, THREAD_34226,
                          TOOL, UNDECIDED, CommandLine)


class Runs(CommandLine):
    def test_a_healthy_target_is_held(self):
        # The target that promises all there is to promise of a CPU.
        result = self.kvcheck("run", "--target", "cpu-flash", "--cases", 60, "--seed", 1, "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        record = json.loads(result.stdout)
        self.assertEqual(record["seed"], 1)
        self.assertEqual(record["findings"], [])
        self.assertGreater(record["totals"]["scenarios"], 60)
        unclaimed = {"cache.quantised_codes", "calls.refused", "calls.accepted",
                     "calls.extreme_lengths"}
        for entry in record["properties"]:
            if entry["property"] in unclaimed:
                self.assertIn("does not claim", entry["reason"])
            elif entry["property"] == "target.schedules":
                self.assertIn("does not promise schedule_bits", entry["reason"])
            else:
                self.assertEqual(entry["status"], "passed", entry)

    def test_a_broken_target_gives_a_counterexample_and_a_page(self):
        result = self.kvcheck("run", "--target", BROKEN_TARGET, "--cases", 20, "--seed", 1)
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)
        pages = list(self.path.glob(".kvcheck/runs/*/page.html"))
        self.assertEqual(len(pages), 1)
        self.assertIn("leak", pages[0].read_text())
        self.assertIn("page:", result.stdout)

    def test_the_record_names_what_scripts_rely_on(self):
        result = self.kvcheck("run", "--target", BROKEN_TARGET, "--cases", 5, "--seed", 1, "--json")
        record = json.loads(result.stdout)
        for name in ("schema", "tool", "seed", "workers", "totals", "properties", "findings"):
            self.assertIn(name, record)
        finding = record["findings"][0]
        for name in ("property", "target", "kind", "summary", "hash", "file", "minimal",
                     "evaluations", "seconds"):
            self.assertIn(name, finding)
        self.assertEqual(finding["minimal"]["steps"], THREAD_34226["steps"])

    def test_interrupting_keeps_what_was_found(self):
        with subprocess.Popen([TOOL, "run", "--target", BROKEN_TARGET, "--time", "60", "--seed", "1"],
                              cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            deadline = time.monotonic() + 60
            while not list(self.path.glob(".kvcheck/corpus/failing/*.json")):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, COUNTEREXAMPLE, errors)
        record = json.loads(next(self.path.glob(".kvcheck/runs/*/run.json")).read_text())
        self.assertEqual(record["stop"], "interrupted")
        self.assertTrue(record["findings"])
        self.assertIn("page:", output)

    def test_an_unknown_target_names_the_known_ones(self):
        self.refused("run", "--target", "cpu-naiv", words=("cpu-naiv", "cpu-naive"))

    def test_an_unknown_property_says_where_to_look(self):
        self.refused("run", "--property", "mask.nothing", words=("mask.nothing", "list properties"))

    def test_a_bad_seed_is_named(self):
        self.refused("run", "--seed", "abc", words=("--seed", "abc"))

    def test_an_unknown_focus_is_named(self):
        self.refused("run", "--focus", "everything", words=("everything", "gqa-block"))

    def test_a_foreign_target_without_its_environment_is_skipped_with_the_reason(self):
        (self.path / "environments").mkdir()
        (self.path / "environments" / "onnxruntime.failed").write_text("no network\n")
        # The random phase alone: a simulated device takes its time.
        result = self.kvcheck("run", "--phases", "random", "--cases", 2, "--seed", 1,
                              environment={"KVCHECK_ENVIRONMENTS": str(self.path / "environments")})
        self.assertEqual(result.returncode, HELD, result.stderr)
        self.assertIn("no network", result.stderr)
        self.assertIn("cpu-naive", result.stdout)
        self.assertIn("cuda-simt", result.stdout)

    def test_only_targets_that_cannot_run_is_undecided(self):
        (self.path / "environments").mkdir()
        result = self.kvcheck("run", "--target", "onnxruntime",
                              environment={"KVCHECK_ENVIRONMENTS": str(self.path / "environments")})
        self.assertEqual(result.returncode, UNDECIDED, result.stderr)

    def test_an_environment_without_the_package_is_skipped_with_the_reason(self):
        environment = self.path / "environments" / "onnxruntime"
        (environment / "bin").mkdir(parents=True)
        (environment / "bin" / "python").symlink_to(sys.executable)
        (environment / "ready").write_text("")
        (self.path / "block").mkdir()
        (self.path / "block" / "onnxruntime.py").write_text("raise ImportError('not installed')\n")
        (self.path / "block" / "numpy.py").write_text("raise ImportError('not installed')\n")
        result = self.kvcheck("run", "--target", "onnxruntime",
                              environment={"KVCHECK_ENVIRONMENTS": str(self.path / "environments"),
                                           "PYTHONPATH": str(self.path / "block")})
        self.assertEqual(result.returncode, UNDECIDED, result.stderr)
        self.assertIn("not installed", result.stderr)


class ForeignProcesses(CommandLine):
    """An adapter that breaks is a finding or a reason, and the run goes on to its end."""

    def run_adapter(self, mode):
        script = self.path / mode
        script.write_text(
            f"#!/bin/sh\nexec {sys.executable} {ADAPTERS / 'broken_adapter.py'} {mode}\n")
        script.chmod(0o755)
        return self.kvcheck("run", "--target", f"exec:{script}", "--cases", 3, "--seed", 1,
                            "--case-timeout", 1, "--shrink-time", 2, "--time", 20, "--json",
                            "--property", "target.answers", "--phases", "random")

    def test_one_that_dies_hangs_or_answers_nonsense_is_a_finding_of_that_kind(self):
        for mode, kind in [("dies", "crash"), ("hangs", "hang"), ("half_frame", "nonsense"),
                           ("wrong_shape", "nonsense"), ("bad_json", "nonsense")]:
            with self.subTest(mode=mode):
                result = self.run_adapter(mode)
                self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)
                findings = json.loads(result.stdout)["findings"]
                self.assertEqual([finding["kind"] for finding in findings], [kind])

    def test_one_that_dies_at_the_start_is_skipped_with_its_last_words(self):
        result = self.run_adapter("dies_at_start")
        self.assertEqual(result.returncode, UNDECIDED, result.stderr)
        self.assertIn("No module named 'kernel'", result.stderr)


class Replays(CommandLine):
    def test_reproduced_passes_now_and_fails_differently(self):
        entry = {"schema": 1, "property": "mask.visible_set", "target": BROKEN_TARGET,
                 "kind": "leak", "scenario": THREAD_34226}
        file = self.write("entry.json", entry)
        result = self.kvcheck("replay", file, "--json")
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["outcome"], "reproduced")
        self.assertEqual(answer["kind"], "leak")
        self.assertEqual(answer["property"], "mask.visible_set")

        result = self.kvcheck("replay", file, "--target", "cpu-naive", "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        self.assertEqual(json.loads(result.stdout)["outcome"], "passes now")

        file = self.write("other.json", {**entry, "kind": "missing_key"})
        result = self.kvcheck("replay", file, "--json")
        self.assertEqual(result.returncode, COUNTEREXAMPLE)
        self.assertEqual(json.loads(result.stdout)["outcome"], "fails differently")

    def test_the_same_case_with_one_new_key_passes(self):
        one_key = {**THREAD_34226, "steps": [{"past": 1}, {"append": 1}]}
        file = self.write("edited.json", one_key)
        result = self.kvcheck("replay", file, "--target", BROKEN_TARGET)
        self.assertEqual(result.returncode, HELD, result.stdout)
        self.assertIn("passes now", result.stdout)

    def test_last_and_the_beginning_of_a_hash_find_the_finding(self):
        self.kvcheck("run", "--target", BROKEN_TARGET, "--cases", 5, "--seed", 1)
        result = self.kvcheck("replay", "last", "--explain")
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)
        self.assertIn("reproduced", result.stdout)
        self.assertIn("it leaks", result.stdout)
        name = sorted(self.path.glob(".kvcheck/corpus/failing/*.json"))[0].stem
        result = self.kvcheck("replay", name[:10])
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)

    def test_last_without_a_run_says_so(self):
        self.refused("replay", "last", words=("kvcheck run",))

    def test_an_unknown_hash_says_what_may_be_given(self):
        self.refused("replay", "0123abc", words=("0123abc", "hash"))

    def test_broken_and_hostile_files_are_not_valid(self):
        window = {"schema": 1, "operator": "gqa",
                  "cache": {"layout": "block", "capacity": 3, "window_size": 4},
                  "steps": [{"append": 1}]}
        for content, words in [
                ("{", ("not JSON",)),
                ("[1, 2]", ("object",)),
                ({"operator": "gqa", "steps": []}, ("schema",)),
                ({**THREAD_34226, "schema": 99}, ("schema", "99", "newer")),
                ({**THREAD_34226, "widow": 1}, ("widow", "unknown field")),
                ({**THREAD_34226, "head_size": "8"}, ("head_size", "integer")),
                ({**THREAD_34226, "steps": [{"fork": 1}]}, ("steps[0]", "unknown kind")),
                ({**THREAD_34226, "batch": 10**18}, ("batch",)),
                (window, ("cache.capacity", "3", "window_size (4)")),
                ("[" * 100000, ("lists within lists",))]:
            with self.subTest(words=words):
                file = self.write("bad.json", content)
                self.refused("replay", file, words=words)

    def test_a_file_cannot_name_a_program(self):
        marker = self.path / "ran"
        program = self.path / "program.sh"
        program.write_text(f"#!/bin/sh\ntouch {marker}\n")
        program.chmod(0o755)
        file = self.write("hostile.json", {
            "schema": 1, "target": f"exec:{program}", "property": "mask.visible_set",
            "kind": "leak", "scenario": THREAD_34226})
        self.kvcheck("replay", file)
        self.assertFalse(marker.exists())

    def test_emit_prints_the_scenario(self):
        file = self.write("case.json", THREAD_34226)
        result = self.kvcheck("replay", file, "--emit", "scenario")
        self.assertEqual(result.returncode, HELD)
        self.assertEqual(json.loads(result.stdout)["steps"], THREAD_34226["steps"])


class OtherCommands(CommandLine):
    def test_timeline_prints_the_worked_table(self):
        result = self.kvcheck("timeline", "--capacity", 6, "--window", 4, "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        table = json.loads(result.stdout)
        rows = {row["T"]: row for row in table["rows"]}
        self.assertEqual([rows[t]["resident"] for t in range(1, 17)],
                         [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4])
        self.assertEqual([rows[t]["first_position"] for t in range(7, 17)],
                         [3, 3, 3, 6, 6, 6, 9, 9, 9, 12])
        self.assertEqual(rows[12]["max_exact_rollback"], 2)

    def test_timeline_needs_no_window_for_layout_full(self):
        result = self.kvcheck("timeline", "--layout", "full", "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        self.assertEqual([row["resident"] for row in json.loads(result.stdout)["rows"]],
                         list(range(1, 17)))

    def test_timeline_shows_the_rows_of_rings_sinks_and_pages(self):
        for steps, rows, options in (
                (7, [4, 5, 6, 3], ("ring", "--capacity", 4)),
                (9, [0, 1, 5, 6, 7, 8], ("sinks", "--capacity", 6, "--sinks", 2)),
                (8, [6, 7, None, 3, 4, 5], ("paged", "--capacity", 6, "--page-size", 3))):
            result = self.kvcheck("timeline", "--layout", *options, "--window", 4,
                                  "--steps", steps, "--json")
            self.assertEqual(result.returncode, HELD, result.stderr)
            self.assertEqual(json.loads(result.stdout)["rows"][0]["buffer"], rows)

    def test_timeline_refuses_a_capacity_below_the_window(self):
        self.refused("timeline", "--capacity", 3, "--window", 4, words=("capacity", "3", "4"))

    def test_expect_gives_thirds_for_thread_34226_with_a_past_of_two(self):
        file = self.write("case.json", {
            **THREAD_34226, "head_size": 4, "steps": [{"past": 2}, {"append": 2, "queries": 1}]})
        result = self.kvcheck("expect", file, "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        step = json.loads(result.stdout)["steps"][1]
        self.assertEqual(step["visible"][0]["keys"], [0, 1, 2])
        outputs = sorted(round(float(x), 12) for x in step["outputs"][0][0][0])
        third = round(1 / 3, 12)
        self.assertEqual(outputs, [0, third, third, third])

    def test_expect_refuses_a_missing_file(self):
        self.refused("expect", "none.json", words=("none.json",))

    def test_audit_shows_what_killed_each_fault(self):
        result = self.kvcheck("audit", "--fault", "window_one_wide", "--fault", "window.one_more",
                              "--cases", 40, "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        record = json.loads(result.stdout)
        self.assertEqual({fault["name"] for fault in record["faults"]} - {
            "cpu-flash+window_one_wide"}, {"cpu-naive+window_one_wide", "model+window.one_more"})
        self.assertEqual({fault["by"] for fault in record["faults"]}, {"mask.visible_set"})
        self.assertEqual({fault["place"] for fault in record["faults"]}, {"kernel", "wrong-model"})
        self.assertEqual(record["false_alarms"], 0)
        self.assertEqual(record["totals"]["killed"], record["totals"]["faults"])
        self.refused("audit", "--fault", "no_such_fault", words=["no_such_fault", "list faults"])
        self.refused("audit", "--target", "onnxruntime", words=["onnxruntime", "list faults"])

    def test_list_shows_targets_properties_and_faults(self):
        properties = json.loads(self.kvcheck("list", "properties", "--json").stdout)["properties"]
        self.assertIn("cache.split_invariance", [entry["id"] for entry in properties])
        targets = json.loads(self.kvcheck("list", "targets", "--json").stdout)["targets"]
        by_name = {entry["name"]: entry for entry in targets}
        self.assertTrue(by_name["cpu-naive"]["available"])
        self.assertFalse(by_name["onnxruntime"]["available"])
        self.assertTrue(by_name["onnxruntime"]["reason"])
        self.assertEqual(by_name["cuda"]["available"], not by_name["cuda"]["reason"])
        faults = json.loads(self.kvcheck("list", "faults", "--json").stdout)["faults"]
        self.assertGreaterEqual(len(faults), 24)

    def test_report_is_built_from_the_record_alone(self):
        self.kvcheck("run", "--target", BROKEN_TARGET, "--cases", 5, "--seed", 1)
        page = next(self.path.glob(".kvcheck/runs/*/page.html")).read_bytes()
        result = self.kvcheck("report", "last", "--html", "again.html", "--junit", "tests.xml")
        self.assertEqual(result.returncode, HELD, result.stderr)
        self.assertEqual((self.path / "again.html").read_bytes(), page)
        self.assertIn("<testsuite", (self.path / "tests.xml").read_text())

    def test_report_refuses_what_is_no_record(self):
        file = self.write("run.json", "{}}")
        self.refused("report", file, words=("run.json",))

    def test_unknown_commands_and_options_are_bad_usage(self):
        self.assertEqual(self.kvcheck("frobnicate").returncode, BAD_USAGE)
        self.assertEqual(self.kvcheck("run", "--frobnicate").returncode, BAD_USAGE)

    def test_every_command_shows_an_example(self):
        for command in ("run", "replay", "report", "expect", "timeline", "list", "serve"):
            result = self.kvcheck(command, "--help")
            self.assertEqual(result.returncode, HELD)
            self.assertIn("Example: kvcheck", result.stdout)


if __name__ == "__main__":
    unittest.main()
