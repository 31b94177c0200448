"""Adapter side of the kvcheck protocol: what the author of a target needs.

A target is any object with three members:

    name, version                 strings
    capabilities()                dict, the fields of the handshake (README.md, "hello")
    open(config)                  a session; config is a Config
    call(call)                    optional: the outputs of one operator call; call is a Call

and a session is any object with these (only the first is needed by every target):

    step(step)                    Result; step is a Step
    rollback(tokens)              drops the newest tokens[b] tokens of entry b
    load(lengths, key, value)     puts rows into the cache
    present()                     (key, value): the rows that the cache holds
    last_store(place)             optional: what left an element as it is; place is a Place
    close()                       optional

`serve(target)` then answers frames until the standard input ends. Any of the calls may raise
Refused("reason"): the target understood and declines, and its state is what it was. Any other
exception is reported as an error. Standard output is moved to standard error, so that a stray
print cannot spoil the stream of frames; take_streams() does that before serve() would.

Needs Python 3.9; numpy only with tensors="numpy", the default. Arrays that a target is given are
read-only views of one frame: copy what must outlive the call. bf16 travels as uint16 bit patterns.
"""

import os
import sys
import traceback
from collections import namedtuple

from kvcheck_config import (  # noqa: F401: part of this module's face
    Config, QkNorm, Quantisation, Refused, Rotary, require_counts, require_shape)
from kvcheck_frames import (  # noqa: F401
    ELEMENT_BYTES, HEAD_LIMIT, MAGIC, PREFIX, NumpyCodec, ProtocolError, RawCodec, Tensor,
    read_frame, write_frame)

PROTOCOL = 1


class Step:
    """One step: tokens and queries per entry, and their tensors (see README.md, "step")."""

    __slots__ = ("tokens", "queries", "query", "key", "value", "mask", "position_ids", "poison",
                 "want_rows")


Poison = namedtuple("Poison", "value first_row")
Poison.__doc__ = """Overwrite rows [first_row[b], capacity) of every entry before the step."""


class Result:
    """What a step answers; leave out what the handshake does not claim."""

    __slots__ = ("output", "visible", "rows", "qk")

    def __init__(self, output=None, visible=None, rows=None, qk=None):
        self.output, self.visible, self.rows, self.qk = output, visible, rows, qk


Call = namedtuple("Call", "op opset attributes inputs outputs")
Call.__doc__ = """One call of the operator, sound or not: attributes and inputs by name, and the names
of the outputs to answer with, in this order."""


Place = namedtuple("Place", "of entry head row lane")
Place.__doc__ = """One element: of the last "output" (row is the query), or a row's "key" or "value"."""


# ---- Requests -----------------------------------------------------------------------------------


class Server:
    """Answers requests on behalf of a target. One instance per process."""

    STEP_FIELDS = {"kind", "id", "session", "tokens", "queries", "poison", "want_rows", "tensors"}

    def __init__(self, target, codec):
        self.target, self.codec = target, codec
        self.claims = None
        self.sessions = {}
        self.kinds = {
            "hello": self.hello, "open": self.open, "step": self.step, "rollback": self.rollback,
            "load": self.load, "present": self.present, "last_store": self.last_store,
            "close": self.close, "call": self.call}

    def answer(self, head, tensors):
        """(fields, tensors) of an ok answer."""
        kind = head.get("kind")
        if kind not in self.kinds:
            raise ProtocolError(f"request kind {kind!r} is unknown to protocol {PROTOCOL}; "
                                f"known are {', '.join(self.kinds)}")
        return self.kinds[kind](head, tensors)

    def hello(self, head, _):
        if head.get("protocol") != PROTOCOL:
            raise ProtocolError(f"protocol {head.get('protocol')!r} is asked for; "
                                f"this adapter speaks {PROTOCOL}")
        self.claims = self.target.capabilities()
        return {"protocol": PROTOCOL, "name": self.target.name, "version": self.target.version,
                "capabilities": self.claims}, ()

    def open(self, head, tensors):
        if self.claims is None:
            raise ProtocolError("open came before hello")
        config = Config(head["config"], tensors, self.codec)
        self.sessions[head["session"]] = (config, self.target.open(config))
        return {}, ()

    def call(self, head, tensors):
        if not hasattr(self.target, "call"):
            raise Refused("this target takes no operator calls")
        attributes = {}
        for name, value in head["attributes"].items():
            (kind, number), = value.items()
            attributes[name] = float(number) if kind == "float" else number
        inputs = {name: self.codec.decode(tensor) for name, tensor in tensors.items()}
        call = Call(head["op"], head["opset"], attributes, inputs, head["outputs"])
        outputs = self.target.call(call)
        return {}, [(name, self.codec.encode(output))
                    for name, output in zip(call.outputs, outputs)]

    def session(self, head):
        number = head.get("session")
        if number not in self.sessions:
            raise ProtocolError(f"session {number!r} is not open")
        return self.sessions[number]

    def step(self, head, tensors):
        config, session = self.session(head)
        unknown = head.keys() - self.STEP_FIELDS
        if unknown:
            raise ProtocolError(f"step has the unknown field {sorted(unknown)[0]!r}")
        step = self.read_step(head, tensors, config)
        result = session.step(step)
        return {}, self.result_tensors(config, step, result)

    def read_step(self, head, tensors, config):
        step, kind, batch = Step(), config.element_type, config.batch
        step.tokens = require_counts("tokens", head["tokens"], batch)
        step.queries = require_counts("queries", head["queries"], batch)
        step.want_rows = head.get("want_rows", False)
        rows, asked = max(step.tokens), max(step.queries)
        expected = {
            "query": (batch, asked, config.query_heads, config.head_size),
            "key": (batch, rows, config.kv_heads, config.head_size),
            "value": (batch, rows, config.kv_heads, config.value_head_size)}
        for name, shape in expected.items():
            if name not in tensors:
                raise ProtocolError(f"step lacks the tensor {name}")
            require_shape(name, tensors[name], kind, shape)
            setattr(step, name, self.codec.decode(tensors[name]))
        step.mask = self.read_mask(tensors, config, asked) if config.mask != "none" else None
        step.position_ids = None
        if config.rotary and config.rotary.position_ids:
            if "position_ids" not in tensors:
                raise ProtocolError("step lacks the tensor position_ids")
            require_shape("position_ids", tensors["position_ids"], "i64", (batch, None))
            step.position_ids = self.codec.decode(tensors["position_ids"])
        poison = head.get("poison")
        step.poison = poison and Poison(
            float(poison["value"]), require_counts("poison.first_row", poison["first_row"], batch))
        return step

    def read_mask(self, tensors, config, asked):
        """Of rank 1 to 4; dimensions but the last may be 1 in place of many."""
        mask = tensors.get("mask")
        if mask is None:
            raise ProtocolError(f"step lacks the tensor mask; the session has {config.mask}")
        shape = (config.batch, config.query_heads, asked, None)[-len(mask.shape):]
        shape = [1 if found == 1 and wanted is not None else wanted
                 for found, wanted in zip(mask.shape, shape)]
        require_shape("mask", mask, "boolean" if config.mask == "boolean" else config.element_type,
                      shape)
        return self.codec.decode(mask)

    def result_tensors(self, config, step, result):
        tensors, asked = [], max(step.queries)
        if result.output is not None:
            output = self.codec.encode(result.output)
            require_shape("output", output, config.element_type,
                          (config.batch, asked, config.query_heads, config.value_head_size))
            tensors.append(("output", output))
        if result.visible is not None:
            visible = self.codec.encode(result.visible)
            require_shape("visible", visible, "boolean", (config.batch, asked, None))
            tensors.append(("visible", visible))
        if result.qk is not None:
            qk = self.codec.encode(result.qk)
            require_shape("qk", qk, config.element_type,
                          (config.batch, config.query_heads, asked, None))
            tensors.append(("qk", qk))
        if step.want_rows and result.rows is not None:
            tensors += self.row_tensors(config, result.rows)
        return tensors

    def row_tensors(self, config, rows):
        key, value = (self.codec.encode(part) for part in rows)
        kind = config.storage_type
        if kind == "f8e4m3":  # May come as plain bytes.
            key, value = (part._replace(type=kind) if part.type == "u8" else part
                          for part in (key, value))
        require_shape("key", key, kind,
                      (config.batch, config.kv_heads, None, config.stored_lanes(config.head_size)))
        require_shape("value", value, kind,
                      (config.batch, config.kv_heads, key.shape[2],
                       config.stored_lanes(config.value_head_size)))
        return [("rows.key", key), ("rows.value", value)]

    def rollback(self, head, _):
        config, session = self.session(head)
        session.rollback(require_counts("tokens", head["tokens"], config.batch))
        return {}, ()

    def load(self, head, tensors):
        config, session = self.session(head)
        lengths = require_counts("lengths", head["lengths"], config.batch)
        for name, lanes in (("rows.key", config.head_size), ("rows.value", config.value_head_size)):
            if name not in tensors:
                raise ProtocolError(f"load lacks the tensor {name}")
            require_shape(name, tensors[name], config.storage_type,
                          (config.batch, config.kv_heads, None, config.stored_lanes(lanes)))
        session.load(lengths, self.codec.decode(tensors["rows.key"]),
                     self.codec.decode(tensors["rows.value"]))
        return {}, ()

    def present(self, head, _):
        config, session = self.session(head)
        return {}, self.row_tensors(config, session.present())

    def last_store(self, head, _):
        _, session = self.session(head)
        return {"store": session.last_store(Place(*(head[name] for name in Place._fields)))}, ()

    def close(self, head, _):
        _, session = self.session(head)
        del self.sessions[head["session"]]
        if hasattr(session, "close"):
            session.close()
        return {}, ()


STREAMS = []


def take_streams():
    """(stream of requests, descriptor for answers); prints go to standard error from here on.

    serve() calls it. A target whose libraries print while they are loaded calls it before that.
    """
    if not STREAMS:
        STREAMS.extend((os.fdopen(os.dup(0), "rb", buffering=1 << 16), os.dup(1)))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout.flush()  # After the change: what was printed before is no frame either.
    return STREAMS


def one_line(error):
    """The error as a person wants it: type, first line, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no message'}{place}"


def serve(target, tensors="numpy"):
    """Answers requests until the input ends; returns the exit code of the process.

    tensors: "numpy" for arrays, "raw" for Tensor objects (standard library alone).
    """
    requests, answers = take_streams()
    server = Server(target, NumpyCodec() if tensors == "numpy" else RawCodec())
    try:
        while True:
            number = 0  # Of an error in a request that cannot be read.
            frame = read_frame(requests)
            if frame is None:
                return 0
            head, parts = frame
            number = head.get("id", 0)
            try:
                fields, out = server.answer(head, parts)
                write_frame(answers, {"id": number, "answer": "ok", **fields}, out)
            except Refused as refusal:
                write_frame(answers, {"id": number, "answer": "refused", "reason": str(refusal)})
            except (BrokenPipeError, ProtocolError):
                raise
            except Exception as error:  # Whatever a target raises must reach the other end.
                traceback.print_exc()
                write_frame(answers, {"id": number, "answer": "error", "detail": one_line(error)})
    except BrokenPipeError:
        return 1
    except ProtocolError as error:
        print(f"kvcheck_adapter: {error}", file=sys.stderr)
        write_frame(answers, {"id": number, "answer": "error", "detail": str(error)})
        return 1
