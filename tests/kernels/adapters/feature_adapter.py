"""A target that says in its refusal what a session was asked for; with packed_qkv off it opens one.

Standard library alone.
"""

import os
import struct
import sys

sys.path.insert(0, os.path.join(
    os.path.dirname(os.path.realpath(__file__)), "..", "..", "..", "kernels", "adapters"))

from kvcheck_adapter import Refused, Result, Tensor, serve  # noqa: E402


def numbers(tensor):
    return list(struct.unpack(f"<{len(tensor.data) // 4}f", tensor.data))


def described(config):
    parts = [f"{name}={getattr(config, name)}" for name in (
        "right_window_size", "softcap", "smooth_softmax", "input_rank", "packed_qkv", "qk_output",
        "softmax_precision", "threads", "isa", "record_stores")]
    rotary, norm, codes = config.rotary, config.qk_norm, config.quantisation
    launch = ",".join(f"{name}={value}" for name, value in sorted(config.launch.items()))
    parts.append(f"launch={launch}")
    parts.append(f"head_sink={numbers(config.head_sink)}")
    parts.append(f"rotary={rotary.interleaved},{rotary.position_ids},{list(rotary.cos.shape)},"
                 f"{numbers(rotary.cos)[0]},{numbers(rotary.sin)[-1]}")
    parts.append(f"qk_norm={norm.epsilon},{numbers(norm.key_weight)}")
    parts.append(f"quantisation={codes.kind},{codes.per_channel},{list(codes.key_scale.shape)},"
                 f"{numbers(codes.value_scale)[-1]}")
    parts.append(f"rows={config.storage_type},{config.stored_lanes(config.head_size)}")
    return " ".join(parts)


class Session:
    def __init__(self, config):
        self.config = config

    def step(self, step):
        config, asked = self.config, max(step.queries)
        columns = step.position_ids.shape[1]
        first = struct.unpack(f"<{columns}q", step.position_ids.data[:8 * columns])
        lines = config.batch * config.query_heads * asked
        shape = (config.batch, asked, config.query_heads, config.value_head_size)
        return Result(
            output=Tensor("f32", shape, bytes(4 * lines * config.value_head_size)),
            qk=Tensor("f32", (config.batch, config.query_heads, asked, columns),
                      struct.pack(f"<{columns}f", *first) * lines),
            rows=self.present())

    def load(self, lengths, key, value):
        pass

    def last_store(self, place):
        return " ".join(f"{name} {value}" for name, value in place._asdict().items())

    def present(self):
        config = self.config
        shape = (config.batch, config.kv_heads, config.capacity,
                 config.stored_lanes(config.head_size))
        size = shape[0] * shape[1] * shape[2] * shape[3]
        return [Tensor(config.storage_type, shape, bytes(size)) for _ in range(2)]


class Features:
    name = "features"
    version = "1.0"

    def capabilities(self):
        return {"operators": ["gqa"], "element_types": ["f32"], "layouts": ["full"],
                "features": ["operator_calls", "last_store"]}

    def open(self, config):
        if config.packed_qkv:
            raise Refused(described(config))
        return Session(config)

    def call(self, call):
        """The inputs as they are; with another is_causal than 1 the attributes, as a refusal."""
        if call.attributes["is_causal"] != 1:
            raise Refused(" ".join(f"{name}={call.attributes[name]}"
                                   for name in ("is_causal", "scale", "mode")))
        return list(call.inputs.values())


if __name__ == "__main__":
    sys.exit(serve(Features(), tensors="raw"))
