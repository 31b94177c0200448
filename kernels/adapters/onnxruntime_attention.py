"""Attention (ai.onnx, opsets 23 and 24) as a kvcheck session.

Two ways to keep a cache. Concatenating: the operator gets past_key and past_value and answers
present_key and present_value, which are the past of the next step. With nonpad_kv_seqlen: K and V
are a whole buffer that the caller writes (here: this file), and the lengths are an input.
"""

import numpy
from kvcheck_adapter import Refused, Result
from onnxruntime_models import SessionCache, make_session, reason

NUMPY = {"f32": numpy.float32, "f16": numpy.float16}


def make_attention(opset, kind, causal, scale, mask, mask_rank, past, nonpad):
    attributes = {"is_causal": int(causal)}
    if scale:
        attributes["scale"] = scale
    inputs = [("Q", kind, 4), ("K", kind, 4), ("V", kind, 4)]
    empty = (None, None, None)
    if mask_rank:
        inputs.append(("attn_mask", "boolean" if mask == "boolean" else kind, mask_rank))
    else:
        inputs.append(empty)
    inputs += [("past_key", kind, 4), ("past_value", kind, 4)] if past else [empty, empty]
    inputs.append(("nonpad_kv_seqlen", "i64", 1) if nonpad else empty)
    while inputs[-1] == empty:
        inputs.pop()
    outputs = [("Y", kind, 4)]
    if not nonpad:
        outputs += [("present_key", kind, 4), ("present_value", kind, 4)]
    return make_session("", opset, "Attention", attributes, inputs, outputs)


SESSIONS = SessionCache(make_attention)


def heads_first(array):
    """[B,S,N,H] to [B,N,S,H], copied."""
    return numpy.ascontiguousarray(array.transpose(0, 2, 1, 3))


class AttentionSession:
    """What both ways share."""

    nonpad = False

    def __init__(self, config, release):
        if config.layout != "full" or config.window_size >= 0:
            raise Refused("attention of opsets 23 and 24 has neither a block layout nor a window")
        self.config = config
        self.dtype = NUMPY[config.element_type]
        self.attend_session(2 if config.mask != "none" else 0, False)

    def attend_session(self, mask_rank, past):
        config = self.config
        try:
            return SESSIONS.get(config.opset, config.element_type, config.causal, config.scale,
                                config.mask, mask_rank, past, self.nonpad)
        except Exception as error:
            raise Refused(reason(error)) from None

    def dense_queries(self, step):
        if min(step.queries) != max(step.queries):
            raise Refused("attention asks the same number of queries of every batch entry")
        return step.queries[0]

    def attend(self, feeds, mask):
        if mask is not None:
            feeds["attn_mask"] = numpy.ascontiguousarray(mask)
        session = self.attend_session(0 if mask is None else mask.ndim, "past_key" in feeds)
        try:
            return session.run(None, feeds)
        except Exception as error:
            raise Refused(reason(error)) from None


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
        feeds = {"Q": heads_first(query), "K": heads_first(step.key), "V": heads_first(step.value)}
        if self.past[0].shape[2] or self.brings_empty_past:
            feeds["past_key"], feeds["past_value"] = self.past
        output, *self.past = self.attend(feeds, mask)
        return Result(output.transpose(0, 2, 1, 3)[:, :asked], rows=self.past)

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
        if asked:
            feeds = {"Q": heads_first(step.query), "K": self.rows[0], "V": self.rows[1],
                     "nonpad_kv_seqlen": numpy.array(totals, numpy.int64)}
            output = self.attend(feeds, step.mask)[0].transpose(0, 2, 1, 3)
        self.lengths = totals
        return Result(output, rows=self.rows)

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
