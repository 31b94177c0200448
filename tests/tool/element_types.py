"""Rounding to the element types and to the codes of a quantised cache, in numpy.

Values are float64 arrays that hold what the narrower type can represent. The tests' own arithmetic:
nothing here comes from the model.
"""

import numpy

INTEGER_RANGE = {"int8": (-128, 127), "int4": (-8, 7)}
E4M3_LARGEST = 448.0
E4M3_LEAST_EXPONENT = -6  # of a normal number
E4M3_FRACTION_BITS = 3


def round_to(kind: str, values: numpy.ndarray) -> numpy.ndarray:
    """`values` rounded to nearest, ties to even, in f16, bf16, f32 or f64."""
    values = numpy.asarray(values, numpy.float64)
    if kind == "f64":
        return values
    if kind == "bf16":
        return round_to_bits(values, 7, -126)
    return values.astype({"f16": numpy.float16, "f32": numpy.float32}[kind]).astype(numpy.float64)


def round_to_bits(values: numpy.ndarray, fraction_bits: int, least_exponent: int) -> numpy.ndarray:
    """Nearest number of 1 + fraction_bits bits, ties to even; subnormal below least_exponent.
    Does not overflow."""
    exponent = numpy.frexp(values)[1] - 1
    spacing = numpy.ldexp(1.0, numpy.maximum(exponent, least_exponent) - fraction_bits)
    return numpy.rint(values / spacing) * spacing


def quantised(kind: str, values: numpy.ndarray, scale: numpy.ndarray) -> numpy.ndarray:
    """What the cache gives back for `values`: codes of `kind` times `scale` (broadcast).

    Integers: round half to even of x * r in f32, with r the f32 nearest to 1/scale (contract 1.4).
    fp8: E4M3 without infinities, of the same product, limited to +-448.
    """
    reciprocal = numpy.float32(1.0) / scale.astype(numpy.float32)
    scaled = (values.astype(numpy.float32) * reciprocal).astype(numpy.float64)
    if kind == "fp8":
        limited = numpy.clip(scaled, -E4M3_LARGEST, E4M3_LARGEST)
        return round_to_bits(limited, E4M3_FRACTION_BITS, E4M3_LEAST_EXPONENT) * scale
    low, high = INTEGER_RANGE[kind]
    return numpy.clip(numpy.rint(scaled), low, high) * scale
