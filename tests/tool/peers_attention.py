"""ONNX Attention on the steps of a scenario, by ONNX Runtime (CPU) or by the reference of ONNX.

Two ways to keep a cache: past_key and past_value in, present_key and present_value out; or, with
nonpad_kv_seqlen, K and V are a whole buffer.
"""

import functools
import math

import numpy
from expected_attention import Expected, Operands, per_entry
from onnx.reference import ReferenceEvaluator
from peer_arrays import NUMPY, Observed, dense, heads_first, mask_array, tokens_and_queries
from peer_models import one_node_model, trimmed
from peers_onnxruntime import session

PRECISION = {"f32": 1, "f16": 10, "f64": 11, "bf16": 16}
MODES = {"raw": 0, "softcapped": 1, "biased": 2, "probabilities": 3}


class AttentionPeer:
    """Keeps the cache and prepares the calls; a subclass makes them."""

    def __init__(self, scenario: dict, element: str):
        self.scenario, self.element, self.dtype = scenario, element, NUMPY[element]
        self.batch, self.query_heads = scenario["batch"], scenario["query_heads"]
        self.kv_heads = scenario["kv_heads"]
        self.lanes = (scenario["head_size"], scenario.get("value_head_size",
                                                          scenario["head_size"]))
        self.nonpad = scenario.get("nonpad_kv_seqlen", False)
        self.rank = scenario.get("input_rank", 4)
        self.lengths = [0] * self.batch
        rows = scenario["cache"]["capacity"] if self.nonpad else 0
        # Rows without a token hold something finite that would show.
        self.past = [numpy.full((self.batch, self.kv_heads, rows, lanes), 7, self.dtype)
                     for lanes in self.lanes]

    def answer(self, index: int, given: dict) -> Observed | None:
        step = self.scenario["steps"][index]
        if "rollback" in step:
            dropped = per_entry(step["rollback"], self.batch)
            self.lengths = [length - less for length, less in zip(self.lengths, dropped)]
            if not self.nonpad:
                self.past = [rows[:, :, :self.lengths[0]] for rows in self.past]
            return None
        if "past" in step:
            self.put(per_entry(step["past"], self.batch), given)
            return None
        tokens, queries = tokens_and_queries(step, self.batch)
        return self.attend(tokens, max(queries), given)

    def put(self, tokens: list[int], given: dict) -> None:
        """Tokens behind those that are there."""
        for which, name in enumerate(("k", "v")):
            rows = heads_first(dense(given[name], max(tokens), self.kv_heads, self.lanes[which],
                                     self.dtype))
            if not self.nonpad:
                self.past[which] = numpy.concatenate((self.past[which], rows), axis=2)
                continue
            for entry, (length, count) in enumerate(zip(self.lengths, tokens)):
                self.past[which][entry, :, length:length + count] = rows[entry, :, :count]
        self.lengths = [length + count for length, count in zip(self.lengths, tokens)]

    def attend(self, tokens: list[int], queries: int, given: dict) -> Observed:
        feeds = {"Q": dense(given["q"], queries, self.query_heads, self.lanes[0], self.dtype)}
        if self.nonpad:
            self.put(tokens, given)
            feeds["K"], feeds["V"] = (rows.transpose(0, 2, 1, 3) for rows in self.past)
            feeds["nonpad_kv_seqlen"] = numpy.array(self.lengths, numpy.int64)
        else:
            for name, lanes in zip(("K", "V"), self.lanes):
                feeds[name] = dense(given[name.lower()], tokens[0], self.kv_heads, lanes,
                                    self.dtype)
            if self.lengths[0]:
                feeds["past_key"], feeds["past_value"] = map(numpy.ascontiguousarray, self.past)
        for name in ("Q", "K", "V"):
            array = feeds[name]
            feeds[name] = (heads_first(array) if self.rank == 4
                           else array.reshape(array.shape[0], array.shape[1], -1))
        if "mask" in given:
            feeds["attn_mask"] = mask_array(given["mask"], self.dtype)
        results = self.call(feeds)
        if not self.nonpad:
            self.past = results[1:3]
            self.lengths = [length + count for length, count in zip(self.lengths, tokens)]
        output = results[0].astype(float)
        output = (output.transpose(0, 2, 1, 3) if self.rank == 4 else
                  output.reshape(self.batch, queries, self.query_heads, self.lanes[1]))
        shown = results[-1].astype(float) if "qk_matmul_output_mode" in self.attributes else None
        return Observed(output, shown)

    @functools.cached_property
    def attributes(self) -> dict:
        scenario = self.scenario
        result = {"is_causal": int(scenario.get("causal", True))}
        for name in ("scale", "softcap"):
            if name in scenario:
                result[name] = float(scenario[name])
        if self.rank == 3:
            result.update(q_num_heads=self.query_heads, kv_num_heads=self.kv_heads)
        window = scenario.get("cache", {}).get("window_size")
        if window is not None:
            result["left_window_size"] = window - 1
        if "right_window_size" in scenario:
            result["right_window_size"] = scenario["right_window_size"]
        shown = scenario.get("qk_output", "none")
        if shown != "none":
            result["qk_matmul_output_mode"] = MODES[shown]
        return result

    def places(self, feeds: dict) -> tuple[tuple, tuple]:
        """Inputs and outputs of the node."""
        kind, rank = self.element, self.rank
        mask = feeds.get("attn_mask")
        places = [("Q", kind, rank), ("K", kind, rank), ("V", kind, rank),
                  None if mask is None else
                  ("attn_mask", "bool" if mask.dtype == bool else kind, mask.ndim),
                  ("past_key", kind, 4), ("past_value", kind, 4), ("nonpad_kv_seqlen", "i64", 1)]
        inputs = [place if place and place[0] in feeds else None for place in places]
        outputs = [("Y", kind, rank)]
        outputs += [None, None] if self.nonpad else [("present_key", kind, 4),
                                                     ("present_value", kind, 4)]
        if "qk_matmul_output_mode" in self.attributes:
            outputs.append(("qk_matmul_output", kind, 4))
        return trimmed(inputs), trimmed(outputs)

    def call(self, feeds: dict) -> list[numpy.ndarray]:
        raise NotImplementedError


class OnnxRuntimeAttention(AttentionPeer):
    """In the element type of the scenario."""

    def __init__(self, scenario: dict):
        super().__init__(scenario, scenario["element_type"])

    def call(self, feeds: dict) -> list[numpy.ndarray]:
        attributes = dict(self.attributes)
        if "softmax_precision" in self.scenario:
            attributes["softmax_precision"] = PRECISION[self.scenario["softmax_precision"]]
        inputs, outputs = self.places(feeds)
        model = session("Attention", "", self.scenario["opset"],
                        tuple(sorted(attributes.items())), inputs, outputs)
        return model.run(None, feeds)


@functools.lru_cache(maxsize=4096)
def evaluator(opset: int, attributes: tuple, inputs: tuple, outputs: tuple) -> ReferenceEvaluator:
    return ReferenceEvaluator(one_node_model("Attention", "", opset, attributes, inputs, outputs))


class ReferenceAttention(AttentionPeer):
    """In double, so that nothing but the definition is compared."""

    def __init__(self, scenario: dict):
        super().__init__(scenario, "f64")

    def call(self, feeds: dict) -> list[numpy.ndarray]:
        inputs, outputs = self.places(feeds)
        reference = evaluator(self.scenario["opset"], tuple(sorted(self.attributes.items())),
                              inputs, outputs)
        with numpy.errstate(all="ignore"):
            return reference.run(None, feeds)


class ReferenceGqa(Expected):
    """GroupQueryAttention as Attention in double: of rotated queries and stored keys, under one
    additive mask. A sink is one more key of zeros, and its logit stands in the mask."""

    OPSET = 23
    INPUTS = (("Q", "f64", 4), ("K", "f64", 4), ("V", "f64", 4), ("attn_mask", "f64", 4))
    OUTPUTS = (("Y", "f64", 4), None, None, ("qk_matmul_output", "f64", 4))

    def answer(self, index: int, given: dict) -> Observed | None:
        answer = super().answer(index, given)
        if not any(answer.positions):
            return None
        width = max(map(len, answer.positions))
        outputs = dense([list(rows) for rows in answer.outputs], width, self.query_heads,
                        self.head_size)
        return Observed(outputs, answer.qk_output)

    def product(self, operands: Operands) -> tuple[numpy.ndarray, ...]:
        if not operands.queries.size:
            return super().product(operands)
        keys, values, bias = operands.keys, operands.values, operands.bias
        if numpy.isfinite(operands.sinks).any():
            keys, values = (numpy.concatenate((rows, numpy.zeros((1,) + rows.shape[1:])))
                            for rows in (keys, values))
            column = numpy.broadcast_to(operands.sinks.reshape(-1, 1, 1), bias.shape[:2] + (1,))
            bias = numpy.concatenate((bias, column), axis=2)
        attributes = {"softcap": float(self.softcap),
                      "qk_matmul_output_mode": 3 if self.qk_kind == "probabilities" else 2}
        if "scale" in self.scenario:
            attributes["scale"] = self.scale
        reference = evaluator(self.OPSET, tuple(sorted(attributes.items())), self.INPUTS,
                              self.OUTPUTS)
        with numpy.errstate(all="ignore"):
            output, shown = reference.run(None, {
                "Q": operands.queries.transpose(1, 0, 2)[None],
                "K": keys.transpose(1, 0, 2)[None], "V": values.transpose(1, 0, 2)[None],
                "attn_mask": bias[None]})
        shown = shown[0, :, :, :operands.keys.shape[0]]
        unused = numpy.full_like(shown, math.nan)
        logits, weights = {"biased": (shown, unused), "probabilities": (unused, shown),
                           "none": (unused, unused)}[self.qk_kind]
        return unused, unused, logits, weights, output[0].transpose(1, 0, 2)
