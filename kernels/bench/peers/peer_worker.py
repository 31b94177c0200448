"""The other end of `kvcheck bench`: times one library in a process of its own.

One JSON object a line. The worker begins with {"peer": name, "version": version}. A request is
{"case": {...}, "seconds": x, "output": bool}; the answer {"times": [ns, ...]} holds the time of
one step for each timed run, and with "output" also the output of the last query of the first step,
[query head][lane]. What a library cannot do is answered {"refused": reason}.

A case: operation (decode, prefill, windowed), query_heads, kv_heads, head_size, element_type of
the cache (f32, f16, bf16, int8, int4), T (tokens when the output is taken, the timed ones
included), window (keys seen; 0 = no window), capacity (rows of a windowed cache; 0 = full), seed.

Data is a pure function of the seed (see `codes`), so that both ends time and compare the same
tensors: multiples of 1/128, which every element type holds exactly; of 1/8 for int4.
"""

import json
import os
import sys
import time

import numpy

QUERY, KEY, VALUE = range(3)
WARM_UP_RUNS = 3
MOST_RUNS = 20000


def codes(seed, tensor, begin, count):
    """Elements [begin, begin + count) of a tensor as int8: SplitMix64 of the place, top byte."""
    with numpy.errstate(over="ignore"):
        x = numpy.arange(begin, begin + count, dtype=numpy.uint64)
        x += numpy.uint64((seed * 4 + tensor) << 40)
        x += numpy.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        x ^= x >> numpy.uint64(31)
    top = (x >> numpy.uint64(56)).astype(numpy.int16) - 128
    return numpy.maximum(top, -127).astype(numpy.int8)


class Refused(Exception):
    """The library, or this use of it, has no such case; says why."""


class Case:
    """One case with its tensors."""

    def __init__(self, fields):
        self.fields = fields
        self.operation = fields["operation"]
        self.query_heads, self.kv_heads = fields["query_heads"], fields["kv_heads"]
        self.head_size, self.length = fields["head_size"], fields["T"]
        self.element_type = fields["element_type"]
        self.window, self.capacity = fields["window"], fields["capacity"]
        self.seed = fields["seed"]
        self.quantised = self.element_type in ("int8", "int4")
        self.scale = {"int8": 1 / 128, "int4": 1 / 8}.get(self.element_type)
        self.group = self.query_heads // self.kv_heads

    def cache_codes(self, tensor, token_begin, token_end):
        """[kv_heads][tokens][head_size] as int8 codes of the element type."""
        tokens, lanes = token_end - token_begin, self.head_size
        found = numpy.empty((self.kv_heads, tokens, lanes), numpy.int8)
        for head in range(self.kv_heads):
            begin = (head * self.length + token_begin) * lanes
            found[head] = codes(self.seed, tensor, begin, tokens * lanes).reshape(tokens, lanes)
        return found >> 4 if self.element_type == "int4" else found

    def cache_values(self, tensor, token_begin, token_end, dtype=numpy.float32):
        """The same as numbers."""
        unit = dtype(self.scale or 1 / 128)
        return self.cache_codes(tensor, token_begin, token_end).astype(dtype) * unit

    def queries(self, query_begin, query_end, dtype=numpy.float32):
        """[queries][query_heads][head_size]."""
        row = self.query_heads * self.head_size
        found = codes(self.seed, QUERY, query_begin * row, (query_end - query_begin) * row)
        return (found.astype(dtype) * dtype(1 / 128)).reshape(-1, self.query_heads, self.head_size)


class Prepared:
    """What a peer gives for a case: run() is timed; it does `steps` steps.

    output() runs once untimed and gives the outputs of its last query, [query_heads, head_size].
    """

    def __init__(self, run, output, steps=1):
        self.run, self.output, self.steps = run, output, steps


def timed(prepared, seconds):
    times, end = [], time.perf_counter() + seconds
    while True:
        begin = time.perf_counter_ns()
        prepared.run()
        times.append((time.perf_counter_ns() - begin) / prepared.steps)
        if len(times) >= MOST_RUNS or time.perf_counter() >= end:
            return times


def serve(name, version, prepare):
    """Answers requests until the input ends. prepare(case) gives a Prepared or raises Refused."""
    # What a library prints must not end up among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    say({"peer": name, "version": version})
    fields, prepared = None, None
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        try:
            if request["case"] != fields:
                fields, prepared = None, None  # Two cases need not fit into memory together.
                prepared = prepare(Case(request["case"]))
                fields = request["case"]
                first = numpy.asarray(prepared.output(), numpy.float64)
                for _ in range(WARM_UP_RUNS):
                    prepared.run()
            if request.get("output"):
                answer["output"] = first.reshape(-1).tolist()
            answer["times"] = timed(prepared, request["seconds"])
            say(answer)
        except Refused as error:
            fields = None
            say({"refused": str(error)})
        except Exception as error:  # The library's own words are the reason.
            fields = None
            say({"refused": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"})
