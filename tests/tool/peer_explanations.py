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
ONE_QUERY_MASK = "reference takes causality of query 0 for all under a mask of one query row"
RANK_1_MASK = "reference refuses a mask of rank 1 under causality without a window"
NO_BF16_SOFTMAX = "no softmax in bfloat16 on CPU"

F16_INFINITE = -65504.0 - 12  # about where a sum rounds to -infinity, which is at -65520

# The predictions are of double arithmetic; they only have to be told apart.
RECOGNISED = {"f16": 5e-2, "f32": 1e-3, "f64": 1e-3}


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

    def take(self, index, given):
        step = self.scenario["steps"][index]
        if "append" in step:
            tokens, queries = tokens_and_queries(step, self.batch)
            past = len(self.keys[0])
            self.skips_causality = (self.kernel and self.causal and not self.nonpad and past > 0
                                    and max(queries) == 1 and max(tokens) > 1)
        return super().take(index, given)

    @property
    def reference_mask_shape(self) -> bool:
        """Whether the reference joins causality to a mask before that has all its dimensions."""
        window = self.cache.get("window_size") is not None or "right_window_size" in self.scenario
        return self.peer == "onnx-attention" and self.causal and not window

    def allowed(self, positions, length):
        mask = self.scenario.get("mask", {"kind": "none"})
        if (self.reference_mask_shape and mask["kind"] != "none" and len(positions) > 1
                and mask.get("one_query", False)):
            self.applied.add(ONE_QUERY_MASK)
            positions = positions[:1] * len(positions)
        if not self.skips_causality:
            return super().allowed(positions, length)
        self.applied.add(CAUSAL_SKIPPED)
        return numpy.ones((len(positions), length), bool)

    def product(self, operands):
        raw, capped, *others = super().product(operands)
        if self.peer == "onnx-attention" and self.softcap and self.qk_kind == "raw":
            self.applied.add(RAW_IS_CAPPED)
            raw = capped
        self.capped = capped
        return raw, capped, *others

    def mask(self, entry, queries, total, given):
        result = super().mask(entry, queries, total, given)
        additive = self.scenario.get("mask", {"kind": "none"})["kind"] == "additive"
        self.minus_infinity = (result == -math.inf) & additive
        return result

    def widened(self, shown, positions, total):
        result = super().widened(shown, positions, total)
        if self.kernel and self.qk_kind == "biased":
            lowest = float(numpy.finfo(NUMPY[self.element]).min)
            # A mask's own -inf stays, unless causality or padding writes over it.
            reach = numpy.zeros(result.shape[1:], bool)
            reach[:, :shown.shape[2]] = self.allowed(positions, shown.shape[2])
            hidden = (result == -math.inf) & ~(self.minus_infinity & reach)
            if hidden.any():
                self.applied.add(LOWEST_FINITE)
            result = numpy.where(hidden, lowest, result)
            if self.element == "f16":
                # Added to the logit it may fall below the range of f16.
                below = lowest + numpy.minimum(self.capped, 0) < F16_INFINITE
                columns = slice(0, self.capped.shape[2])
                result[..., columns][hidden[..., columns] & below] = math.nan
        return result


def refusal_explained(answer: dict, peer: str, message: str) -> str | None:
    """Name of what explains that the peer refuses a step."""
    scenario = answer["scenario"]
    altered = Altered(scenario, peer)
    mask = scenario.get("mask", {"kind": "none"})
    if (altered.reference_mask_shape and mask["kind"] != "none" and mask["rank"] == 1
            and "not enough values to unpack" in message):
        return RANK_1_MASK
    if (peer == "onnxruntime-attention" and scenario.get("softmax_precision") == "bf16"
            and not altered.kernel and "Could not find an implementation" in message):
        return NO_BF16_SOFTMAX
    return None


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
            tolerance = RECOGNISED["f64" if peer.startswith("onnx-") else altered.element]
            if not agrees(told, values, tolerance):
                return set(), f"{sorted(altered.applied)} predict other {name} of entry {entry}"
    return altered.applied, ""


def specified_columns(scenario: dict) -> bool:
    """Whether qk_output is specified behind an entry's own tokens: logits of rows that hold no
    token are not, and with -inf added they are NaN if such a row holds NaN."""
    return not (scenario.get("nonpad_kv_seqlen", False)
                and scenario.get("qk_output") in ("raw", "softcapped", "biased"))


def agrees(told: numpy.ndarray, values: numpy.ndarray, tolerance: float) -> bool:
    unspecified = numpy.isnan(values)
    with numpy.errstate(invalid="ignore"):
        close = numpy.abs(told - values) <= tolerance * (1 + numpy.abs(values))
    return bool((close | (told == values) | unspecified).all())
