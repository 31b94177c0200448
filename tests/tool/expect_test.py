"""The exact model against a second computation (expected_attention.py) on random scenarios of every
feature of both operators."""

import json
import os
import random
import unittest

import numpy
import random_cases
from expect_program import expected_answers
from expected_attention import Expected, as_numbers

CASES = int(os.environ.get("KVCHECK_EXPECT_CASES", "600"))
SEED = int(os.environ.get("KVCHECK_EXPECT_SEED", "1"))
BATCH = 200
# Both sides compute in double or better from the same exact inputs.
TOLERANCE = 1e-10


class Differs(Exception):
    """The model and the second computation disagree."""


def rounds_keys(scenario: dict) -> bool:
    """Whether a stored key is rounded, so that a tie may fall to either side."""
    quantised = scenario.get("cache", {}).get("quantisation", {}).get("kind", "none") != "none"
    return quantised or "rotary" in scenario or "qk_norm" in scenario


class Comparison:
    """Compares the answers to one scenario; keeps the largest difference of exact ones."""

    def __init__(self):
        self.largest = 0.0
        self.elements = 0
        self.rounded_apart = 0

    def compare(self, answer: dict) -> None:
        scenario = answer["scenario"]
        expected = Expected(scenario)
        for index, step in enumerate(answer["steps"]):
            if not step["defined"]:
                raise Differs(f"step {index} is undefined")
            own = expected.answer(index, step)
            self.require(own.lengths == step["T"], index, "T", own.lengths, step["T"])
            self.compare_resident(expected, own, step)
            if any(own.positions):
                self.compare_visible(own, step)
                self.compare_values(scenario, own, step)

    @staticmethod
    def require(holds, *what) -> None:
        if not holds:
            raise Differs("step " + ": ".join(map(str, what)))

    def compare_resident(self, expected, own, step) -> None:
        rows = [expected.resident_rows(length) for length in own.lengths]
        wanted = [{"batch": entry, "first_position": length - count, "rows": count}
                  for entry, (length, count) in enumerate(zip(own.lengths, rows))]
        self.require(step["resident"] == wanted, step["step"], "resident", wanted, step["resident"])

    def compare_visible(self, own, step) -> None:
        """Every query of every entry is listed once, or once for every head."""
        told = {}
        for item in step["visible"]:
            key = (item["batch"], item["query_position"])
            told.setdefault(key, {})[item.get("head")] = item["keys"]
        wanted = {(entry, position) for entry, positions in enumerate(own.positions)
                  for position in positions}
        self.require(set(told) == wanted, step["step"], "queries", sorted(wanted), sorted(told))
        for entry, positions in enumerate(own.positions):
            for query, position in enumerate(positions):
                for head, seen in enumerate(own.visible[entry][:, query]):
                    heads = told[(entry, position)]
                    keys = heads[None] if None in heads else heads[head]
                    self.require(keys == numpy.flatnonzero(seen).tolist(), step["step"],
                                 f"visible of entry {entry}, head {head}, position {position}",
                                 numpy.flatnonzero(seen).tolist(), keys)

    def compare_values(self, scenario, own, step) -> None:
        pairs = [("outputs", own.outputs, "bound")]
        if own.qk_output is not None:
            pairs.append(("qk_output", own.qk_output, "qk_bound"))
        for name, computed, bound in pairs:
            for entry, values in enumerate(computed):
                told = array_of(step[name][entry]).reshape(values.shape)
                allowed = TOLERANCE * (1 + numpy.abs(values))
                if rounds_keys(scenario):
                    allowed = TOLERANCE + array_of(step[bound][entry]).reshape(values.shape)
                self.compare_arrays(f"{step['step']}: {name} of entry {entry}", values, told,
                                    allowed)

    def compare_arrays(self, where, values, told, allowed) -> None:
        finite = numpy.isfinite(values)
        unspecified = numpy.isnan(values)
        wrong = ~finite & ~unspecified & (told != values)
        difference = numpy.abs(numpy.where(finite, told - numpy.where(finite, values, 0), 0))
        wrong |= ~(difference <= allowed) & finite
        if wrong.any():
            at = tuple(numpy.argwhere(wrong)[0])
            raise Differs(f"step {where} at {[int(i) for i in at]}: model {told[at]}, "
                          f"second computation {values[at]}, allowed {allowed[at]}")
        small = difference <= TOLERANCE * (1 + numpy.abs(told))
        self.rounded_apart += int((~small & finite).sum())
        self.elements += values.size
        self.largest = max(self.largest, float(difference[small & finite].max(initial=0)))


def array_of(nested) -> numpy.ndarray:
    return numpy.array(as_numbers(nested), float)


class Expect(unittest.TestCase):
    def test_random_scenarios_agree_with_a_second_computation(self):
        rng = random.Random(SEED)
        comparison, failures = Comparison(), []
        for start in range(0, CASES, BATCH):
            scenarios = [random_cases.draw(rng) for _ in range(min(BATCH, CASES - start))]
            for scenario, answer in zip(scenarios, expected_answers(scenarios)):
                if "error" in answer:
                    failures.append((answer["error"], scenario))
                    continue
                try:
                    comparison.compare(answer)
                except Differs as difference:
                    failures.append((str(difference), scenario))
        print(f"\nexpect: {CASES} scenarios, {comparison.elements} elements, largest difference "
              f"{comparison.largest:.3g}; {comparison.rounded_apart} elements behind a key that "
              "rounds the other way")
        for reason, scenario in failures[:5]:
            print(f"{reason}\n  {json.dumps(scenario)}")
        self.assertEqual(len(failures), 0, f"{len(failures)} of {CASES} scenarios differ")


if __name__ == "__main__":
    unittest.main()
