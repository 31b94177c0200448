"""Runs that are killed and go on, that begin with a named case, and that meet known findings."""

import json
import subprocess
import time
import unittest

from command_line import BROKEN_TARGET, COUNTEREXAMPLE, HELD, THREAD_34226, TOOL, CommandLine


class LongRuns(CommandLine):
    def kill_when(self, found, *arguments):
        """Starts a run, kills it once `found()` is true, and gives its folder."""
        with subprocess.Popen([TOOL, "run", *map(str, arguments)], cwd=self.path,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while not found() and process.poll() is None:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            process.kill()
        return next(self.path.glob(".kvcheck/runs/*"))

    def test_a_killed_run_leaves_its_record_and_where_its_workers_were(self):
        def recorded():
            return any('"investigated"' in record.read_text()
                       for record in self.path.glob(".kvcheck/runs/*/run.json"))

        run = self.kill_when(recorded, "--target", BROKEN_TARGET, "--time", 60, "--seed", 1)
        record = json.loads((run / "run.json").read_text())
        self.assertTrue(record["findings"])
        places = json.loads((run / "cases.json").read_text())
        self.assertEqual(places["target"], BROKEN_TARGET)
        self.assertEqual(places["seed"], 1)
        self.assertTrue(places["workers"])

    def test_a_killed_run_goes_on_to_the_findings_that_it_would_have_had(self):
        arguments = ["--target", BROKEN_TARGET, "--cases", 200, "--seed", 3]
        run = self.kill_when(lambda: list(self.path.glob(".kvcheck/corpus/failing/*.json")),
                             *arguments)
        result = self.kvcheck("run", "--resume", "last", "--json")
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)
        resumed = json.loads(result.stdout)
        self.assertEqual(resumed, json.loads((run / "run.json").read_text()))
        whole = json.loads(self.kvcheck("run", *arguments, "--out", "whole", "--json").stdout)
        for name in ("scenarios", "verdicts"):
            self.assertEqual(resumed["totals"][name], whole["totals"][name])
        self.assertEqual([finding["hash"] for finding in resumed["findings"]],
                         [finding["hash"] for finding in whole["findings"]])

    def test_resuming_takes_no_other_seed(self):
        self.kvcheck("run", "--target", "cpu-naive", "--cases", 1, "--seed", 1)
        self.refused("run", "--resume", "last", "--seed", 2, words=("--resume", "seed"))
        self.refused("run", "--resume", "none", words=("none",))

    def test_a_named_case_is_judged_first(self):
        file = self.write("case.json", THREAD_34226)
        result = self.kvcheck("run", "--target", BROKEN_TARGET, "--case", file, "--phases", "named",
                              "--json")
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)
        record = json.loads(result.stdout)
        self.assertEqual(record["totals"]["scenarios"], 1)
        self.assertEqual({finding["phase"] for finding in record["findings"]}, {"named"})

    def test_an_unknown_phase_is_named(self):
        self.refused("run", "--phases", "everything", words=("everything", "lattice"))

    def test_observations_hold_a_line_for_each_scenario(self):
        self.kvcheck("run", "--target", "cpu-naive", "--cases", 20, "--seed", 1, "--observations")
        run = next(self.path.glob(".kvcheck/runs/*"))
        lines = (run / "observations.jsonl").read_text().splitlines()
        record = json.loads((run / "run.json").read_text())
        self.assertEqual(len(lines), record["totals"]["scenarios"])
        self.assertIn("status", json.loads(lines[0]))


class KnownFindings(CommandLine):
    def known_entry(self, **fields):
        entry = {
            "schema": 1, "title": "one query sees all", "target": BROKEN_TARGET, "releases": {},
            "failures": {"mask.visible_set": ["leak"], "values.within_bound": ["over_bound"]},
            "condition": {"operator": "attention", "queries": 1, "least_tokens": 2,
                          "least_past": 1},
            "reading": "causal.skipped_for_one_query", "issue": "https://example.org/1",
            "scenario": THREAD_34226, **fields}
        (self.path / "known").mkdir(exist_ok=True)
        self.write("known/entry.json", {k: v for k, v in entry.items() if v is not None})
        return {"KVCHECK_KNOWN": str(self.path / "known")}

    def run_known(self, target, environment):
        return self.kvcheck("run", "--target", target, "--cases", 100, "--seed", 1, "--json",
                            "--property", "mask.visible_set", "--property", "values.within_bound",
                            "--focus", "attention", environment=environment)

    def test_a_known_finding_is_shown_and_does_not_fail_the_run(self):
        result = self.run_known(BROKEN_TARGET, self.known_entry())
        self.assertEqual(result.returncode, HELD, result.stdout[-2000:])
        record = json.loads(result.stdout)
        self.assertTrue(record["findings"])
        self.assertEqual({finding["known"] for finding in record["findings"]}, {"entry.json"})
        self.assertGreater(record["known"][0]["hits"], 0)
        self.assertFalse(record["known"][0]["fixed"])

    def test_a_known_finding_that_passes_is_announced(self):
        result = self.run_known("cpu-naive", self.known_entry(target="cpu-naive"))
        self.assertEqual(result.returncode, HELD, result.stderr)
        self.assertIn("FIXED: one query sees all", result.stderr)
        self.assertTrue(json.loads(result.stdout)["known"][0]["fixed"])

    def test_an_entry_with_neither_issue_nor_sentence_is_refused(self):
        environment = self.known_entry(issue=None)
        for command in (("run",), ("sweep", "causal-past")):
            self.refused(*command, "--target", "cpu-naive", words=("entry.json", "public issue"),
                         environment=environment)


if __name__ == "__main__":
    unittest.main()
