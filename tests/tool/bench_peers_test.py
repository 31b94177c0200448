"""The workers of the benchmarks' peers compute attention on the data that both ends share.

Run by a Python that has numpy; each worker runs in its own environment, and is left out where there
is none.
"""

import json
import math
import pathlib
import subprocess
import sys
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "kernels/bench/peers"
sys.path.insert(0, str(PEERS))
import peer_worker  # noqa: E402

CASE = {"operation": "decode", "query_heads": 8, "kv_heads": 2, "head_size": 64,
        "element_type": "f32", "T": 40, "window": 0, "capacity": 0, "seed": 3}


def expected(case):
    """Outputs of the last query, from the definition."""
    keys, values = (case.cache_values(tensor, 0, case.length, numpy.float64)
                    for tensor in (peer_worker.KEY, peer_worker.VALUE))
    query = case.queries(case.length - 1, case.length, numpy.float64)[0]
    begin = max(0, case.length - case.window) if case.window else 0
    output = []
    for head in range(case.query_heads):
        logits = keys[head // case.group, begin:] @ query[head] / math.sqrt(case.head_size)
        weights = numpy.exp(logits - logits.max())
        output.append(weights @ values[head // case.group, begin:] / weights.sum())
    return numpy.array(output)


class Worker:
    def __init__(self, name):
        python = ROOT / "build/environments" / name / "bin/python"
        self.process = subprocess.Popen([str(python), "-B", str(PEERS / f"{name}_peer.py")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.greeting = json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(20)

    def ask(self, **changes):
        fields = {**CASE, **changes}
        request = {"case": fields, "seconds": 0.01, "output": True}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class BenchPeers(unittest.TestCase):
    def check(self, worker, tolerance, **changes):
        answer = worker.ask(**changes)
        self.assertNotIn("refused", answer, changes)
        self.assertTrue(answer["times"] and min(answer["times"]) > 0)
        right = expected(peer_worker.Case({**CASE, **changes}))
        found = numpy.array(answer["output"]).reshape(right.shape)
        self.assertLess(numpy.abs(found - right).max() / numpy.abs(right).max(), tolerance, changes)

    def worker(self, name):
        if not (ROOT / "build/environments" / name / "ready").exists():
            self.skipTest(f"there is no environment of {name}")
        return Worker(name)

    def test_codes_are_the_top_bytes_of_splitmix64(self):
        # First outputs of the published generator for the states 0 and 1234567.
        self.assertEqual(peer_worker.codes(0, 0, 0, 1)[0], (0xE220A8397B1DCDAF >> 56) - 128)
        self.assertEqual(peer_worker.codes(0, 0, 1234567, 1)[0], (6457827717110365317 >> 56) - 128)
        parts = [peer_worker.codes(5, 1, begin, 10) for begin in (0, 10)]
        self.assertTrue((numpy.concatenate(parts) == peer_worker.codes(5, 1, 0, 20)).all())
        self.assertEqual(peer_worker.codes(1, 1, 0, 100000).min(), -127)

    def test_onnxruntime(self):
        with self.worker("onnxruntime") as worker:
            self.assertEqual(worker.greeting["peer"], "onnxruntime")
            self.check(worker, 1e-5)
            self.check(worker, 1e-5, operation="prefill")
            self.check(worker, 1e-5, window=10)
            self.check(worker, 1e-5, operation="windowed", window=10, capacity=14)
            self.check(worker, 1e-2, element_type="f16")
            self.check(worker, 1e-4, element_type="int8")
            self.check(worker, 1e-4, element_type="int4")
            self.assertIn("bf16", worker.ask(element_type="bf16")["refused"])

    def test_openvino(self):
        with self.worker("openvino") as worker:
            self.assertEqual(worker.greeting["peer"], "openvino")
            self.check(worker, 1e-5)
            self.check(worker, 1e-5, T=700)
            self.check(worker, 1e-5, operation="prefill")
            self.check(worker, 1e-5, window=10)
            self.check(worker, 1e-2, element_type="f16")
            self.check(worker, 5e-2, element_type="bf16", operation="prefill")
            self.check(worker, 5e-2, element_type="int8")
            self.assertIn("windowed", worker.ask(operation="windowed", capacity=14)["refused"])

    def test_jax(self):
        with self.worker("jax") as worker:
            self.assertEqual(worker.greeting["peer"], "jax")
            self.check(worker, 1e-5)
            self.check(worker, 1e-5, operation="prefill")
            self.check(worker, 5e-2, element_type="bf16")
            self.assertIn("full f32", worker.ask(element_type="int8")["refused"])


if __name__ == "__main__":
    unittest.main()
