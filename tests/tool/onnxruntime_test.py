"""The adapter of ONNX Runtime against the released library: what thread 34226 says is found, what
thread 32419 says holds. Registered where its Python environment is there."""

import json
import pathlib
import unittest

from cli_test import COUNTEREXAMPLE, HELD, THREAD_34226, CommandLine

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {"KVCHECK_ENVIRONMENTS": str(ROOT / "build" / "environments")}

ATTENTION_25 = {"schema": 1, "operator": "attention", "opset": 25, "head_size": 2,
                "value_head_size": 2, "query_heads": 2, "kv_heads": 1,
                "fill": {"kind": "random", "seed": 1},
                "steps": [{"past": 3}, {"append": 2, "queries": 1}, {"append": 3}]}
LOWEST = -3.4028234663852886e38  # The lowest finite f32.


def divergences():
    """By name: words of the finding, and the least case of it."""
    def rows(count, lanes, value):
        return [[[[value] * lanes]] * count]

    gqa = {"schema": 1, "operator": "gqa", "head_size": 8, "fill": {"kind": "literal"}}
    step = {"append": 2, "q": rows(2, 8, 0), "k": rows(2, 8, 0)}
    return {
        # The finite number that hides a logit is handed out, where the mask adds -infinity.
        "intermediate": ("where the exact one is -inf", {
            "schema": 1, "operator": "attention", "opset": 23, "head_size": 1,
            "qk_output": "biased", "fill": {"kind": "position_code"}, "steps": [{"append": 2}]}),
        # And a finite mask or bias of just that number hides.
        "lowest mask": ("0 is", {
            "schema": 1, "operator": "attention", "opset": 23, "head_size": 1, "causal": False,
            "mask": {"kind": "additive", "rank": 2}, "fill": {"kind": "literal"},
            "steps": [{"append": 2, "queries": 1, "q": rows(1, 1, 0), "k": rows(2, 1, 0),
                       "v": rows(2, 1, 1), "mask": [[LOWEST, LOWEST]]}]}),
        "lowest bias": ("0 is", {
            **gqa, "mask": {"kind": "additive", "rank": 4},
            "steps": [{**step, "v": rows(2, 8, 1), "mask": [[[[LOWEST] * 2] * 2]]}]}),
        # The mean of two values near the largest: they are added before they are divided.
        "overflow": ("inf where the exact output is", {
            **gqa, "steps": [{**step, "v": rows(2, 8, 3e38)}]}),
    }


class OnnxRuntime(CommandLine):
    def kvcheck(self, *arguments, environment=None):
        return super().kvcheck(*arguments, environment=environment or ENVIRONMENT)

    def test_a_run_finds_the_causal_mask_that_is_skipped(self):
        unaided = {**ENVIRONMENT, "KVCHECK_KNOWN": str(self.path)}
        result = self.kvcheck("run", "--target", "onnxruntime", "--focus", "attention",
                              "--property", "mask.visible_set", "--cases", 40, "--seed", 1,
                              "--json", environment=unaided)
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stderr)
        findings = {finding["kind"]: finding for finding in json.loads(result.stdout)["findings"]}
        minimal = findings["leak"]["minimal"]
        self.assertEqual(minimal["steps"], THREAD_34226["steps"])
        self.assertEqual([minimal[name] for name in
                          ("batch", "query_heads", "kv_heads", "head_size")], [1, 1, 1, 1])
        self.assertIn("key [2] leaks", findings["leak"]["summary"])

    def test_every_finding_of_a_run_is_known(self):
        result = self.kvcheck("run", "--target", "onnxruntime", "--cases", 1000, "--seed", 202,
                              "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        record = json.loads(result.stdout)
        entries = {finding["known"] for finding in record["findings"]}
        self.assertIn("onnxruntime-34226.json", entries)
        self.assertIn("onnxruntime-attention-lowest-for-hidden.json", entries)
        self.assertNotIn("", entries)
        # The case of every entry was run, and none passes.
        for entry in record["known"]:
            self.assertTrue(entry["tried"], entry)
            self.assertFalse(entry["fixed"], entry)

    def test_a_sweep_counts_what_is_known(self):
        result = self.kvcheck("sweep", "causal-past", "--target", "onnxruntime", "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        known = {entry["entry"]: entry["configurations"]
                 for entry in json.loads(result.stdout)["known"]}
        self.assertEqual(known, {"onnxruntime-34226.json": 4224,
                                 "onnxruntime-attention-lowest-for-hidden.json": 6944})

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
        for name in ("target.answers", "cache.resident_range", "mask.visible_set",
                     "values.within_bound", "cache.split_invariance", "cache.rollback_exactness",
                     "cache.unspecified_rows", "heads.permutation"):
            self.assertGreater(judged[name], 20, name)


    def test_full_caches_hold_with_every_optional_input(self):
        result = self.kvcheck("run", "--target", "onnxruntime", "--focus", "gqa-full", "--cases",
                              150, "--seed", 1, "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        record = json.loads(result.stdout)
        judged = {entry["property"]: entry["scenarios"] for entry in record["properties"]}
        self.assertGreater(judged["values.within_bound"], 100)
        self.assertGreater(judged["values.qk_output"], 5)
        drawn = {item["name"]: item["hits"] for item in record["coverage"]}
        for words in ("rotary", "softcap", "sink", "quantised"):
            counts = [count for name, count in drawn.items() if words in name]
            self.assertGreater(sum(counts), 0, f"{words} in {sorted(drawn)}")

    def test_the_function_body_of_opset_25_holds(self):
        masked = {"kind": "boolean", "rank": 1, "hidden_percent": 30, "seed": 3}
        cases = [
            {"cache": {"window_size": 2}, "right_window_size": 0},
            {"causal": False, "cache": {"window_size": 3}, "right_window_size": 2},
            {"mask": masked}, {"mask": {**masked, "rank": 2, "one_query": True}},
            {"mask": {**masked, "rank": 2, "missing_columns": 1}},
            {"element_type": "f64", "softcap": 2.0}, {"element_type": "f16", "input_rank": 3},
            {"softmax_precision": "f16"}, {"qk_output": "biased"},
            {"steps": [{"past": 4}, {"append": 0, "queries": 2}, {"append": 2, "queries": 1}]}]
        for change in cases:
            with self.subTest(change=change):
                file = self.write("case.json", {**ATTENTION_25, **change})
                result = self.kvcheck("replay", file, "--target", "onnxruntime")
                self.assertEqual(result.returncode, HELD, result.stdout + result.stderr)

    def test_what_this_release_is_known_to_answer_wrongly(self):
        for name, (words, case) in divergences().items():
            with self.subTest(divergence=name):
                file = self.write("case.json", case)
                result = self.kvcheck("replay", file, "--target", "onnxruntime")
                self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stdout + result.stderr)
                self.assertIn(words, result.stdout)


# The base class has no test of its own and is not to be collected from here.
del CommandLine

if __name__ == "__main__":
    unittest.main()
