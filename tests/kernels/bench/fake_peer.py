#!/usr/bin/env python3
"""A stand-in for a peer's worker, in plain Python; its argument is the mistake that it makes.

Without one it answers honestly: attention of small problems in double precision.
"""

import json
import math
import os
import sys

MASK = (1 << 64) - 1


def code(seed, tensor, place):
    x = (place + ((seed * 4 + tensor) << 40) + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return max(((x ^ (x >> 31)) >> 56) - 128, -127)


def attention(case):
    lanes, length = case["head_size"], case["T"]
    begin = max(0, length - case["window"]) if case["window"] else 0
    group, output = case["query_heads"] // case["kv_heads"], []

    def row(tensor, number):
        return [code(case["seed"], tensor, number * lanes + lane) / 128 for lane in range(lanes)]

    for head in range(case["query_heads"]):
        query = row(0, (length - 1) * case["query_heads"] + head)
        places = [head // group * length + token for token in range(begin, length)]
        logits = [sum(q * k for q, k in zip(query, row(1, place))) / math.sqrt(lanes)
                  for place in places]
        weights = [math.exp(logit - max(logits)) for logit in logits]
        values = [row(2, place) for place in places]
        output += [sum(w * v[lane] for w, v in zip(weights, values)) / sum(weights)
                   for lane in range(lanes)]
    return output


def answer(mistake, request):
    if mistake == "refuses":
        return {"refused": "no such operator"}
    if mistake == "dies":
        print("out of memory", file=sys.stderr)
        os._exit(3)
    if mistake == "silent":
        sys.stdin.read()
    if mistake == "no-times":
        return {"times": []}
    if mistake == "time-zero":
        return {"times": [0]}
    if mistake == "few-outputs":
        return {"times": [1000], "output": [1.0]}
    found = {"times": [2e6, 1e6, 3e6]}
    if request["output"]:
        found["output"] = attention(request["case"])
        if mistake == "other-output":
            found["output"][0] += .01
        if mistake == "nan-output":
            found["output"][0] = None
    return found


def main():
    mistake = sys.argv[1] if len(sys.argv) > 1 else ""
    print("hello" if mistake == "no-greeting" else
          json.dumps({"peer": "fake", "version": "7.5"}), flush=True)
    for line in sys.stdin:
        said = answer(mistake, json.loads(line))
        print("nonsense" if mistake == "nonsense" else json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
