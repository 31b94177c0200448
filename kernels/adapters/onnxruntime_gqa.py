"""GroupQueryAttention (com.microsoft) as a kvcheck session.

The operator keeps no state: the buffers and the lengths live here, and every step hands them in.
Past and present are bound as one buffer or as two that change places, as the session asks.

Steps that the operator takes without further inputs: a first prompt (every length 0), ragged ones
with padding on the right on a full cache; one token for every entry; any tokens of a batch of one;
queries without tokens (shared KV). All others need query_seqlens (input 16), which came with
release 1.32.
"""

import numpy
from kvcheck_adapter import Refused, Result
from onnxruntime_gqa_run import GqaModels, Run

STORAGE = {"f32": numpy.float32, "f16": numpy.float16, "i8": numpy.int8, "u8": numpy.uint8}


def stored_poison(kind, value):
    """What an unspecified element of the cache holds: the code nearest to it, if it has codes."""
    if kind not in ("i8", "u8"):
        return value
    low, high = (-128, 127) if kind == "i8" else (-8, 7)
    code = high if value != value else int(round(min(max(value, low), high)))
    return code if kind == "i8" else (code + 8) * 17


class GqaSession:
    def __init__(self, config, release):
        if config.value_head_size != config.head_size:
            raise Refused("gqa has one head size for keys and values")
        if config.mask == "boolean":
            raise Refused("gqa has an additive bias and no boolean mask")
        if config.qk_norm:
            raise Refused("the CPU kernel takes no q_norm_weight and k_norm_weight")
        self.config, self.release = config, release
        self.block = config.layout == "block"
        self.lengths = [0] * config.batch
        shape = (config.batch, config.kv_heads, config.capacity,
                 config.stored_lanes(config.head_size))
        poison = stored_poison(config.storage_type, config.initial_poison)
        self.past = [numpy.full(shape, poison, STORAGE[config.storage_type]) for _ in range(2)]
        self.present_rows = self.past
        if not config.share_buffers:
            self.present_rows = [array.copy() for array in self.past]
        self.first = self.past  # Tells the two apart.
        self.runs = {}
        self.models = GqaModels(config)

    # ---- Requests ----

    def step(self, step):
        config, rows = self.config, max(step.tokens)
        asked = max(step.queries)
        if rows and asked and step.queries != step.tokens:
            raise Refused("gqa asks one query for every new token, or none at all")
        if not rows and min(step.queries) != asked:
            raise Refused("gqa asks the same number of queries of every entry without new tokens")
        totals = [past + new for past, new in zip(self.lengths, step.tokens)]
        if not self.block and max(totals) > config.capacity:
            raise Refused(f"{max(totals)} tokens exceed the buffer of {config.capacity} rows")
        padded = rows > 0 and not self.is_plain(step.tokens)
        if padded and self.release < (1, 32):
            raise Refused("this step needs query_seqlens, which came with ONNX Runtime 1.32")
        self.poison(step.poison)
        output, qk = step.query, None
        if rows or asked:
            output, qk = self.attend(step, totals, padded)
        self.lengths = totals
        if not asked:
            output, qk = output[:, :0], None
        return Result(output, rows=self.past, qk=qk)

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
        value = stored_poison(self.config.storage_type, poison.value)
        for array in self.past:
            for entry, first in enumerate(poison.first_row):
                array[entry, :, first:] = value

    def attend(self, step, totals, padded):
        """(output, intermediate) of the operator; the present rows are in self.past afterwards."""
        rows, capacity = step.key.shape[1], self.config.capacity
        if padded:
            # An entry of no tokens has no seqlens_k; as an idle entry of one token it has, and
            # nothing is written for it.
            totals = [max(total, 1) for total in totals]
            needed = max(total - new for total, new in zip(totals, step.tokens)) + rows
            if not self.block and needed > capacity:
                return self.attend_on_longer_buffers(step, totals, needed)
        # Separate buffers change places with every step, so each order of them is bound.
        key = (rows, step.query.shape[1], padded, self.past is self.first)
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = self.bound(step, padded, self.past, self.present_rows)
        answer = run(step, totals)
        self.past, self.present_rows = self.present_rows, self.past
        return answer

    def attend_on_longer_buffers(self, step, totals, needed):
        """The operator wants room for the padding behind every entry: it runs on a copy."""
        past = [self.lengthened(array, needed) for array in self.past]
        present = past if self.config.share_buffers else [array.copy() for array in past]
        answer = self.bound(step, True, past, present)(step, totals)
        for target, source in zip(self.present_rows, present):
            target[...] = source[:, :, :self.config.capacity]
        self.past, self.present_rows = self.present_rows, self.past
        return answer

    def bound(self, step, padded, past, present):
        return Run(self.models, step, padded, past, present)

    @staticmethod
    def lengthened(array, rows):
        longer = numpy.zeros(array.shape[:2] + (rows,) + array.shape[3:], array.dtype)
        longer[:, :, :array.shape[2]] = array
        return longer
