"""A target that keeps its protocol: every query is answered with the value of its own token.

Standard library alone. Keeps all rows, so that rollback, load, present and visible can be checked.
"""

import os
import sys

sys.path.insert(0, os.path.join(
    os.path.dirname(os.path.realpath(__file__)), "..", "..", "..", "kernels", "adapters"))

from kvcheck_adapter import ELEMENT_BYTES, Refused, Result, Tensor, serve, take_streams  # noqa: E402


class EchoSession:
    def __init__(self, config):
        if config.batch > 8:
            raise Refused(f"a batch of {config.batch} is more than the 8 that echo takes")
        self.config = config
        self.width = ELEMENT_BYTES[config.element_type]
        # Per entry: (key, value) of every token, each [Nk][H] as bytes.
        self.tokens = [[] for _ in range(config.batch)]

    def step(self, step):
        config = self.config
        if max(len(kept) + new for kept, new in zip(self.tokens, step.tokens)) > config.capacity:
            raise Refused(f"the buffer of {config.capacity} rows is full")
        key_bytes = config.kv_heads * config.head_size * self.width
        value_bytes = config.kv_heads * config.value_head_size * self.width
        rows, asked = max(step.tokens), max(step.queries)
        output, visible = bytearray(), bytearray()
        for entry, new in enumerate(step.tokens):
            for token in range(new):
                at = entry * rows + token
                self.tokens[entry].append(
                    (bytes(step.key.data[at * key_bytes:(at + 1) * key_bytes]),
                     bytes(step.value.data[at * value_bytes:(at + 1) * value_bytes])))
            for query in range(asked):
                seen = len(self.tokens[entry]) - new + query + 1
                visible += bytes(int(row < seen) for row in range(config.capacity))
                output += self.answer(entry, seen - 1)
        heads = (config.batch, asked, config.query_heads, config.value_head_size)
        return Result(
            output=Tensor(config.element_type, heads, output),
            visible=Tensor("boolean", (config.batch, asked, config.capacity), visible),
            rows=self.present())

    def answer(self, entry, position):
        """The value of one token, each KV head for all query heads of its group."""
        config = self.config
        lane_bytes = config.value_head_size * self.width
        if position >= len(self.tokens[entry]):
            return bytes(config.query_heads * lane_bytes)
        value = self.tokens[entry][position][1]
        group = config.query_heads // config.kv_heads
        return b"".join(value[head // group * lane_bytes:(head // group + 1) * lane_bytes]
                        for head in range(config.query_heads))

    def rollback(self, tokens):
        for kept, dropped in zip(self.tokens, tokens):
            if dropped > len(kept):
                raise Refused(f"{dropped} tokens cannot be dropped of {len(kept)}")
        for kept, dropped in zip(self.tokens, tokens):
            del kept[len(kept) - dropped:]

    def load(self, lengths, key, value):
        config = self.config
        self.tokens = [
            [(self.row(key, entry, row, config.head_size),
              self.row(value, entry, row, config.value_head_size)) for row in range(length)]
            for entry, length in enumerate(lengths)]

    def row(self, tensor, entry, row, lanes):
        heads, rows, size = self.config.kv_heads, tensor.shape[2], lanes * self.width
        places = [((entry * heads + head) * rows + row) * size for head in range(heads)]
        return b"".join(bytes(tensor.data[place:place + size]) for place in places)

    def present(self):
        config = self.config
        return (self.buffer(0, config.head_size), self.buffer(1, config.value_head_size))

    def buffer(self, part, lanes):
        config, size, data = self.config, lanes * self.width, bytearray()
        for kept in self.tokens:
            for head in range(config.kv_heads):
                for token in kept:
                    data += token[part][head * size:(head + 1) * size]
                data += bytes((config.capacity - len(kept)) * size)
        return Tensor(config.element_type,
                      (config.batch, config.kv_heads, config.capacity, lanes), data)


class Echo:
    name = "echo"
    version = "1.0"

    def capabilities(self):
        return {
            "outputs": True, "rows": True, "visible": True, "operators": ["gqa", "attention"],
            "opsets": [23], "element_types": ["f32", "f16", "f64"], "layouts": ["full"],
            "features": ["load", "rollback", "a_feature_of_tomorrow"],
            "arithmetic": {"exp_error": 0.25, "max_rescales": 7},
            "arithmetic_where": {"attention f16": {"logit_roundoff": 0.5}},
        }

    def open(self, config):
        print("nor must this one", flush=True)
        return EchoSession(config)


if __name__ == "__main__":
    take_streams()
    print("a message that must not end up among the frames", flush=True)
    sys.exit(serve(Echo(), tensors="raw"))
