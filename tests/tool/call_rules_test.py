"""The rules of operator calls against ONNX Runtime: calls that keep them run, and calls that break
one are refused in the words of that rule. Registered where its Python environment is there."""

import json
import os
import pathlib
import subprocess
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = os.environ.get("KVCHECK_ONNXRUNTIME_PYTHON",
                        str(ROOT / "build" / "environments" / "onnxruntime" / "bin" / "python"))
ENDED = "ended"


def ask(calls):
    """What ONNX Runtime says of each call: ENDED where its process dies, else the two texts of
    call_worker.py. After a death the rest goes to a new process."""
    answers = []
    while len(answers) < len(calls):
        lines = "".join(json.dumps(call) + "\n" for call in calls[len(answers):])
        worker = subprocess.run([PYTHON, "-B", str(HERE / "call_worker.py")], input=lines,
                                capture_output=True, text=True, timeout=100, check=False)
        answers += [json.loads(line) for line in worker.stdout.splitlines()]
        if len(answers) < len(calls):
            if worker.returncode > 0:  # Not by a signal: its own mistake.
                raise RuntimeError(worker.stderr)
            answers.append(ENDED)
    return answers


class CallRules(unittest.TestCase):
    maxDiff = None

    def cases(self, answer):
        """(case, what ONNX Runtime says) of every case of that answer."""
        listed = json.loads(subprocess.run([os.environ["KVCHECK_CALL_CASES"]], capture_output=True,
                                           check=True).stdout)
        cases = [case for case in listed if case["answer"] == answer]
        self.assertTrue(cases)
        return zip(cases, ask([case["call"] for case in cases]))

    def test_calls_that_keep_the_rules_are_accepted(self):
        for case, said in self.cases("accepts"):
            with self.subTest(case["name"]):
                self.assertEqual(said, [None, None])

    def test_broken_rules_are_refused_in_their_words(self):
        for case, said in self.cases("refuses"):
            with self.subTest(case["name"]):
                self.assertTrue(case["phrase"])
                self.assertNotEqual(said, ENDED)
                declared, bare = said
                self.assertIsNotNone(declared)
                # Some rules are told at load where the shapes are declared, others by the kernel.
                self.assertIn(case["phrase"], declared + (bare or ""))

    def test_it_accepts_some_calls_that_break_a_rule(self):
        for case, said in self.cases("accepts although broken"):
            with self.subTest(case["name"]):
                self.assertEqual(said, [None, None])

    def test_it_does_not_survive_some_calls(self):
        for case, said in self.cases("ends"):
            with self.subTest(case["name"]):
                self.assertEqual(said, ENDED)


if __name__ == "__main__":
    unittest.main()
