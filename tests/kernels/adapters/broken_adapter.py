"""Targets that break the protocol, one way each: broken_adapter.py MODE. Standard library alone.

Except for the modes that concern the start, all of them greet and open sessions as they should and
break in the first step.
"""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(
    os.path.dirname(os.path.realpath(__file__)), "..", "..", "..", "kernels", "adapters"))

from kvcheck_adapter import PREFIX, MAGIC, Tensor, read_frame, write_frame  # noqa: E402

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


def hang(child=False):
    if child:
        say("child %d\n" % subprocess.Popen(["sleep", "1000"]).pid)
    while True:
        time.sleep(1000)


def flood(lines):
    for line in range(lines):
        say("line %d of a long complaint that nobody has asked for, and then some more\n" % line)


def end_by_signal():
    # A core file of an interpreter is nothing that a test should leave behind.
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)
    hang()


def step(number, config):
    if MODE == "dies":
        say("the first line\ngiving up: out of ideas\n\n")
        os._exit(3)
    elif MODE == "signal":
        end_by_signal()
    elif MODE == "half_frame":
        os.write(1, cut_answer(number))
        os._exit(0)
    elif MODE == "half_frame_hangs":
        os.write(1, cut_answer(number))
        hang()
    elif MODE == "hangs":
        hang()
    elif MODE == "hangs_with_child":
        hang(child=True)
    elif MODE == "trickles":
        os.write(1, PREFIX.pack(MAGIC, 1 << 20, 0))
        while True:
            os.write(1, b" ")
            time.sleep(0.01)
    elif MODE == "closes_output":
        os.close(1)
        hang()
    elif MODE == "wrong_shape":
        answer(number, output(config, lanes=1))
    elif MODE == "wrong_type":
        answer(number, output(config, kind="f64"))
    elif MODE == "no_output":
        answer(number)
    elif MODE == "unasked_tensor":
        answer(number, output(config) + [("surprise", Tensor("f32", (1,), bytes(4)))])
    elif MODE == "output_twice":
        answer(number, output(config) * 2)
    elif MODE == "bad_json":
        os.write(1, frame('{"id": %d, "answer": ok}' % number))
    elif MODE == "huge_length":
        os.write(1, frame('{"id":%d,"answer":"ok"}' % number, body_bytes=1 << 40))
    elif MODE == "huge_shape":
        os.write(1, frame('{"id":%d,"answer":"ok","tensors":[{"name":"output","type":"f32",'
                          '"shape":[4611686018427387904,4]}]}' % number))
    elif MODE == "lying_body":
        os.write(1, frame('{"id":%d,"answer":"ok"}' % number, body=b"12345678"))
    elif MODE == "wrong_id":
        answer(number + 1, output(config))
    elif MODE == "prints":
        os.write(1, b"computing the answer now\n")
        answer(number, output(config))
    elif MODE == "unknown_answer":
        write_frame(1, {"id": number, "answer": "later"})
    elif MODE == "error":
        write_frame(1, {"id": number, "answer": "error", "detail": "ValueError: no such kernel"})
    elif MODE == "floods":
        flood(40000)
        answer(number, output(config))
    elif MODE == "floods_and_dies":
        flood(40000)
        say("last words\n")
        os._exit(1)
    elif MODE == "answers_twice":
        answer(number, output(config))
        answer(number, output(config))
    else:
        raise SystemExit(f"unknown mode {MODE}")


def main():
    if MODE == "dies_at_start":
        say("Traceback (most recent call last):\nModuleNotFoundError: No module named 'kernel'\n")
        os._exit(1)
    hello = {"name": "broken", "version": "1", "protocol": 1, "capabilities": CLAIMS}
    if MODE == "other_protocol":
        hello["protocol"] = 9
    elif MODE == "no_name":
        del hello["name"]
    elif MODE == "bad_claims":
        hello["capabilities"] = {**CLAIMS, "features": "rollback"}
    config = None
    while True:
        request = read_frame(REQUESTS)
        if request is None:
            return
        head, number = request[0], request[0]["id"]
        if head["kind"] == "hello" and MODE == "refuses_hello":
            write_frame(1, {"id": number, "answer": "refused", "reason": "not today"})
        elif head["kind"] == "hello":
            answer(number, **hello)
        elif head["kind"] == "open":
            config = head["config"]
            if MODE == "closes_input":
                # Closed before the answer: whoever writes next finds nobody reading.
                REQUESTS.close()
                os.close(0)
                answer(number)
                hang()
            answer(number)
        elif head["kind"] == "step":
            step(number, config)
        else:
            answer(number)


if __name__ == "__main__":
    main()
