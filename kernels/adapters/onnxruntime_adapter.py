"""ONNX Runtime, CPU provider, as a kvcheck target: GroupQueryAttention and Attention 23 to 25.

Run by the tool; speaks the kvcheck protocol on standard input and output. What it claims depends
on the release that is installed; README.md says what was measured for each claim.
"""

import os
import platform
import re
import sys

from kvcheck_adapter import Refused, serve, take_streams

# Before numpy loads: the libraries under it start one thread per core, and use none of them here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
take_streams()

import numpy  # noqa: E402
import onnxruntime  # noqa: E402
from onnxruntime_attention import ConcatenatingSession, NonpadSession  # noqa: E402
from onnxruntime_calls import run_call  # noqa: E402
from onnxruntime_gqa import GqaSession  # noqa: E402

F16_ROUNDOFF = 2.0**-11

# MLAS computes exp in f32 with a polynomial of degree 6: at most 1.28 * 2^-24 relative error on
# 19 million arguments in [-87.3, -25]; below that the result is 0. The declared figure leaves a
# factor of three for kernels without fused multiply-add. The flash path merges one tile of keys
# after the other; a tile holds some hundred keys, so that 64 serve every length that is drawn.
ARITHMETIC = {
    "accumulator_roundoff": 2.0**-24,
    "exp_error": 2.0**-22,
    "exp_flushes": True,
    "max_rescales": 64,
}


def release_of(version):
    """(1, 32) of "1.32.0"."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if not match:
        raise SystemExit(f"onnxruntime names its release {version!r}, which has no number")
    return int(match[1]), int(match[2])


# Of the figures of f64 the tool takes 2^-29.
F64_SCALE = 2.0**29


def arithmetic_where():
    """Where the arithmetic differs.

    The CPU kernel of Attention stores logits and weights in the type of its operands,
    GroupQueryAttention in f32 where there is no half precision GEMM. Opset 25 and f64 have no
    kernel: there the function body of the operator runs, one node for each operation. It makes the
    scale in f32 by two operations and a root, and multiplies it onto Q and onto K.
    """
    narrow = {"logit_roundoff": F16_ROUNDOFF, "probability_roundoff": F16_ROUNDOFF}
    where = {"attention f16": {**ARITHMETIC, **narrow}}
    if platform.machine().lower() not in ("x86_64", "amd64"):
        where["gqa f16"] = {**ARITHMETIC, **narrow}
    body = {**ARITHMETIC, "scale_on_operands": True, "max_rescales": 0}
    where["attention f32 25"] = body
    where["attention f32 25 softmax f16"] = {**body, **narrow}
    # Scaled operands, product, softcap and biased logits are each rounded to f16.
    where["attention f16 25"] = {**body, **narrow, "operand_roundoff": F16_ROUNDOFF,
                                 "logit_roundoff": 2 * F16_ROUNDOFF, "tanh_error": 3 * F16_ROUNDOFF}
    where["attention f64"] = {**body, "logit_roundoff": 2.0**-22 * F64_SCALE}
    for precision, roundoff in (("f32", 2.0**-24), ("f16", F16_ROUNDOFF)):
        where[f"attention f64 softmax {precision}"] = {
            **body, "exp_error": 2.0**-22 * F64_SCALE,
            "logit_roundoff": max(2.0**-22, roundoff) * F64_SCALE,
            "probability_roundoff": roundoff * F64_SCALE}
    return where


def features_of(release):
    """By the first release that has them; contract.md and README.md name the measurements."""
    features = ["mask_boolean", "mask_additive", "mask_broadcast", "queries_differ", "input_rank_3",
                "softcap", "softmax_precision", "qk_output", "separate_buffers", "ragged_prompt",
                "smooth_softmax", "head_sink", "rotary",
                "load", "queryless_append", "rollback", "nan_safe_gqa", "repeat_bits",
                "huge_has_influence f64", "no_softmax_precision_bf16",
                "no_empty_append_rank_3", "operator_calls"]
    if release >= (1, 24):
        features.append("empty_window")
    if release >= (1, 25):
        features.append("nonpad_kv_seqlen")
    if release >= (1, 27):
        features.append("shared_kv")
    if release >= (1, 29):
        features += ["cache_int8", "cache_int4"]
    if release != (1, 29):  # Which has the windowed cache, and refuses a bias with it.
        features.append("attention_bias")
    if release >= (1, 30):
        features.append("bidirectional")
    if release >= (1, 32):
        features += ["batched_chunks", "ragged_prompt_block", "idle_entries", "attention_window",
                     "packed_qkv", "right_window", "mask_one_row from 25", "short_mask from 25",
                     "empty_append from 25", "huge_has_influence from 25"]
    return features


def opsets_of(release):
    return [opset for opset, first in ((23, (1, 23)), (24, (1, 24)), (25, (1, 32)))
            if release >= first]


class OnnxRuntime:
    name = "onnxruntime"
    version = onnxruntime.__version__
    release = release_of(version)
    claims = None

    def capabilities(self):
        return {
            "outputs": True,
            "rows": True,
            "visible": False,
            "operators": ["gqa", "attention"],
            "opsets": opsets_of(self.release),
            "element_types": ["f32", "f16", "f64"] if self.release >= (1, 32) else ["f32", "f16"],
            "element_types_where": {"gqa": ["f32", "f16"]},
            "layouts": ["full", "block"] if self.release >= (1, 29) else ["full"],
            "head_size_multiple": 8,
            "head_size_multiple_with": {"rotary": 16, "block cache_int8": 16,
                                        "block cache_int4": 32},
            "features": features_of(self.release),
            "arithmetic": ARITHMETIC,
            "arithmetic_where": arithmetic_where(),
        }

    def open(self, config):
        claims = self.claims = self.claims or self.capabilities()
        if config.op not in claims["operators"]:
            raise Refused(f"operator {config.op} is not one of {', '.join(claims['operators'])}")
        types = claims["element_types_where"].get(config.op, claims["element_types"])
        if config.element_type not in types:
            raise Refused(f"element type {config.element_type} has no CPU kernel here")
        if config.layout not in claims["layouts"]:
            raise Refused(f"layout {config.layout} is not offered by release {self.version}")
        if config.threads > 1 or config.isa:
            raise Refused("this adapter runs one thread on the instruction set that is found")
        if config.op == "gqa":
            return GqaSession(config, self.release)
        if config.opset not in claims["opsets"]:
            raise Refused(f"opset {config.opset} is not offered by release {self.version}")
        if config.nonpad_kv_seqlen:
            if config.opset < 24 or "nonpad_kv_seqlen" not in claims["features"]:
                raise Refused("nonpad_kv_seqlen needs opset 24 and release 1.25")
            return NonpadSession(config, self.release)
        return ConcatenatingSession(config, self.release)

    def call(self, call):
        return run_call(call)


if __name__ == "__main__":
    # Poison of one type may be out of range in another; that is what it is for.
    numpy.seterr(all="ignore")
    sys.exit(serve(OnnxRuntime()))
