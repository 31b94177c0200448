"""GroupQueryAttention (com.microsoft): its models, and one of them bound to buffers.

A model is fixed by the attributes and by which inputs are there. Everything that a session keeps is
bound once for each size of a step; a step copies into staging arrays and binds what depends on the
present length. Inputs are never bound where a frame lies, since a binding aliases the memory that
it is given.
"""

import numpy
from kvcheck_adapter import Refused
from onnxruntime_models import SessionCache, make_session, reason

NUMPY = {"f32": numpy.float32, "f16": numpy.float16}
QK_OUTPUT = {"none": 0, "biased": 1, "probabilities": 2}
BITS = {"int8": 8, "int4": 4}

# Inputs in the operator's order: name, element type (of the query, of the cache, or its own), rank.
INPUTS = (
    ("query", "T", 3), ("key", "T", 3), ("value", "T", 3), ("past_key", "CACHE", 4),
    ("past_value", "CACHE", 4), ("seqlens_k", "i32", 1), ("total_sequence_length", "i32", 1),
    ("cos_cache", "T", 2), ("sin_cache", "T", 2), ("position_ids", "i64", 2),
    ("attention_bias", "T", 4), ("head_sink", "T", 1), ("k_scale", "f32", None),
    ("v_scale", "f32", None), ("q_norm_weight", "T", 1), ("k_norm_weight", "T", 1),
    ("query_seqlens", "i32", 1))


def make_gqa(kind, cache, attributes, given, scale_rank):
    """A session of the operator with the inputs that are named in `given`."""
    types = {"T": kind, "CACHE": cache}
    inputs = [(name, types.get(of, of), rank or scale_rank) if name in given else (None, None, None)
              for name, of, rank in INPUTS]
    while inputs[-1][0] is None:
        inputs.pop()
    outputs = [("output", kind, 3), ("present_key", cache, 4), ("present_value", cache, 4)]
    if dict(attributes).get("qk_output"):
        outputs.append(("output_qk", kind, 4))
    return make_session("com.microsoft", 17, "GroupQueryAttention", dict(attributes), inputs,
                        outputs)


SESSIONS = SessionCache(make_gqa)


def attributes_of(config):
    """What is not at its default, as pairs."""
    attributes = {"num_heads": config.query_heads, "kv_num_heads": config.kv_heads}
    optional = {
        "scale": config.scale, "softcap": config.softcap, "smooth_softmax":
        int(config.smooth_softmax), "qk_output": QK_OUTPUT.get(config.qk_output, -1),
        "sliding_window_cache": int(config.layout == "block"), "do_rotary": int(bool(config.rotary)),
        "rotary_interleaved": int(bool(config.rotary and config.rotary.interleaved))}
    attributes.update((name, value) for name, value in optional.items() if value)
    if config.window_size >= 0:
        attributes["local_window_size"] = config.window_size
    if not config.causal:
        attributes["causal"] = 0
    codes = config.quantisation
    if codes:
        if codes.kind not in BITS:
            raise Refused(f"the CPU kernel has no cache of {codes.kind}")
        attributes["kv_cache_bit_width"] = BITS[codes.kind]
        for name in ("k_quant_type", "v_quant_type"):
            attributes[name] = "PER_CHANNEL" if codes.per_channel else "PER_TENSOR"
    return tuple(attributes.items())


class GqaModels:
    """The models of one session, and the inputs that all of its steps share."""

    def __init__(self, config):
        self.config = config
        self.attributes = attributes_of(config)
        self.constants = {}
        if config.rotary:
            self.constants["cos_cache"] = numpy.array(config.rotary.cos)
            self.constants["sin_cache"] = numpy.array(config.rotary.sin)
        if config.head_sink is not None:
            self.constants["head_sink"] = numpy.array(config.head_sink)
        if config.quantisation:
            shape = (1, config.kv_heads, 1, config.head_size)
            for name in ("key_scale", "value_scale"):
                scale = numpy.array(getattr(config.quantisation, name))
                self.constants[name[0] + "_scale"] = (
                    scale.reshape(shape) if config.quantisation.per_channel else scale)
        # So that attributes that the operator rejects refuse the session.
        self.get(("query", "key", "value", "past_key", "past_value", "seqlens_k",
                  "total_sequence_length", *self.constants))

    def get(self, given):
        config = self.config
        scale_rank = 4 if config.quantisation and config.quantisation.per_channel else 1
        try:
            return SESSIONS.get(config.element_type, config.storage_type, self.attributes,
                                tuple(given), scale_rank)
        except Exception as error:
            raise Refused(reason(error)) from None


def place(name, array):
    """Arguments that bind an array to the memory where it lies."""
    return name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data


class Run:
    """The operator bound to two pairs of buffers and to staging arrays of one step size."""

    def __init__(self, models, step, padded, past, present):
        config = self.config = models.config
        dtype = NUMPY[config.element_type]
        rows, asked = step.key.shape[1], step.query.shape[1]
        self.asked = asked > 0
        tokens = (config.batch, max(rows, asked))
        self.output = numpy.empty(tokens + (config.query_heads, config.head_size), dtype)
        self.stage(dtype, tokens, rows)
        self.seqlens = numpy.empty(config.batch, numpy.int32)
        self.total = numpy.empty(1, numpy.int32)
        inputs = {"past_key": past[0], "past_value": past[1], "seqlens_k": self.seqlens,
                  "total_sequence_length": self.total, **self.staged, **models.constants}
        self.query_seqlens = None
        if padded:
            self.query_seqlens = inputs["query_seqlens"] = numpy.empty(config.batch, numpy.int32)
        self.kept = (inputs, past, present)  # Bound memory must live as long as this.
        varying = []
        if step.position_ids is not None:
            varying.append("position_ids")
        if step.mask is not None and self.asked:
            varying.append("attention_bias")
        self.session = models.get((*inputs, *varying))
        self.binding = self.session.io_binding()
        for name, array in inputs.items():
            self.binding.bind_input(*place(name, array))
        for name, array in (("output", self.output.reshape(tokens + (-1,))),
                            ("present_key", present[0]), ("present_value", present[1])):
            self.binding.bind_output(*place(name, array))

    def stage(self, dtype, tokens, rows):
        """Arrays that queries, keys and values are copied into, and how the operator sees them."""
        config, lanes = self.config, self.config.head_size
        heads, kv_heads = config.query_heads, config.kv_heads
        if config.packed_qkv:
            packed = numpy.empty(tokens + (heads + 2 * kv_heads, lanes), dtype)
            self.query = packed[:, :, :heads]
            self.key = packed[:, :, heads:heads + kv_heads]
            self.value = packed[:, :, heads + kv_heads:]
            self.staged = {"query": packed.reshape(tokens + (-1,))}
            return
        self.query = numpy.empty(tokens + (heads, lanes), dtype)
        self.key, self.value = (
            numpy.empty((config.batch, rows, kv_heads, lanes), dtype) for _ in range(2))
        self.staged = {
            "query": self.query.reshape(tokens + (heads * lanes,)),
            "key": self.key.reshape((config.batch, rows, kv_heads * lanes)),
            "value": self.value.reshape((config.batch, rows, kv_heads * lanes))}

    def __call__(self, step, totals):
        """(output [B,S,Nq,H], intermediate [B,Nq,S,T] or None) of one step."""
        self.query[...] = step.query if self.asked else 0
        self.key[...] = step.key
        self.value[...] = step.value
        self.seqlens[...] = totals
        self.seqlens -= 1
        longest = self.total[0] = max(totals)
        if self.query_seqlens is not None:
            self.query_seqlens[...] = step.tokens
        self.output.fill(numpy.nan)  # So that what is not written cannot pass for an answer.
        bound = {}
        if step.position_ids is not None:
            bound["position_ids"] = numpy.array(step.position_ids)
        if step.mask is not None and self.asked:
            bound["attention_bias"] = numpy.array(step.mask)
        for name, array in bound.items():
            self.binding.bind_input(*place(name, array))
        qk = self.bind_intermediate(int(longest))
        try:
            self.session.run_with_iobinding(self.binding)
        except Exception as error:
            raise Refused(reason(error)) from None
        return self.output, qk

    def bind_intermediate(self, columns):
        if self.config.qk_output == "none":
            return None
        batch, rows, heads = self.output.shape[:3]
        qk = numpy.full((batch, heads, rows, columns), numpy.nan, self.output.dtype)
        self.binding.bind_output(*place("output_qk", qk))
        return qk
