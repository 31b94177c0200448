"""GroupQueryAttention of ONNX Runtime (CPU) on the steps of a scenario.

Every step is one call on the buffers that the call before left: past and present as one buffer or
as two, rollbacks by smaller lengths alone. Sessions are kept by attributes.
"""

import functools

import numpy
import onnxruntime
from expected_attention import per_entry
from peer_arrays import (NUMPY, Observed, codes, dense, mask_array, packed, tokens_and_queries,
                         unpacked)
from peer_models import one_node_model, trimmed

onnxruntime.set_default_logger_severity(4)


@functools.lru_cache(maxsize=4096)
def session(operator: str, domain: str, opset: int, attributes: tuple, inputs: tuple,
            outputs: tuple) -> onnxruntime.InferenceSession:
    """Of one node, see one_node_model."""
    model = one_node_model(operator, domain, opset, attributes, inputs, outputs)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


class GqaPeer:
    """com.microsoft GroupQueryAttention."""

    def __init__(self, scenario: dict):
        self.scenario = scenario
        self.batch, self.heads = scenario["batch"], scenario["query_heads"]
        self.kv_heads, self.lanes = scenario["kv_heads"], scenario["head_size"]
        self.element = scenario["element_type"]
        self.dtype = NUMPY[self.element]
        cache = scenario["cache"]
        self.block = cache.get("layout", "full") == "block"
        self.capacity = cache["capacity"]
        self.quantisation = cache.get("quantisation", {"kind": "none"})
        self.kind = self.quantisation["kind"]
        self.lengths = [0] * self.batch
        self.loaded: dict | None = None  # the answer of a past step not yet in the buffers
        lanes = -(-self.lanes // 2) if self.kind == "int4" else self.lanes
        shape = (self.batch, self.kv_heads, self.capacity, lanes)
        dtype = {"int8": numpy.int8, "int4": numpy.uint8}.get(self.kind, self.dtype)
        # Rows without a token hold something finite that would show.
        self.past = [numpy.full(shape, 7, dtype) for _ in range(2)]

    def answer(self, index: int, given: dict) -> Observed | None:
        step = self.scenario["steps"][index]
        if "rollback" in step:
            dropped = per_entry(step["rollback"], self.batch)
            self.lengths = [length - less for length, less in zip(self.lengths, dropped)]
            return None
        if "past" in step:
            self.lengths = per_entry(step["past"], self.batch)
            self.loaded = given
            return None
        if self.loaded is not None:
            self.load(given)
        return self.append(step, given)

    # ---- The cache ----

    def load(self, given: dict) -> None:
        """Puts the past in place; the scales are those of the first call."""
        for rows, name in zip(self.past, ("k", "v")):
            for entry, tokens in enumerate(self.loaded[name]):
                if tokens:
                    rows[entry, :, :len(tokens)] = self.stored(tokens, name, given)
        self.loaded = None

    def scale(self, name: str, given: dict) -> numpy.ndarray:
        scale = numpy.array(given[f"{name}_scale"], numpy.float32)
        return scale if scale.size == 1 else scale.reshape(1, self.kv_heads, self.lanes)

    def stored(self, tokens: list, name: str, given: dict) -> numpy.ndarray:
        """[kv_head, token, lane or byte] as the cache holds them."""
        rows = numpy.array(tokens, float)  # [token, kv_head, lane]
        if self.kind == "none":
            return rows.transpose(1, 0, 2).astype(self.dtype)
        integers = codes(self.kind, rows, self.scale(name, given))
        return packed(self.kind, integers.transpose(1, 0, 2))

    def rows(self, which: int, entry: int, given: dict) -> numpy.ndarray:
        """[row, kv_head, lane] of keys (0) or values (1), dequantised; the whole buffer."""
        stored = self.past[which][entry].transpose(1, 0, 2)
        if self.kind == "none":
            return stored.astype(float)
        scale = self.scale("kv"[which], given).astype(float)
        return unpacked(self.kind, stored, self.lanes) * scale

    # ---- The operator ----

    def append(self, step: dict, given: dict) -> Observed:
        tokens, queries = tokens_and_queries(step, self.batch)
        shared = max(tokens) == 0
        width = max(queries) if shared else max(tokens)
        padded = not shared and not self.is_plain(tokens)
        totals = [length + new for length, new in zip(self.lengths, tokens)]
        feeds = self.feeds(given, width, shared)
        called = [max(total, 1) for total in totals] if padded else totals
        feeds["seqlens_k"] = numpy.array(called, numpy.int32) - 1
        feeds["total_sequence_length"] = numpy.array([max(called)], numpy.int32)
        if padded:
            feeds["query_seqlens"] = numpy.array(tokens, numpy.int32)
        results = self.run(feeds, self.session(feeds))
        self.lengths = totals
        with numpy.errstate(invalid="ignore"):  # Padded rows may hold anything.
            output = results[0].reshape(self.batch, width, self.heads, self.lanes).astype(float)
            return Observed(output, results[3].astype(float) if len(results) > 3 else None)

    def is_plain(self, tokens: list[int]) -> bool:
        """Whether the operator takes the step without query_seqlens."""
        uniform = min(tokens) == max(tokens)
        if max(self.lengths) == 0 and min(tokens) > 0:
            return uniform or not self.block
        return uniform and (tokens[0] == 1 or self.batch == 1)

    def feeds(self, given: dict, width: int, shared: bool) -> dict:
        query = dense(given["q"], width, self.heads, self.lanes, self.dtype)
        key, value = (dense(given[name], 0 if shared else width, self.kv_heads, self.lanes,
                            self.dtype) for name in ("k", "v"))
        query, key, value = (array.reshape(self.batch, array.shape[1],
                                           array.shape[2] * self.lanes)
                             for array in (query, key, value))
        if self.scenario.get("packed_qkv", False) and not shared:
            feeds = {"query": numpy.concatenate((query, key, value), axis=2)}
        else:
            feeds = {"query": query, "key": key, "value": value}
        feeds["past_key"], feeds["past_value"] = self.past
        if "rotary" in self.scenario:
            for name in ("cos_cache", "sin_cache"):
                feeds[name] = numpy.array(given[name], self.dtype)
            if "position_ids" in given:
                feeds["position_ids"] = numpy.array(given["position_ids"], numpy.int64)
        mask = given.get("attention_bias", given.get("mask"))
        if mask is not None:
            bias = mask_array(mask, self.dtype)
            if not bias.size:  # No query is asked; the operator has one for every token.
                total = max(given["T"])
                bias = numpy.zeros((1, 1, width, total), self.dtype)
            feeds["attention_bias"] = bias
        if "head_sink" in given:
            feeds["head_sink"] = numpy.array(given["head_sink"], self.dtype)
        if self.kind != "none":
            for name in ("k_scale", "v_scale"):
                feeds[name] = numpy.array(given[name], numpy.float32)
        return feeds

    def session(self, feeds: dict) -> onnxruntime.InferenceSession:
        kind = self.element
        stored = kind if self.kind == "none" else self.kind
        places = [("query", kind, 3), ("key", kind, 3), ("value", kind, 3),
                  ("past_key", stored, 4), ("past_value", stored, 4), ("seqlens_k", "i32", 1),
                  ("total_sequence_length", "i32", 1), ("cos_cache", kind, 2),
                  ("sin_cache", kind, 2), ("position_ids", "i64", 2), ("attention_bias", kind, 4),
                  ("head_sink", kind, 1), ("k_scale", "f32", 1), ("v_scale", "f32", 1), None, None,
                  ("query_seqlens", "i32", 1)]
        inputs = [place if place and place[0] in feeds else None for place in places]
        outputs = [("output", kind, 3), ("present_key", stored, 4), ("present_value", stored, 4)]
        if self.scenario.get("qk_output", "none") != "none":
            outputs.append(("output_qk", kind, 4))
        return session("GroupQueryAttention", "com.microsoft", 17, self.attributes,
                       trimmed(inputs), tuple(outputs))

    @functools.cached_property
    def attributes(self) -> tuple:
        scenario, cache = self.scenario, self.scenario["cache"]
        result = {"num_heads": self.heads, "kv_num_heads": self.kv_heads}
        for name in ("scale", "softcap"):
            if name in scenario:
                result[name] = float(scenario[name])
        if "window_size" in cache:
            result["local_window_size"] = cache["window_size"]
        if self.block:
            result["sliding_window_cache"] = 1
        if not scenario.get("causal", True):
            result["causal"] = 0
        if scenario.get("smooth_softmax", False):
            result["smooth_softmax"] = 1
        if "rotary" in scenario:
            result["do_rotary"] = 1
            result["rotary_interleaved"] = int(scenario["rotary"].get("interleaved", False))
        if self.kind != "none":
            mode = "PER_CHANNEL" if self.quantisation.get("per_channel", False) else "PER_TENSOR"
            result.update(k_quant_type=mode, v_quant_type=mode,
                          kv_cache_bit_width=8 if self.kind == "int8" else 4)
        shown = scenario.get("qk_output", "none")
        if shown != "none":
            result["qk_output"] = {"biased": 1, "probabilities": 2}[shown]
        return tuple(sorted(result.items()))

    def run(self, feeds: dict, model: onnxruntime.InferenceSession) -> list[numpy.ndarray]:
        if not self.scenario.get("share_buffers", True):
            results = model.run(None, feeds)
            self.past = results[1:3]
            return results
        binding = model.io_binding()
        for name, array in feeds.items():
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        binding.bind_output("output")
        for name, array in zip(("present_key", "present_value"), self.past):
            binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        if self.scenario.get("qk_output", "none") != "none":
            binding.bind_output("output_qk")
        model.run_with_iobinding(binding)
        results = binding.get_outputs()
        return [results[0].numpy(), *self.past, *(item.numpy() for item in results[3:])]
