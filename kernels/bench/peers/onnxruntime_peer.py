"""ONNX Runtime's GroupQueryAttention as a peer, at its best.

Everything is bound once; past and present are one buffer, so that a step appends one row. One
thread; a pool of one does not spin.
"""

import os
import sys

import numpy
import onnxruntime

from peer_worker import KEY, VALUE, Prepared, Refused, serve

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "adapters"))
import onnxruntime_models  # noqa: E402

NUMPY = {"f32": numpy.float32, "f16": numpy.float16}
CACHE = {"int8": numpy.int8, "int4": numpy.uint8}
onnxruntime_models.ELEMENT.update({"i8": 3, "u8": 2})  # TensorProto.INT8, UINT8


def make_session(case):
    kind = "f32" if case.quantised else case.element_type
    cache = {"int8": "i8", "int4": "u8"}.get(case.element_type, kind)
    attributes = {"num_heads": case.query_heads, "kv_num_heads": case.kv_heads}
    if case.window:
        attributes["local_window_size"] = case.window
    if case.capacity:
        attributes["sliding_window_cache"] = 1
    inputs = [("query", kind, 3), ("key", kind, 3), ("value", kind, 3), ("past_key", cache, 4),
              ("past_value", cache, 4), ("seqlens_k", "i32", 1), ("total_sequence_length", "i32", 1)]
    if case.quantised:
        attributes.update(k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR",
                          kv_cache_bit_width=8 if case.element_type == "int8" else 4)
        inputs += [(None, None, None)] * 5 + [("k_scale", "f32", 1), ("v_scale", "f32", 1)]
    outputs = [("output", kind, 3), ("present_key", cache, 4), ("present_value", cache, 4)]
    return onnxruntime_models.make_session("com.microsoft", 17, "GroupQueryAttention", attributes,
                                           inputs, outputs)


class Attention:
    """The operator bound to its buffers, for steps of one size."""

    def __init__(self, case, session, caches, tokens):
        self.session, self.binding = session, session.io_binding()
        self.caches = caches  # A binding holds addresses alone.
        dtype = NUMPY.get(case.element_type, numpy.float32)
        self.query = numpy.empty((1, tokens, case.query_heads * case.head_size), dtype)
        self.key = numpy.empty((1, tokens, case.kv_heads * case.head_size), dtype)
        self.value = numpy.empty_like(self.key)
        self.output = numpy.full_like(self.query, numpy.nan)
        self.seqlens, self.total = numpy.empty(1, numpy.int32), numpy.empty(1, numpy.int32)
        self.scales = numpy.array([case.scale or 1], numpy.float32)
        inputs = {"query": self.query, "key": self.key, "value": self.value,
                  "past_key": caches[0], "past_value": caches[1], "seqlens_k": self.seqlens,
                  "total_sequence_length": self.total}
        if case.quantised:
            inputs.update(k_scale=self.scales, v_scale=self.scales)
        for name, array in inputs.items():
            self.binding.bind_input(*self.place(name, array))
        for name, array in (("output", self.output), ("present_key", caches[0]),
                            ("present_value", caches[1])):
            self.binding.bind_output(*self.place(name, array))

    @staticmethod
    def place(name, array):
        return name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data

    def set(self, case, begin, end):
        """Puts in place the step that appends the tokens [begin, end)."""
        tokens = end - begin
        for array, tensor in ((self.key, KEY), (self.value, VALUE)):
            values = case.cache_values(tensor, begin, end).transpose(1, 0, 2)
            array[...] = values.reshape(1, tokens, -1)
        self.query[...] = case.queries(begin, end).reshape(1, tokens, -1)
        self.set_length(end)

    def set_length(self, length):
        self.seqlens[0], self.total[0] = length - 1, length

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def last(self, case):
        return self.output[0, -1].reshape(case.query_heads, case.head_size)


def stored(case, tensor, begin, end):
    """Tokens as the cache holds them."""
    if case.element_type == "int8":
        return case.cache_codes(tensor, begin, end)
    if case.element_type == "int4":
        biased = (case.cache_codes(tensor, begin, end) + 8).astype(numpy.uint8)
        return biased[..., 0::2] | biased[..., 1::2] << 4
    return case.cache_values(tensor, begin, end).astype(NUMPY[case.element_type])


def empty_caches(case, rows):
    lanes = case.head_size // 2 if case.element_type == "int4" else case.head_size
    dtype = CACHE.get(case.element_type) or NUMPY[case.element_type]
    return [numpy.zeros((1, case.kv_heads, rows, lanes), dtype) for _ in range(2)]


def prepare_full(case, tokens):
    """Each run appends the last `tokens` tokens again."""
    caches, past = empty_caches(case, case.length), case.length - tokens
    for array, tensor in zip(caches, (KEY, VALUE)):
        if past:
            array[0, :, :past] = stored(case, tensor, 0, past)
    attention = Attention(case, make_session(case), caches, tokens)
    attention.set(case, past, case.length)

    def output():
        attention.run()
        return attention.last(case)

    return Prepared(attention.run, output)


def prepare_windowed(case):
    """One run goes through a whole cycle of the cache: G = C - W + 1 steps, one compaction."""
    caches, session = empty_caches(case, case.capacity), make_session(case)
    prompt = min(case.capacity, case.length - 1)
    first = Attention(case, session, caches, prompt)
    first.set(case, 0, prompt)
    first.run()
    step = Attention(case, session, caches, 1)
    for position in range(prompt, case.length - 1):
        step.set(case, position, position + 1)
        step.run()
    cycle, state = case.capacity - case.window + 1, {"length": case.length}

    def output():
        step.set(case, case.length - 1, case.length)
        step.run()
        return step.last(case).copy()

    def run():
        length = state["length"]
        for _ in range(cycle):
            length += 1
            step.set_length(length)
            step.run()
        state["length"] = length

    return Prepared(run, output, cycle)


def prepare(case):
    if case.element_type == "bf16":
        raise Refused("GroupQueryAttention takes no bf16 on a CPU")
    if case.operation == "windowed":
        return prepare_windowed(case)
    return prepare_full(case, case.length if case.operation == "prefill" else 1)


if __name__ == "__main__":
    serve("onnxruntime", onnxruntime.__version__, prepare)
