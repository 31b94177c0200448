"""The exact model against peers on random scenarios: the reference of ONNX and ONNX Runtime.

KVCHECK_PEER_CASES scenarios for each peer. Every difference must be one that the contract lists, by
values (peer_explanations.py); any other fails and prints its scenario.
"""

import collections
import json
import os
import random
import unittest

import numpy
import random_cases
from expect_program import expected_answers
from expect_test import array_of, rounds_keys
from expected_attention import Expected
from peer_explanations import explained, refusal_explained, specified_columns
from peer_tolerances import attention_rule, rotated_keys_rule
from peers_attention import OnnxRuntimeAttention, ReferenceAttention, ReferenceGqa
from peers_onnxruntime import GqaPeer
from random_cases import Profile

CASES = int(os.environ.get("KVCHECK_PEER_CASES", "100"))
SEED = int(os.environ.get("KVCHECK_PEER_SEED", "1"))
BATCH = 250
LONGEST, STEPS = 24, 4  # tokens of an entry, steps of a scenario
EXACT = 1e-10  # of peers that compute in double

PEERS = {
    "onnx-attention": (ReferenceAttention, Profile(
        operator="attention", longest=LONGEST, steps=STEPS)),
    "onnx-gqa": (ReferenceGqa, Profile(operator="gqa", longest=LONGEST, steps=STEPS)),
    "onnxruntime-attention": (OnnxRuntimeAttention, Profile(
        operator="attention", types=("f32", "f32", "f32", "f16", "f64"), exact_masks=True,
        longest=LONGEST, steps=STEPS)),
    "onnxruntime-gqa": (GqaPeer, Profile(
        operator="gqa", types=("f32", "f32", "f16"), head_sizes=(8, 16, 24, 32),
        rotary_head_sizes=(16, 32), rotary_dim_multiple=16, quantised_head_sizes=(32,),
        quantisations=("int8", "int4"), norm=False, longest=LONGEST, steps=STEPS)),
}


class Judge:
    """Compares one peer's answers; counts differences by explanation."""

    def __init__(self, name: str):
        self.name, (self.peer, self.profile) = name, PEERS[name]
        self.elements = self.rows = 0
        self.largest = 0.0  # share of what is allowed
        self.explanations = collections.Counter()
        self.failures: list[tuple[str, dict]] = []

    def judge(self, answer: dict) -> None:
        scenario = answer["scenario"]
        peer = self.peer(scenario)
        cache = Expected(scenario) if self.peer is GqaPeer else None
        for index, step in enumerate(answer["steps"]):
            try:
                observed = peer.answer(index, step)
            except Exception as error:  # the peer refuses, in whatever words
                self.refused(answer, index, f"{type(error).__name__}: {error}")
                return
            if cache is not None:
                cache.take(index, step)
                self.judge_rows(scenario, cache, peer, step)
            if observed is None or not any(step["outputs"]):
                continue
            difference = self.difference(answer, step, observed)
            if difference is not None:
                names, reason = explained(answer, index, self.name,
                                          self.by_entry(step, observed))
                self.explanations.update(names)
                if not names:
                    self.failures.append((f"step {index}: {difference}; {reason}", scenario))
                    return

    def judge_rows(self, scenario: dict, cache: Expected, peer: GqaPeer, step: dict) -> None:
        """The rows of the cache hold the resident tokens in order (contract 3.1)."""
        if "k_scale" not in step and peer.kind != "none" or peer.loaded is not None:
            return
        for entry, length in enumerate(step["T"]):
            count = cache.resident_rows(length)
            for which, tokens in enumerate((cache.keys[entry], cache.values[entry])):
                wanted = numpy.array(tokens[length - count:]).reshape(count, peer.kv_heads,
                                                                      peer.lanes)
                allowed = 0.0
                if which == 0:
                    code = 0.0 if peer.kind == "none" else numpy.array(step["k_scale"])
                    allowed = rotated_keys_rule(scenario, wanted, code)
                rows = peer.rows(which, entry, step)[:count]
                if not (numpy.abs(rows - wanted) <= allowed).all():
                    self.failures.append((f"step {step['step']}: rows of "
                                          f"{('keys', 'values')[which]} of entry {entry} differ",
                                          scenario))
                    return
                self.rows += count

    def refused(self, answer: dict, index: int, message: str) -> None:
        name = refusal_explained(answer, self.name, message)
        if name is None:
            self.failures.append((f"step {index}: {message[-300:]}", answer["scenario"]))
        else:
            self.explanations[name] += 1

    @staticmethod
    def by_entry(step: dict, observed) -> list:
        result = []
        for entry, rows in enumerate(step["outputs"]):
            count, shown = len(rows), observed.qk_output
            result.append((observed.outputs[entry][:count],
                           None if shown is None else shown[entry][:, :count]))
        return result

    def difference(self, answer: dict, step: dict, observed) -> str | None:
        """The first element that is further off than allowed."""
        for entry, (outputs, shown) in enumerate(self.by_entry(step, observed)):
            if not outputs.size:
                continue
            pairs = [("outputs", outputs, "bound")]
            if shown is not None:
                pairs.append(("qk_output", shown, "qk_bound"))
            for name, values, bound in pairs:
                told = array_of(step[name][entry])
                allowed = self.allowed(answer, step, entry, name, told,
                                       array_of(step[bound][entry]))
                if name == "qk_output" and not specified_columns(answer["scenario"]):
                    live = slice(0, step["T"][entry])
                    told, values, allowed = told[..., live], values[..., live], allowed[..., live]
                found = self.compare(told, values, allowed)
                if found:
                    return f"{name} of entry {entry} {found}"
        return None

    def allowed(self, answer, step, entry, name, told, bound) -> numpy.ndarray:
        scenario = answer["scenario"]
        if self.name.startswith("onnx-"):
            exact = EXACT * (1 + numpy.where(numpy.isfinite(told), numpy.abs(told), 0))
            return exact + bound if rounds_keys(scenario) else exact
        if self.name == "onnxruntime-attention":
            return bound + attention_rule(answer, step["step"], entry, name)
        return bound

    def compare(self, told, values, allowed) -> str | None:
        if told.shape != values.shape:
            return f"has shape {values.shape}, model {told.shape}"
        finite = numpy.isfinite(told) & numpy.isfinite(values)
        difference = numpy.abs(numpy.where(finite, told, 0) - numpy.where(finite, values, 0))
        wrong = numpy.where(finite, ~(difference <= allowed), told != values)
        if wrong.any():
            at = tuple(numpy.argwhere(wrong)[0])
            return (f"at {list(map(int, at))}: peer {values[at]}, model {told[at]}, "
                    f"allowed {allowed[at]}")
        self.elements += values.size
        share = difference / numpy.where(allowed > 0, allowed, 1)
        self.largest = max(self.largest, float(share[finite].max(initial=0)))
        return None


class Peers(unittest.TestCase):
    def compare_with(self, name: str) -> None:
        rng, judge = random.Random(SEED), Judge(name)
        for start in range(0, CASES, BATCH):
            scenarios = [random_cases.draw(rng, judge.profile)
                         for _ in range(min(BATCH, CASES - start))]
            for scenario, answer in zip(scenarios, expected_answers(scenarios)):
                if "error" in answer:
                    judge.failures.append((answer["error"], scenario))
                else:
                    judge.judge(answer)
        rows = f", {judge.rows} rows of the cache" if judge.rows else ""
        print(f"\n{name}: {CASES} scenarios, {judge.elements} elements agree{rows}, at most "
              f"{judge.largest:.3f} of what is allowed")
        for explanation, count in sorted(judge.explanations.items()):
            print(f"  {count} steps: {explanation}")
        for reason, scenario in judge.failures[:10]:
            print(f"  UNEXPLAINED {reason}\n    {json.dumps(scenario)}")
        self.assertEqual(len(judge.failures), 0, f"{len(judge.failures)} unexplained")

    def test_attention_of_the_onnx_reference(self):
        self.compare_with("onnx-attention")

    def test_gqa_as_attention_of_the_onnx_reference(self):
        self.compare_with("onnx-gqa")

    def test_attention_of_onnx_runtime(self):
        self.compare_with("onnxruntime-attention")

    def test_gqa_of_onnx_runtime(self):
        self.compare_with("onnxruntime-gqa")


if __name__ == "__main__":
    unittest.main()
