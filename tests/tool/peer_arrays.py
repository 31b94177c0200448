"""The inputs of one step as a peer takes them: dense numpy arrays out of the answer of `expect`."""

import dataclasses
import math

import numpy
from element_types import INTEGER_RANGE
from expected_attention import as_numbers, per_entry

NUMPY = {"f32": numpy.float32, "f16": numpy.float16, "f64": numpy.float64}


@dataclasses.dataclass
class Observed:
    """What a peer answers to one step, as float64 [batch][query][head][lane] and
    [batch][head][query][key]; queries past an entry's own are not looked at."""

    outputs: numpy.ndarray
    qk_output: numpy.ndarray | list[numpy.ndarray] | None = None


def dense(rows: list, width: int, heads: int, lanes: int, dtype=numpy.float64,
          padding: float = 0.5) -> numpy.ndarray:
    """[batch, width, heads, lanes]; the padding of shorter entries is finite and not zero."""
    array = numpy.full((len(rows), width, heads, lanes), padding, dtype)
    for entry, tokens in enumerate(rows):
        if tokens:
            array[entry, :len(tokens)] = tokens
    return array


def heads_first(array: numpy.ndarray) -> numpy.ndarray:
    """[B,S,N,H] to [B,N,S,H] and back, copied."""
    return numpy.ascontiguousarray(array.transpose(0, 2, 1, 3))


def mask_array(given, dtype) -> numpy.ndarray:
    array = numpy.array(as_numbers(given))
    return array if array.dtype == bool else array.astype(dtype)


def tokens_and_queries(step: dict, batch: int) -> tuple[list[int], list[int]]:
    tokens = per_entry(step["append"], batch)
    return tokens, per_entry(step.get("queries", tokens), batch)


# ---- Codes of a quantised cache ----

def codes(kind: str, rows: numpy.ndarray, scale: numpy.ndarray) -> numpy.ndarray:
    """Integer codes of dequantised rows."""
    low, high = INTEGER_RANGE[kind]
    return numpy.clip(numpy.rint(rows / scale), low, high).astype(numpy.int8)


def packed(kind: str, integers: numpy.ndarray) -> numpy.ndarray:
    """As the cache stores them: int8, or two of int4 in a byte, the even lane in the low half."""
    if kind == "int8":
        return integers
    lanes = integers.shape[-1]
    even = numpy.zeros(integers.shape[:-1] + (2 * math.ceil(lanes / 2),), numpy.uint8)
    even[..., :lanes] = (integers + 8).astype(numpy.uint8)
    even[..., lanes:] = 8
    return even[..., 0::2] | (even[..., 1::2] << 4)


def unpacked(kind: str, stored: numpy.ndarray, lanes: int) -> numpy.ndarray:
    if kind == "int8":
        return stored.astype(numpy.float64)
    integers = numpy.empty(stored.shape[:-1] + (2 * stored.shape[-1],))
    integers[..., 0::2] = (stored & 15).astype(numpy.float64) - 8
    integers[..., 1::2] = (stored >> 4).astype(numpy.float64) - 8
    return integers[..., :lanes]
