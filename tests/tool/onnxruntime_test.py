"""The adapter of ONNX Runtime against the released library: what thread 34226 says is found, what
thread 32419 says holds. Registered where its Python environment is there."""

import json
import pathlib
import unittest

from cli_test import COUNTEREXAMPLE, HELD, THREAD_34226, CommandLine

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {"KVCHECK_ENVIRONMENTS": str(ROOT / "build" / "environments")}


class OnnxRuntime(CommandLine):
    def kvcheck(self, *arguments, environment=None):
        return super().kvcheck(*arguments, environment=environment or ENVIRONMENT)

    def test_a_run_finds_the_causal_mask_that_is_skipped(self):
        result = self.kvcheck("run", "--target", "onnxruntime", "--focus", "attention",
                              "--property", "mask.visible_set", "--cases", 40, "--seed", 1,
                              "--json")
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)
        findings = {finding["kind"]: finding for finding in json.loads(result.stdout)["findings"]}
        minimal = findings["leak"]["minimal"]
        self.assertEqual(minimal["steps"], THREAD_34226["steps"])
        self.assertEqual([minimal[name] for name in
                          ("batch", "query_heads", "kv_heads", "head_size")], [1, 1, 1, 1])
        self.assertIn("key [2] leaks", findings["leak"]["summary"])

    def test_one_new_key_less_passes(self):
        file = self.write("case.json", {**THREAD_34226, "steps": [{"past": 1}, {"append": 1}]})
        result = self.kvcheck("replay", file, "--target", "onnxruntime")
        self.assertEqual(result.returncode, HELD, result.stdout + result.stderr)

    def test_the_scenarios_of_thread_32419_pass(self):
        kept = [file for file in (ROOT / "tests" / "regression").glob("*.json")
                if "32419" in json.loads(file.read_text())["note"]]
        self.assertEqual(len(kept), 3)
        for file in kept:
            with self.subTest(file=file.name):
                result = self.kvcheck("replay", file, "--target", "onnxruntime")
                self.assertEqual(result.returncode, HELD, result.stdout + result.stderr)

    def test_windowed_scenarios_hold(self):
        result = self.kvcheck("run", "--target", "onnxruntime", "--focus", "gqa-block", "--cases",
                              100, "--seed", 1, "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        # What the adapter does not claim or promise is skipped whole.
        judged = {entry["property"]: entry["scenarios"]
                  for entry in json.loads(result.stdout)["properties"]
                  if entry["status"] != "skipped"}
        self.assertGreaterEqual(len(judged), 6)
        for name, count in judged.items():
            self.assertGreater(count, 20, name)


# The base class has no test of its own and is not to be collected from here.
del CommandLine

if __name__ == "__main__":
    unittest.main()
