"""OpenVINO's paged attention as a peer: one PagedAttentionExtension node, one stream, one thread.

The cache is pages of 32 tokens in the plugin's own layout, which differs by element type; so it is
filled through the operator itself: some pages at a time, as if they were a sequence of their own,
since attention to all the tokens before would take minutes.
"""

import math

import numpy
import openvino
from openvino import Type
from openvino._pyopenvino.op import _PagedAttentionExtension
from openvino.op import Constant, Parameter

from peer_worker import KEY, VALUE, Prepared, Refused, serve

PAGE = 32
FILL_TOKENS = 8 * PAGE
CACHE = {"f32": "f32", "f16": "f16", "bf16": "bf16", "int8": "u8"}


def constant(dtype, shape, *values):
    return Constant(dtype, openvino.Shape(list(shape)), list(values))


def make_model(case):
    """Inputs 0 to 8 and 12 are parameters; the features behind the others are off."""
    def parameter(name, dtype, shape):
        node = Parameter(dtype, openvino.PartialShape(shape))
        node.set_friendly_name(name)
        node.output(0).get_tensor().set_names({name})
        return node

    i32, f32 = Type.i32, Type.f32
    query = parameter("query", f32, [-1, case.query_heads * case.head_size])
    key = parameter("key", f32, [-1, case.kv_heads * case.head_size])
    value = parameter("value", f32, [-1, case.kv_heads * case.head_size])
    pages = [parameter(name, Type.dynamic, [-1, case.kv_heads, -1, -1])
             for name in ("key_cache.0", "value_cache.0")]
    lists = [parameter(name, i32, [-1]) for name in
             ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins")]
    longest = parameter("max_context_len", i32, [])
    inputs = [query, key, value, *pages, *lists,
              constant(f32, [], 1 / math.sqrt(case.head_size)),  # scale
              constant(i32, [], case.window),                    # sliding_window; 0 = none
              constant(f32, [0]),                                # alibi_slopes
              longest,
              constant(i32, [], 0),                              # score_aggregation_window
              constant(i32, [0]), constant(i32, [0]), constant(f32, [0]),  # rotation of blocks
              constant(f32, [0]), constant(i32, [], 0), constant(i32, [], 0),  # xattention
              constant(f32, [0]),                                # sinks
              constant(i32, [], 0), constant(i32, [0]), constant(i32, [0]),
              constant(i32, [0]),                                # adaptive_rkv
              constant(i32, [0]),                                # token_type_ids
              constant(Type.u8, [0]), constant(i32, [0])]        # qq_bias
    node = _PagedAttentionExtension([each.output(0) for each in inputs])
    for part in "kv":
        node.get_rt_info()[f"num_{part}_heads"] = case.kv_heads
        node.get_rt_info()[f"{part}_head_size"] = case.head_size
    return openvino.Model([node.output(0)], [query, key, value, *pages, *lists, longest], "kvcheck")


class Attention:
    def __init__(self, case):
        settings = {"NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY",
                    "KV_CACHE_PRECISION": CACHE[case.element_type],
                    "INFERENCE_PRECISION_HINT": "bf16" if case.element_type == "bf16" else "f32"}
        compiled = openvino.Core().compile_model(make_model(case), "CPU", settings)
        self.request, blocks = compiled.create_infer_request(), -(-case.length // PAGE)
        for port in compiled.inputs:
            name = port.get_any_name()
            if name.startswith(("key_cache", "value_cache")):
                shape = [side.get_length() if side.is_static else 0
                         for side in port.get_partial_shape()]
                self.request.set_tensor(name, openvino.Tensor(
                    port.get_element_type(), openvino.Shape([blocks, *shape[1:]])))

    def give(self, name, values, shape=None):
        array = numpy.array(list(values), numpy.int32)
        tensor = openvino.Tensor(Type.i32, openvino.Shape(
            list(array.shape if shape is None else shape)))
        tensor.data[...] = array.reshape(tensor.data.shape)
        self.request.set_tensor(name, tensor)

    def set(self, case, first, begin, end):
        """Puts in place the step that appends [begin, end) to the sequence of tokens from `first`."""
        tokens, pages = end - begin, range(first // PAGE, -(-end // PAGE))
        for name, tensor in (("key", KEY), ("value", VALUE)):
            values = case.cache_values(tensor, begin, end).transpose(1, 0, 2)
            self.request.set_tensor(name, openvino.Tensor(
                numpy.ascontiguousarray(values.reshape(tokens, -1))))
        self.request.set_tensor("query", openvino.Tensor(
            numpy.ascontiguousarray(case.queries(begin, end).reshape(tokens, -1))))
        self.give("past_lens", [begin - first])
        self.give("subsequence_begins", [0, tokens])
        self.give("block_indices", pages)
        self.give("block_indices_begins", [0, len(pages)])
        self.give("max_context_len", [end - first], ())

    def run(self):
        self.request.infer()

    def last(self, case):
        found = self.request.get_output_tensor(0).data
        return found.reshape(-1, case.query_heads, case.head_size)[-1].astype(numpy.float32)


def prepare(case):
    if case.element_type not in CACHE or case.operation == "windowed":
        raise Refused(f"paged attention is not timed on {case.operation} with a "
                      f"{case.element_type} cache")
    attention = Attention(case)
    past = 0 if case.operation == "prefill" else case.length - 1
    for begin in range(0, past, FILL_TOKENS):
        attention.set(case, begin, begin, min(begin + FILL_TOKENS, past))
        attention.run()
    attention.set(case, 0, past, case.length)

    def output():
        attention.run()
        return attention.last(case)

    return Prepared(attention.run, output)


if __name__ == "__main__":
    serve("openvino", openvino.__version__.split("-")[0], prepare)
