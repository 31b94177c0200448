"""Outputs of GroupQueryAttention and ONNX Attention from their definition, in float64 numpy.

A second computation beside the model, from the contract alone. It reads the scenario and the
inputs of each step as `kvcheck expect --json --inputs` prints them, keeps one list of tokens per
batch entry, and answers what the operator must. Positions are absolute; where a row of the cache
lies does not matter here.
"""

import dataclasses
import math

import numpy
from element_types import quantised, round_to


@dataclasses.dataclass
class Answer:
    """Of one step; a list over the batch, since entries may differ in queries."""

    lengths: list[int]
    positions: list[list[int]]            # [batch][query], may be negative
    visible: list[numpy.ndarray]          # [batch] of bool [head, query, key]
    outputs: list[numpy.ndarray]          # [batch] of [query, head, lane]
    qk_output: list[numpy.ndarray] | None  # [batch] of [head, query, key]


@dataclasses.dataclass
class Operands:
    """Of one batch entry, as the product takes them."""

    queries: numpy.ndarray  # [query, head, lane]
    keys: numpy.ndarray     # [key, kv_head, lane]
    values: numpy.ndarray   # [key, kv_head, lane]
    bias: numpy.ndarray     # [head, query, key], -inf = hidden
    sinks: numpy.ndarray    # [head], -inf = none


def per_entry(value: int | list[int], batch: int) -> list[int]:
    return list(value) if isinstance(value, list) else [value] * batch


class Expected:
    """Answers the steps of one scenario in order."""

    def __init__(self, scenario: dict):
        self.scenario = scenario
        self.gqa = scenario["operator"] == "gqa"
        self.batch = scenario.get("batch", 1)
        self.query_heads = scenario.get("query_heads", 1)
        self.kv_heads = scenario.get("kv_heads", 1)
        self.head_size = scenario.get("head_size", 8)
        self.value_head_size = scenario.get("value_head_size", self.head_size)
        self.element = scenario.get("element_type", "f32")
        self.cache = scenario.get("cache", {})
        self.causal = scenario.get("causal", True)
        self.nonpad = scenario.get("nonpad_kv_seqlen", False)
        self.softcap = scenario.get("softcap", 0)
        self.qk_kind = scenario.get("qk_output", "none")
        scale = scenario.get("scale")
        self.scale = 1 / math.sqrt(self.head_size) if scale is None else scale
        self.quantisation = self.cache.get("quantisation", {"kind": "none"})
        # [entry][position] of [kv_head, lane]; None where the position was evicted before.
        self.keys: list[list] = [[] for _ in range(self.batch)]
        self.values: list[list] = [[] for _ in range(self.batch)]

    # ---- Steps ----

    def answer(self, index: int, given: dict) -> Answer:
        """What step `index` must answer; `given` is its object of `expect`."""
        past = [len(keys) for keys in self.keys]
        turns = self.take(index, given)
        lengths = [len(keys) for keys in self.keys]
        step = self.scenario["steps"][index]
        if "append" not in step:
            return Answer(lengths, [[]] * self.batch, [], [], None)
        queries = per_entry(step.get("queries", step["append"]), self.batch)
        answer = Answer(lengths, [], [], [], None if self.qk_kind == "none" else [])
        total = self.cache["capacity"] if self.nonpad else max(lengths)
        for entry, count in enumerate(queries):
            first = self.first_position(entry, count, past[entry], max(queries))
            positions = [first + s for s in range(count)]
            answer.positions.append(positions)
            operands = self.operands(entry, positions, total, given,
                                     turns[entry] if turns else None)
            self.attend(answer, operands, positions, total)
        return answer

    def take(self, index: int, given: dict) -> list[list[int]] | None:
        """Only changes the token lists; answers the rows of rotary_rows."""
        step = self.scenario["steps"][index]
        if "rollback" in step:
            for entry, dropped in enumerate(per_entry(step["rollback"], self.batch)):
                length = len(self.keys[entry]) - dropped
                del self.keys[entry][length:]
                del self.values[entry][length:]
            return None
        if "past" in step:
            self.load(per_entry(step["past"], self.batch), given)
            return None
        tokens = per_entry(step["append"], self.batch)
        queries = per_entry(step.get("queries", tokens), self.batch)
        past = [len(keys) for keys in self.keys]
        turns = self.rotary_rows(tokens, queries, past, given)
        for entry in range(self.batch):
            for s in range(tokens[entry]):
                self.store(entry, given["k"][entry][s], given["v"][entry][s],
                           given, turns[entry][s] if turns else None)
        return turns

    def load(self, lengths: list[int], given: dict) -> None:
        for entry, length in enumerate(lengths):
            keys = [numpy.array(row, float) for row in given["k"][entry]]
            values = [numpy.array(row, float) for row in given["v"][entry]]
            evicted = [None] * (length - len(keys))
            self.keys[entry] = evicted + keys
            self.values[entry] = evicted + values

    def first_position(self, entry: int, queries: int, past: int, width: int) -> int:
        """Position of the first query."""
        if self.gqa:
            return len(self.keys[entry]) - queries
        if self.nonpad:
            return len(self.keys[entry]) - width
        return past

    def resident_rows(self, length: int) -> int:
        """Rows of the cache that hold tokens after a step: the newest ones (contract 3.1)."""
        if self.cache.get("layout", "full") == "full" or length <= self.cache["capacity"]:
            return length
        capacity = self.cache["capacity"]
        block = capacity - self.cache["window_size"] + 1
        return length - block * -(-(length - capacity) // block)

    # ---- Keys, values and queries before the product ----

    def rotary_rows(self, tokens: list[int], queries: list[int], past: list[int],
                    given: dict) -> list[list[int]] | None:
        """Row of the cos and sin caches for every token of every entry (contract 1.4.3)."""
        rotary = self.scenario.get("rotary")
        if rotary is None:
            return None
        shared = max(tokens) == 0
        counts = queries if shared else tokens
        width = max(counts)
        ids = given.get("position_ids")
        if ids is None:
            start = [length - count if shared else length
                     for length, count in zip(past, counts)]
            return [[first + s for s in range(count)] for first, count in zip(start, counts)]
        flat = [number for row in ids for number in row]
        total = max(length + count for length, count in zip(past, tokens))
        if self.is_first_prompt(tokens, past, width, total):
            return [[flat[0] + s for s in range(count)] for count in counts]
        return [[flat[entry * width + s] for s in range(count)]
                for entry, count in enumerate(counts)]

    def is_first_prompt(self, tokens: list[int], past: list[int], width: int, total: int) -> bool:
        """Whether the operator takes the step as a prompt: S == tot, unless query_seqlens says how
        many rows of each entry count."""
        if width != total:
            return False
        shared = max(tokens) == 0
        ragged = min(tokens) != max(tokens)
        block = self.cache.get("layout", "full") != "full"
        return shared or not ragged or (max(past) == 0 and min(tokens) > 0 and not block)

    def turned(self, heads: numpy.ndarray, row: int, given: dict) -> numpy.ndarray:
        """[head, lane] after the rotary embedding."""
        rotary = self.scenario["rotary"]
        cos = numpy.array(given["cos_cache"][row], float)
        sin = numpy.array(given["sin_cache"][row], float)
        half = len(cos)
        result = heads.copy()
        if rotary.get("interleaved", False):
            first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        else:
            first, second = slice(0, half), slice(half, 2 * half)
        result[:, first] = heads[:, first] * cos - heads[:, second] * sin
        result[:, second] = heads[:, second] * cos + heads[:, first] * sin
        return result

    def prepared(self, heads: list, weight: str, row: int | None, given: dict) -> numpy.ndarray:
        """[head, lane] after norm and rotary embedding, exact."""
        heads = numpy.array(heads, float)
        norm = self.scenario.get("qk_norm")
        if norm is not None:
            mean = numpy.mean(heads * heads, axis=1, keepdims=True)
            heads = heads / numpy.sqrt(mean + norm["epsilon"]) * numpy.array(given[weight], float)
        return heads if row is None else self.turned(heads, row, given)

    def store(self, entry: int, key: list, value: list, given: dict, row: int | None) -> None:
        key = round_to(self.element, self.prepared(key, "k_norm_weight", row, given))
        value = numpy.array(value, float)
        kind = self.quantisation["kind"]
        if kind != "none":
            key = quantised(kind, key, self.quantisation_scale(given["k_scale"]))
            value = quantised(kind, value, self.quantisation_scale(given["v_scale"]))
        self.keys[entry].append(key)
        self.values[entry].append(value)

    def quantisation_scale(self, scale: list[float]) -> numpy.ndarray:
        scale = numpy.array(scale, float)
        return scale if scale.size == 1 else scale.reshape(self.kv_heads, self.head_size)

    # ---- The product ----

    def operands(self, entry: int, positions: list[int], total: int, given: dict,
                 turns: list[int] | None) -> Operands:
        length = len(self.keys[entry])
        queries = [self.prepared(query, "q_norm_weight", turns[s] if turns else None, given)
                   for s, query in enumerate(given["q"][entry])]
        queries = numpy.array(queries).reshape(len(positions), self.query_heads, self.head_size)
        return Operands(queries, self.rows(self.keys[entry], self.head_size),
                        self.rows(self.values[entry], self.value_head_size),
                        self.bias(entry, positions, length, total, given)[:, :, :length],
                        self.sinks(given))

    def rows(self, tokens: list, lanes: int) -> numpy.ndarray:
        """[key, head, lane]; zero where a position was evicted."""
        zero = numpy.zeros((self.kv_heads, lanes))
        rows = numpy.array([zero if token is None else token for token in tokens])
        return rows.reshape(len(tokens), self.kv_heads, lanes)

    def attend(self, answer: Answer, operands: Operands, positions: list[int],
               total: int) -> None:
        raw, capped, logits, weights, output = self.product(operands)
        answer.visible.append(operands.bias != -math.inf)
        answer.outputs.append(output)
        if answer.qk_output is not None:
            shown = {"raw": raw, "softcapped": capped, "biased": logits,
                     "probabilities": weights}[self.qk_kind]
            answer.qk_output.append(self.widened(shown, positions, total))

    def product(self, operands: Operands) -> tuple[numpy.ndarray, ...]:
        """Raw, capped and biased logits, weights, all [head, query, key]; [query, head, lane]."""
        group = self.query_heads // self.kv_heads
        keys = operands.keys.repeat(group, axis=1)
        values = operands.values.repeat(group, axis=1)
        raw = self.scale * numpy.einsum("qhd,khd->hqk", operands.queries, keys)
        capped = self.softcap * numpy.tanh(raw / self.softcap) if self.softcap else raw
        logits = capped + operands.bias
        weights = softmax(logits, operands.bias != -math.inf, operands.sinks)
        return raw, capped, logits, weights, numpy.einsum("hqk,khd->qhd", weights, values)

    def allowed(self, positions: list[int], length: int) -> numpy.ndarray:
        """bool [query, key]: what causality, window and length leave."""
        position = numpy.array(positions, numpy.int64).reshape(-1, 1)
        key = numpy.arange(length).reshape(1, -1)
        result = numpy.ones((len(positions), length), bool)
        if self.causal:
            result &= key <= position
        window = self.cache.get("window_size")
        if window is not None and window >= 0:
            result &= key > position - window
        right = self.scenario.get("right_window_size")
        if right is not None and right >= 0:
            result &= key <= position + right
        return result

    def bias(self, entry: int, positions: list[int], length: int, total: int,
             given: dict) -> numpy.ndarray:
        """[head, query, key up to total]: the mask, with -inf where a key is not attended."""
        result = numpy.full((self.query_heads, len(positions), total), -math.inf)
        mask = self.mask(entry, len(positions), total, given)
        allowed = self.allowed(positions, length)
        result[:, :, :length] = numpy.where(allowed, mask[:, :, :length], -math.inf)
        return result

    def mask(self, entry: int, queries: int, total: int, given: dict) -> numpy.ndarray:
        shape = (self.query_heads, queries, total)
        name = "attention_bias" if "attention_bias" in given else "mask"
        if queries == 0 or self.scenario.get("mask", {}).get("kind", "none") == "none":
            return numpy.zeros(shape)
        mask = numpy.array(as_numbers(given[name]))
        if mask.dtype == bool:
            mask = numpy.where(mask, 0.0, -math.inf)
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        missing = total - mask.shape[3]
        mask = numpy.pad(mask, [(0, 0)] * 3 + [(0, missing)], constant_values=-math.inf)
        mask = mask[entry if mask.shape[0] > 1 else 0]
        if self.gqa or mask.shape[1] > 1:
            mask = mask[:, :queries]  # Rows behind an entry's own are padding.
        return numpy.broadcast_to(mask, shape)

    def sinks(self, given: dict) -> numpy.ndarray:
        """One more logit for each query head; -inf = none. A head_sink overrides smooth softmax."""
        if self.scenario.get("head_sink", False):
            return numpy.array(given["head_sink"], float)
        smooth = self.scenario.get("smooth_softmax", False)
        return numpy.full(self.query_heads, 0.0 if smooth else -math.inf)

    def widened(self, shown: numpy.ndarray, positions: list[int], total: int) -> numpy.ndarray:
        """What qk_output holds: all columns; gqa writes 0 outside the allowed keys."""
        length = shown.shape[2]
        if self.gqa:
            shown = numpy.where(self.allowed(positions, length)[None], shown, 0.0)
            fill = 0.0
        else:
            # Rows without a token may hold anything, so only their weights are specified.
            fill = 0.0 if self.qk_kind == "probabilities" else math.nan
        result = numpy.full(shown.shape[:2] + (total,), fill)
        result[:, :, :length] = shown
        return result


def softmax(logits: numpy.ndarray, seen: numpy.ndarray, sinks: numpy.ndarray) -> numpy.ndarray:
    """[head, query, key] over the keys seen, with the sink in the denominator; empty rows are 0."""
    sinks = sinks.reshape(-1, 1, 1)
    logits = numpy.where(seen, logits, -math.inf)
    largest = numpy.maximum(logits.max(axis=2, initial=-math.inf, keepdims=True), sinks)
    largest = numpy.where(numpy.isfinite(largest), largest, 0.0)
    numerator = numpy.exp(logits - largest)
    denominator = numerator.sum(axis=2, keepdims=True) + numpy.exp(sinks - largest)
    return numerator / numpy.where(denominator == 0, 1.0, denominator)


def as_numbers(value):
    """Nested lists with "-inf" and "inf" spelled out."""
    if isinstance(value, list):
        return [as_numbers(item) for item in value]
    return float(value) if isinstance(value, str) else value
