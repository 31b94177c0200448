"""Known differences of the peers from the contract (its section 4), each as a prediction.

An explanation applies to a step of a scenario by its predicate. Whether it explains what was
observed is decided by values: the second computation is run with the difference built in, and what
it gives must be what the peer answered.
"""

import math

import numpy
from expected_attention import Expected
from peer_arrays import NUMPY, tokens_and_queries

CAUSAL_SKIPPED = "4.1 causal mask skipped for one query behind a past"
RAW_IS_CAPPED = "4.2 reference shows capped logits in mode 0"
LOWEST_FINITE = "4.6 mode 2 shows the lowest finite value where a key is hidden"

# The predictions are of double arithmetic; they only have to be told apart.
RECOGNISED = 1e-3


class Altered(Expected):
    """The second computation with differences of a peer."""

    def __init__(self, scenario: dict, peer: str):
        super().__init__(scenario)
        self.peer = peer
        self.applied: set[str] = set()
        self.skips_causality = False

    @property
    def kernel(self) -> bool:
        """Whether ONNX Runtime has a kernel, and not only the function body."""
        return (self.peer == "onnxruntime-attention" and self.scenario["opset"] < 25
                and self.element in ("f32", "f16"))

    def append(self, step, given):
        tokens, queries = tokens_and_queries(step, self.batch)
        past = len(self.keys[0])
        self.skips_causality = (self.kernel and self.causal and not self.nonpad and past > 0
                                and max(queries) == 1 and max(tokens) > 1)
        return super().append(step, given)

    def allowed(self, positions, length):
        if not self.skips_causality:
            return super().allowed(positions, length)
        self.applied.add(CAUSAL_SKIPPED)
        return numpy.ones((len(positions), length), bool)

    def product(self, operands):
        raw, capped, *others = super().product(operands)
        if self.peer == "onnx-attention" and self.softcap and self.qk_kind == "raw":
            self.applied.add(RAW_IS_CAPPED)
            raw = capped
        return raw, capped, *others

    def widened(self, shown, positions, total):
        result = super().widened(shown, positions, total)
        if self.kernel and self.qk_kind == "biased":
            lowest = float(numpy.finfo(NUMPY[self.element]).min)
            hidden = result == -math.inf
            if hidden.any():
                self.applied.add(LOWEST_FINITE)
            result = numpy.where(hidden, lowest, result)
        return result


def explained(answer: dict, index: int, peer: str, observed: list) -> tuple[set[str], str]:
    """Names of what explains step `index` of `answer`; empty with a reason if nothing does.

    observed: for each entry the outputs [query, head, lane] and qk_output [head, query, key] or
    None.
    """
    altered = Altered(answer["scenario"], peer)
    for step in answer["steps"][:index + 1]:
        altered.applied = set()
        predicted = altered.answer(step["step"], step)
    if not altered.applied:
        return set(), "no explanation applies"
    for entry, (outputs, shown) in enumerate(observed):
        pairs = [("outputs", outputs, predicted.outputs[entry])]
        if shown is not None:
            pairs.append(("qk_output", shown, predicted.qk_output[entry]))
        for name, told, values in pairs:
            if not agrees(told, values):
                return set(), f"{sorted(altered.applied)} predict other {name} of entry {entry}"
    return altered.applied, ""


def agrees(told: numpy.ndarray, values: numpy.ndarray) -> bool:
    unspecified = numpy.isnan(values)
    with numpy.errstate(invalid="ignore"):
        close = numpy.abs(told - values) <= RECOGNISED * (1 + numpy.abs(values))
    return bool((close | (told == values) | unspecified).all())
