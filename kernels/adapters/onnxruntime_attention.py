"""Attention (ai.onnx, opsets 23 to 25) as a kvcheck session.

Two ways to keep a cache. Concatenating: the operator gets past_key and past_value and answers
present_key and present_value, which are the past of the next step. With nonpad_kv_seqlen: K and V
are a whole buffer that the caller writes (here: this file), and the lengths are an input.
"""

import numpy
from kvcheck_adapter import Refused, Result
from onnxruntime_models import SessionCache, make_session, reason

NUMPY = {"f32": numpy.float32, "f16": numpy.float16, "f64": numpy.float64}
PRECISION = {"f32": 1, "f16": 10, "f64": 11, "bf16": 16}
MODES = {"raw": 0, "softcapped": 1, "biased": 2, "probabilities": 3}


def make_attention(opset, kind, attributes, rank, mask, mask_rank, past, nonpad, intermediate):
    empty = (None, None, None)
    inputs = [("Q", kind, rank), ("K", kind, rank), ("V", kind, rank)]
    if mask_rank:
        inputs.append(("attn_mask", "boolean" if mask == "boolean" else kind, mask_rank))
    else:
        inputs.append(empty)
    inputs += [("past_key", kind, 4), ("past_value", kind, 4)] if past else [empty, empty]
    inputs.append(("nonpad_kv_seqlen", "i64", 1) if nonpad else empty)
    while inputs[-1] == empty:
        inputs.pop()
    outputs = [("Y", kind, rank)]
    if not nonpad:
        outputs += [("present_key", kind, 4), ("present_value", kind, 4)]
    if intermediate:
        outputs += [empty] * (3 - len(outputs)) + [("qk_matmul_output", kind, 4)]
    return make_session("", opset, "Attention", dict(attributes), inputs, outputs)


SESSIONS = SessionCache(make_attention)


def attributes_of(config):
    """What is not at its default, as pairs."""
    attributes = {"is_causal": int(config.causal)}
    if config.input_rank == 3:
        attributes.update(q_num_heads=config.query_heads, kv_num_heads=config.kv_heads)
    if config.scale:
        attributes["scale"] = config.scale
    if config.softcap:
        attributes["softcap"] = config.softcap
    if config.softmax_precision:
        attributes["softmax_precision"] = PRECISION[config.softmax_precision]
    if config.qk_output != "none":
        attributes["qk_matmul_output_mode"] = MODES[config.qk_output]
    if config.window_size >= 0:
        attributes["left_window_size"] = config.window_size - 1
    if config.right_window_size >= 0:
        attributes["right_window_size"] = config.right_window_size
    return tuple(attributes.items())


def heads_first(array):
    """[B,S,N,H] to [B,N,S,H], copied."""
    return numpy.ascontiguousarray(array.transpose(0, 2, 1, 3))


class AttentionSession:
    """What both ways share."""

    nonpad = False

    def __init__(self, config, release):
        if config.layout != "full":
            raise Refused("attention has no block layout")
        if config.opset < 25 and (config.window_size >= 0 or config.right_window_size >= 0):
            raise Refused("attention has windows from opset 25 on")
        self.config = config
        self.dtype = NUMPY[config.element_type]
        self.attributes = attributes_of(config)
        self.attend_session(2 if config.mask != "none" else 0, False)

    def attend_session(self, mask_rank, past):
        config = self.config
        try:
            return SESSIONS.get(config.opset, config.element_type, self.attributes,
                                config.input_rank, config.mask, mask_rank, past, self.nonpad,
                                config.qk_output != "none")
        except Exception as error:
            raise Refused(reason(error)) from None

    def dense_queries(self, step):
        if min(step.queries) != max(step.queries):
            raise Refused("attention asks the same number of queries of every batch entry")
        return step.queries[0]

    def operand(self, array, rows_first=True):
        """As the operator takes it; rows_first: [B,S,N,H], else [B,N,S,H] of a buffer."""
        if self.config.input_rank == 3:
            flat = array if rows_first else array.transpose(0, 2, 1, 3)
            return numpy.ascontiguousarray(flat).reshape(
                flat.shape[:2] + (flat.shape[2] * flat.shape[3],))
        return heads_first(array) if rows_first else array

    def attend(self, feeds, mask):
        """(output [B,S,Nq,Hv], intermediate or None, further outputs)."""
        config = self.config
        if mask is not None:
            feeds["attn_mask"] = numpy.ascontiguousarray(mask)
        session = self.attend_session(0 if mask is None else mask.ndim, "past_key" in feeds)
        try:
            output, *others = session.run(None, feeds)
        except Exception as error:
            raise Refused(reason(error)) from None
        qk = others.pop() if config.qk_output != "none" else None
        if config.input_rank == 3:
            output = output.reshape(output.shape[:2] + (config.query_heads, config.value_head_size))
        else:
            output = output.transpose(0, 2, 1, 3)
        return output, qk, others


class ConcatenatingSession(AttentionSession):
    """past_key and past_value in, present_key and present_value out."""

    def __init__(self, config, release):
        super().__init__(config, release)
        # 1.23 answers present rows only to those who bring a past, an empty one if need be.
        self.brings_empty_past = release < (1, 24)
        shape = (config.batch, config.kv_heads, 0)
        self.past = (numpy.zeros(shape + (config.head_size,), self.dtype),
                     numpy.zeros(shape + (config.value_head_size,), self.dtype))

    def step(self, step):
        if min(step.tokens) != max(step.tokens):
            raise Refused("attention appends the same number of tokens to every batch entry; "
                          "use nonpad_kv_seqlen")
        asked = self.dense_queries(step)
        query, mask = step.query, step.mask
        if not asked:
            # The operator appends only together with a query: one is asked and thrown away.
            config = self.config
            query = numpy.zeros((config.batch, 1, config.query_heads, config.head_size), self.dtype)
            mask = None
        feeds = {"Q": self.operand(query), "K": self.operand(step.key),
                 "V": self.operand(step.value)}
        if self.past[0].shape[2] or self.brings_empty_past:
            feeds["past_key"], feeds["past_value"] = self.past
        output, qk, self.past = self.attend(feeds, mask)
        return Result(output[:, :asked], rows=self.past, qk=qk if asked else None)

    def rollback(self, tokens):
        length = self.past[0].shape[2]
        if min(tokens) != max(tokens) or tokens[0] > length:
            raise Refused(f"every entry holds {length} tokens and drops the same number of them")
        self.past = [numpy.ascontiguousarray(rows[:, :, :length - tokens[0]]) for rows in self.past]

    def load(self, lengths, key, value):
        if min(lengths) != max(lengths) or lengths[0] > key.shape[2]:
            raise Refused(f"lengths {lengths} need one length for every entry, and that many rows")
        self.past = [numpy.array(rows[:, :, :lengths[0]], order="C") for rows in (key, value)]

    def present(self):
        return self.past


class NonpadSession(AttentionSession):
    """K and V are the whole buffer; nonpad_kv_seqlen says how much of it is live."""

    nonpad = True

    def __init__(self, config, release):
        super().__init__(config, release)
        shape = (config.batch, config.kv_heads, config.capacity)
        self.rows = tuple(numpy.full(shape + (lanes,), config.initial_poison, self.dtype)
                          for lanes in (config.head_size, config.value_head_size))
        self.lengths = [0] * config.batch

    def step(self, step):
        asked = self.dense_queries(step)
        totals = [past + new for past, new in zip(self.lengths, step.tokens)]
        if max(totals) > self.config.capacity:
            raise Refused(f"{max(totals)} tokens exceed the buffer of {self.config.capacity} rows")
        if step.poison is not None:
            for array in self.rows:
                for entry, first in enumerate(step.poison.first_row):
                    array[entry, :, first:] = step.poison.value
        for array, new in zip(self.rows, (step.key, step.value)):
            for entry, (past, total) in enumerate(zip(self.lengths, totals)):
                array[entry, :, past:total] = new[entry, :total - past].transpose(1, 0, 2)
        config = self.config
        output = numpy.zeros((config.batch, 0, config.query_heads, config.value_head_size),
                             self.dtype)
        qk = None
        if asked:
            feeds = {"Q": self.operand(step.query), "K": self.operand(self.rows[0], False),
                     "V": self.operand(self.rows[1], False),
                     "nonpad_kv_seqlen": numpy.array(totals, numpy.int64)}
            output, qk, _ = self.attend(feeds, step.mask)
        self.lengths = totals
        return Result(output, rows=self.rows, qk=qk)

    def rollback(self, tokens):
        for entry, (length, dropped) in enumerate(zip(self.lengths, tokens)):
            if dropped > length:
                raise Refused(f"entry {entry} holds {length} tokens and cannot drop {dropped}")
        self.lengths = [length - dropped for length, dropped in zip(self.lengths, tokens)]

    def load(self, lengths, key, value):
        rows = key.shape[2]
        if rows > self.config.capacity or max(lengths) > rows:
            raise Refused(f"{rows} rows for lengths {lengths} do not fit a buffer of "
                          f"{self.config.capacity} rows")
        for array, new in zip(self.rows, (key, value)):
            array[:, :, :rows] = new
        self.lengths = list(lengths)

    def present(self):
        return self.rows
