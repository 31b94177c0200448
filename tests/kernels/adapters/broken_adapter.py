"""Targets that break the protocol, one way each: broken_adapter.py MODE. Standard library alone.

Except for the modes that concern the start, all of them greet and open sessions as they should and
break in the first step.
"""

import os
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(
    os.path.dirname(os.path.realpath(__file__)), "..", "..", "..", "kernels", "adapters"))

from kvcheck_adapter import MAGIC, PREFIX, Tensor, read_frame, write_frame  # noqa: E402

MODE = sys.argv[1]
REQUESTS = os.fdopen(os.dup(0), "rb")
CLAIMS = {"outputs": True, "rows": False, "operators": ["gqa"], "element_types": ["f32"],
          "layouts": ["full"]}


def say(text):
    os.write(2, text.encode())


def frame(text, body=b"", body_bytes=None):
    """A frame whose lengths need not be true."""
    return PREFIX.pack(MAGIC, len(text), len(body) if body_bytes is None else body_bytes) + (
        text.encode() + body)


def answer(number, tensors=(), **fields):
    write_frame(1, {"id": number, "answer": "ok", **fields}, tensors)


def output(config, kind="f32", lanes=0):
    shape = (config["batch"], 1, config["query_heads"], config["value_head_size"] + lanes)
    size = {"f32": 4, "f64": 8}[kind]
    for extent in shape:
        size *= extent
    return [("output", Tensor(kind, shape, bytes(size)))]


def cut_answer(number):
    return frame('{"id":%d,"answer":"ok"}' % number)[:-9]


def hang():
    while True:
        time.sleep(1000)


def flood(lines):
    for line in range(lines):
        say("line %d of a long complaint that nobody has asked for, and then some more\n" % line)


STEPS = {}


def mode(function):
    """Registers how a step is broken, under the function's name."""
    STEPS[function.__name__] = function
    return function


# ---- Ends and silence ---------------------------------------------------------------------------


@mode
def dies(number, config):
    os.write(2, b"the first line\ngiving up: out\tof \xff ideas\n\n")
    os._exit(3)


@mode
def ends_by_signal(number, config):
    # A core file of an interpreter is nothing that a test should leave behind.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)
    hang()


@mode
def half_frame(number, config):
    os.write(1, cut_answer(number))
    os._exit(0)


@mode
def half_frame_hangs(number, config):
    os.write(1, cut_answer(number))
    hang()


@mode
def hangs(number, config):
    hang()


@mode
def hangs_with_child(number, config):
    say("child %d\n" % subprocess.Popen(["sleep", "1000"]).pid)
    hang()


@mode
def trickles(number, config):
    os.write(1, PREFIX.pack(MAGIC, 1 << 20, 0))
    while True:
        os.write(1, b" ")
        time.sleep(0.01)


@mode
def closes_output(number, config):
    os.close(1)
    hang()


@mode
def error(number, config):
    write_frame(1, {"id": number, "answer": "error", "detail": "ValueError: no such kernel"})


@mode
def defect(number, config):
    write_frame(1, {"id": number, "answer": "error", "detail": "a data race", "kind": "defect"})


@mode
def error_of_no_kind(number, config):
    write_frame(1, {"id": number, "answer": "error", "detail": "lost", "kind": "bad luck"})


# ---- Answers that are none ----------------------------------------------------------------------


@mode
def wrong_shape(number, config):
    answer(number, output(config, lanes=1))


@mode
def wrong_type(number, config):
    answer(number, output(config, kind="f64"))


@mode
def no_output(number, config):
    answer(number)


@mode
def unasked_tensor(number, config):
    answer(number, output(config) + [("surprise", Tensor("f32", (1,), bytes(4)))])


@mode
def output_twice(number, config):
    answer(number, output(config) * 2)


@mode
def bad_json(number, config):
    os.write(1, frame('{"id": %d, "answer": ok}' % number))


@mode
def huge_length(number, config):
    os.write(1, frame('{"id":%d,"answer":"ok"}' % number, body_bytes=1 << 40))


@mode
def huge_shape(number, config):
    os.write(1, frame('{"id":%d,"answer":"ok","tensors":[{"name":"output","type":"f32",'
                      '"shape":[4611686018427387904,4]}]}' % number))


@mode
def lying_body(number, config):
    os.write(1, frame('{"id":%d,"answer":"ok"}' % number, body=b"12345678"))


@mode
def wrong_id(number, config):
    answer(number + 1, output(config))


@mode
def prints(number, config):
    os.write(1, b"computing the answer now\n")
    answer(number, output(config))


@mode
def unknown_answer(number, config):
    write_frame(1, {"id": number, "answer": "later"})


@mode
def answers_twice(number, config):
    answer(number, output(config))
    answer(number, output(config))


# ---- Standard error -----------------------------------------------------------------------------


@mode
def floods(number, config):
    flood(40000)
    answer(number, output(config))


@mode
def floods_and_dies(number, config):
    flood(40000)
    say("last words\n")
    os._exit(1)


# ---- The start ----------------------------------------------------------------------------------


def greet(number):
    hello = {"name": "broken", "version": "1", "protocol": 1, "capabilities": CLAIMS}
    if MODE == "other_protocol":
        hello["protocol"] = 9
    elif MODE == "no_name":
        del hello["name"]
    elif MODE == "bad_claims":
        hello["capabilities"] = {**CLAIMS, "features": "rollback"}
    elif MODE == "refuses_hello":
        write_frame(1, {"id": number, "answer": "refused", "reason": "not today"})
        return
    answer(number, **hello)


def open_session(number):
    if MODE == "closes_input":
        # Closed before the answer: whoever writes next finds nobody reading.
        REQUESTS.close()
        os.close(0)
        answer(number)
        hang()
    answer(number)


def main():
    if MODE == "dies_at_start":
        say("Traceback (most recent call last):\nModuleNotFoundError: No module named 'kernel'\n")
        os._exit(1)
    config = None
    while (request := read_frame(REQUESTS)) is not None:
        head, number = request[0], request[0]["id"]
        if head["kind"] == "hello":
            greet(number)
        elif head["kind"] == "open":
            config = head["config"]
            open_session(number)
        elif head["kind"] == "step":
            STEPS[MODE](number, config)
        else:
            answer(number)


if __name__ == "__main__":
    main()
