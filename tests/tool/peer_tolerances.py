"""How far Attention of ONNX Runtime may be from the exact answer where it stores narrower values.

The bound of `expect` is for plain float32 arithmetic. In f16 the operator stores logits and weights
in f16; without a kernel (opset 25, f64) the function body scales both operands, rounds after every
node, and takes the softmax in softmax_precision. The rule adds up those roundings in the way of the
running bound: a shared error of weight j moves the output by w_j (v_j - o) times it.
"""


import numpy
from expected_attention import Expected

UNIT = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
LEAST = {"f16": 2.0**-25, "bf16": 2.0**-134, "f32": 2.0**-150, "f64": 0.0}  # half the least number
LARGEST_EXPONENT = 20.0


class Roundings(Expected):
    """Adds up what stored logits and weights may be off."""

    def __init__(self, scenario: dict):
        super().__init__(scenario)
        body = scenario["opset"] >= 25 or self.element == "f64"
        precision = scenario.get("softmax_precision", self.element) if body else self.element
        # Both operands are scaled by the root of scale, taken in float and cast.
        self.operand_unit = 4 * UNIT[self.element] + 2 * UNIT["f32"] if body else 0.0
        self.unit = max(UNIT[self.element], UNIT[precision])
        self.least = max(LEAST[self.element], LEAST[precision])
        self.entries: list[dict] = []

    def answer(self, index, given):
        self.entries = []
        return super().answer(index, given)

    def product(self, operands):
        raw, capped, logits, weights, output = super().product(operands)
        group = self.query_heads // self.kv_heads
        values = operands.values.repeat(group, axis=1)
        magnitude = self.scale * numpy.einsum("qhd,khd->hqk", numpy.abs(operands.queries),
                                              numpy.abs(operands.keys).repeat(group, axis=1))
        seen = numpy.isfinite(logits)
        largest = numpy.abs(numpy.where(seen, logits, 0))
        bias = numpy.abs(numpy.where(numpy.isfinite(operands.bias), operands.bias, 0))
        # Operands, product, cap (two nodes and the division), sum with the mask, shift.
        raw_off = self.operand_unit * magnitude + self.unit * numpy.abs(raw) + self.least
        capped_off = raw_off + 3 * self.unit * numpy.abs(raw) if self.softcap else raw_off
        logit_off = capped_off + self.unit * (bias + 2 * largest + largest.max(initial=0))
        off = numpy.expm1(numpy.minimum(logit_off + 2 * self.unit, LARGEST_EXPONENT))
        mean = (weights * off).sum(axis=2, keepdims=True)
        relative = (off + mean) / numpy.maximum(1 - mean, 0.5)
        weights_off = weights * (relative + 2 * self.unit) + 2 * self.least
        spread = numpy.abs(values.transpose(1, 0, 2))[:, None]
        output_off = (weights_off[..., None] * spread).sum(axis=2).transpose(1, 0, 2)
        output_off += 2 * self.unit * numpy.abs(output) + self.least
        self.entries.append({"outputs": output_off, "raw": raw_off, "softcapped": capped_off,
                             "biased": logit_off, "probabilities": weights_off})
        return raw, capped, logits, weights, output


def attention_rule(answer: dict, index: int, entry: int, name: str) -> numpy.ndarray | float:
    """Addition to the bound of `outputs` or `qk_output` of one entry."""
    scenario = answer["scenario"]
    body = scenario["opset"] >= 25 or scenario["element_type"] == "f64"
    if scenario["element_type"] != "f16" and not body:
        return 0.0
    cached = answer.get("roundings")
    if cached is None:
        cached = answer["roundings"] = []
        roundings = Roundings(scenario)
        for step in answer["steps"]:
            roundings.answer(step["step"], step)
            cached.append(list(roundings.entries))
    off = cached[index][entry]
    if name == "outputs":
        return off["outputs"]
    shown = off[scenario["qk_output"]]
    total = numpy.array(answer["steps"][index]["qk_output"][entry]).shape[-1]
    return numpy.pad(shown, [(0, 0), (0, 0), (0, total - shown.shape[2])],
                     constant_values=0.0)




def rotated_keys_rule(scenario: dict, keys: numpy.ndarray, step: numpy.ndarray | float) -> float:
    """How far a rotated key in the cache may be off: three roundings in the element type, of terms
    that are no larger than twice the largest lane; then one quantisation step where a code turns.
    """
    if "rotary" not in scenario:
        return 0.0
    largest = numpy.abs(keys).max(initial=0)
    return 2 * 3 * UNIT[scenario["element_type"]] * 2 * largest + numpy.max(step)
