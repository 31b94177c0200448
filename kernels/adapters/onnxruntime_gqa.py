"""GroupQueryAttention (com.microsoft) as a kvcheck session.

The operator keeps no state: the buffers and the lengths live here, and every step hands them in.
Past and present are bound as one buffer or as two that change places, as the session asks.

Steps that the operator takes without further inputs: a first prompt (every length 0), ragged ones
with padding on the right on a full cache; one token for every entry; any tokens of a batch of one.
All others need query_seqlens (input 16), which came with release 1.32.
"""

import numpy
from kvcheck_adapter import Refused, Result
from onnxruntime_models import SessionCache, make_session, reason

NUMPY = {"f32": numpy.float32, "f16": numpy.float16}


def make_gqa(kind, query_heads, kv_heads, scale, window, block, query_seqlens):
    attributes = {"num_heads": query_heads, "kv_num_heads": kv_heads}
    if scale:
        attributes["scale"] = scale
    if window >= 0:
        attributes["local_window_size"] = window
    if block:
        attributes["sliding_window_cache"] = 1
    inputs = [("query", kind, 3), ("key", kind, 3), ("value", kind, 3), ("past_key", kind, 4),
              ("past_value", kind, 4), ("seqlens_k", "i32", 1), ("total_sequence_length", "i32", 1)]
    if query_seqlens:
        inputs += [(None, None, None)] * 9 + [("query_seqlens", "i32", 1)]
    outputs = [("output", kind, 3), ("present_key", kind, 4), ("present_value", kind, 4)]
    return make_session("com.microsoft", 17, "GroupQueryAttention", attributes, inputs, outputs)


SESSIONS = SessionCache(make_gqa)


class Run:
    """The operator bound to the buffers of one session and to staging arrays of one step size.

    Everything is bound once; a step only copies into the staging arrays. Inputs are never bound
    where a frame lies, since a binding aliases the memory that it is given.
    """

    def __init__(self, session, config, rows, query_seqlens, past, present):
        dtype = past[0].dtype
        tokens = (config.batch, rows)
        self.query = numpy.empty(tokens + (config.query_heads, config.head_size), dtype)
        self.key = numpy.empty(tokens + (config.kv_heads, config.head_size), dtype)
        self.value = numpy.empty_like(self.key)
        self.output = numpy.zeros_like(self.query)
        self.seqlens = numpy.empty(config.batch, numpy.int32)
        self.total = numpy.empty(1, numpy.int32)
        self.query_seqlens = numpy.empty(config.batch, numpy.int32)
        self.session, self.binding, self.past, self.present = (
            session, session.io_binding(), past, present)
        inputs = {
            "query": self.query.reshape(tokens + (-1,)), "key": self.key.reshape(tokens + (-1,)),
            "value": self.value.reshape(tokens + (-1,)), "past_key": past[0],
            "past_value": past[1], "seqlens_k": self.seqlens, "total_sequence_length": self.total}
        if query_seqlens:
            inputs["query_seqlens"] = self.query_seqlens
        for name, array in inputs.items():
            self.binding.bind_input(*self.place(name, array))
        for name, array in (("output", self.output.reshape(tokens + (-1,))),
                            ("present_key", present[0]), ("present_value", present[1])):
            self.binding.bind_output(*self.place(name, array))

    @staticmethod
    def place(name, array):
        return name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data

    def __call__(self, step, asked, totals):
        self.query[...] = step.query if asked else 0
        self.key[...] = step.key
        self.value[...] = step.value
        self.seqlens[...] = totals
        self.seqlens -= 1
        self.total[0] = max(totals)
        self.query_seqlens[...] = step.tokens
        try:
            self.session.run_with_iobinding(self.binding)
        except Exception as error:
            raise Refused(reason(error)) from None
        return self.output


class GqaSession:
    def __init__(self, config, release):
        if config.value_head_size != config.head_size:
            raise Refused("gqa has one head size for keys and values")
        if not config.causal:
            raise Refused("this adapter asks GroupQueryAttention only with causal masks")
        if config.mask != "none":
            raise Refused("gqa has no attn_mask")
        self.config, self.release = config, release
        self.block = config.layout == "block"
        self.dtype = NUMPY[config.element_type]
        self.lengths = [0] * config.batch
        shape = (config.batch, config.kv_heads, config.capacity, config.head_size)
        self.past = [numpy.full(shape, config.initial_poison, self.dtype) for _ in range(2)]
        self.present_rows = self.past
        if not config.share_buffers:
            self.present_rows = [array.copy() for array in self.past]
        self.first = self.past  # Tells the two apart.
        self.runs = {}
        self.model(False)  # So that attributes that the operator rejects refuse the session.

    def model(self, query_seqlens):
        config = self.config
        try:
            return SESSIONS.get(config.element_type, config.query_heads, config.kv_heads,
                                config.scale, config.window_size, self.block, query_seqlens)
        except Exception as error:
            raise Refused(reason(error)) from None

    # ---- Requests ----

    def step(self, step):
        config, rows = self.config, max(step.tokens)
        asked = any(step.queries)
        if asked and step.queries != step.tokens:
            raise Refused("gqa asks one query for every new token, or none at all")
        totals = [past + new for past, new in zip(self.lengths, step.tokens)]
        if not self.block and max(totals) > config.capacity:
            raise Refused(f"{max(totals)} tokens exceed the buffer of {config.capacity} rows")
        padded = not self.is_plain(step.tokens)
        if padded and self.release < (1, 32):
            raise Refused("this step needs query_seqlens, which came with ONNX Runtime 1.32")
        self.poison(step.poison)
        if rows:
            output = self.attend(step, asked, totals, padded)
        else:
            output = step.query
        self.lengths = totals
        return Result(output if asked else output[:, :0], rows=self.past)

    def rollback(self, tokens):
        # The operator's own contract: run on with smaller seqlens_k on the untouched buffer.
        for entry, (length, dropped) in enumerate(zip(self.lengths, tokens)):
            if dropped > length:
                raise Refused(f"entry {entry} holds {length} tokens and cannot drop {dropped}")
        self.lengths = [length - dropped for length, dropped in zip(self.lengths, tokens)]

    def load(self, lengths, key, value):
        rows = key.shape[2]
        if rows > self.config.capacity or (not self.block and max(lengths) > rows):
            raise Refused(f"{rows} rows for lengths {lengths} do not fit a buffer of "
                          f"{self.config.capacity} rows")
        self.past[0][:, :, :rows] = key
        self.past[1][:, :, :rows] = value
        self.lengths = list(lengths)

    def present(self):
        return self.past

    # ---- The operator ----

    def is_plain(self, tokens):
        """Whether the operator takes the step without query_seqlens."""
        uniform = min(tokens) == max(tokens)
        if not any(self.lengths) and min(tokens) > 0:
            return uniform or not self.block
        return uniform and (tokens[0] <= 1 or self.config.batch == 1)

    def poison(self, poison):
        if poison is None:
            return
        for array in self.past:
            for entry, first in enumerate(poison.first_row):
                array[entry, :, first:] = poison.value

    def attend(self, step, asked, totals, padded):
        """Runs the operator; the present rows are in self.past afterwards."""
        rows, capacity = step.key.shape[1], self.config.capacity
        if padded:
            # An entry of no tokens has no seqlens_k; as an idle entry of one token it has, and
            # nothing is written for it.
            totals = [max(total, 1) for total in totals]
            needed = max(total - new for total, new in zip(totals, step.tokens)) + rows
            if not self.block and needed > capacity:
                return self.attend_on_longer_buffers(step, asked, totals, needed)
        # Separate buffers change places with every step, so each order of them is bound.
        key = (rows, padded, self.past is self.first)
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = self.bound(rows, padded, self.past, self.present_rows)
        output = run(step, asked, totals)
        self.past, self.present_rows = self.present_rows, self.past
        return output

    def attend_on_longer_buffers(self, step, asked, totals, needed):
        """The operator wants room for the padding behind every entry: it runs on a copy."""
        past = [self.lengthened(array, needed) for array in self.past]
        present = past if self.config.share_buffers else [array.copy() for array in past]
        output = self.bound(step.key.shape[1], True, past, present)(step, asked, totals)
        for target, source in zip(self.present_rows, present):
            target[...] = source[:, :, :self.config.capacity]
        self.past, self.present_rows = self.present_rows, self.past
        return output

    def bound(self, rows, padded, past, present):
        return Run(self.model(padded), self.config, rows, padded, past, present)

    @staticmethod
    def lengthened(array, rows):
        longer = numpy.zeros(array.shape[:2] + (rows,) + array.shape[3:], array.dtype)
        longer[:, :, :array.shape[2]] = array
        return longer
