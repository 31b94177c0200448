"""Frames of the kvcheck protocol: a JSON head and raw little-endian tensors (README.md, "Frames")."""

import json
import os
import struct
from collections import namedtuple

MAGIC = b"KVC1"
PREFIX = struct.Struct("<4sIQ")
HEAD_LIMIT = 1 << 20
BODY_LIMIT = 1 << 31
ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8, "boolean": 1, "i8": 1, "u8": 1,
                 "f8e4m3": 1, "i64": 8, "i32": 4}

Tensor = namedtuple("Tensor", "type shape data")
Tensor.__doc__ = """A tensor as it travels: element type by name, shape, little-endian bytes."""


class ProtocolError(Exception):
    """The other end broke the protocol; there is no way to go on."""


def read_exactly(stream, count):
    """`count` bytes; None at a clean end, ProtocolError in the middle of something."""
    data = stream.read(count)
    if len(data) == count:
        return data
    if not data:
        return None
    raise ProtocolError(f"the input ended after {len(data)} of {count} bytes")


def read_frame(stream):
    """(head, tensors by name, raw) of the next frame; None when the input has ended."""
    prefix = read_exactly(stream, PREFIX.size)
    if prefix is None:
        return None
    magic, head_bytes, body_bytes = PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise ProtocolError(f"a frame starts with {magic!r}; it must start with {MAGIC!r}")
    if head_bytes > HEAD_LIMIT or body_bytes > BODY_LIMIT:
        raise ProtocolError(
            f"a frame announces a head of {head_bytes} and a body of {body_bytes} bytes; "
            f"the limits are {HEAD_LIMIT} and {BODY_LIMIT}")
    text = read_exactly(stream, head_bytes)
    body = read_exactly(stream, body_bytes) if body_bytes else b""
    if text is None or body is None:
        raise ProtocolError("the input ended in the middle of a frame")
    try:
        head = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"the head of a frame is not JSON: {error}") from None
    if not isinstance(head, dict):
        raise ProtocolError("the head of a frame must be a JSON object")
    return head, split_body(head.get("tensors", ()), memoryview(body))


def split_body(descriptions, body):
    """Tensors by name; their descriptions must cover the body exactly."""
    tensors, offset = {}, 0
    for description in descriptions:
        name, kind, shape = description["name"], description["type"], tuple(description["shape"])
        if kind not in ELEMENT_BYTES:
            raise ProtocolError(f"tensor {name} has the unknown element type {kind!r}")
        count = ELEMENT_BYTES[kind]
        for extent in shape:
            if type(extent) is not int or extent < 0:
                raise ProtocolError(f"tensor {name} has the shape {list(shape)}")
            count *= extent
        if name in tensors or offset + count > len(body):
            raise ProtocolError(f"tensor {name} appears twice or exceeds the body of the frame")
        tensors[name] = Tensor(kind, shape, body[offset:offset + count])
        offset += count
    if offset != len(body):
        raise ProtocolError(f"the tensors of a frame take {offset} bytes, its body {len(body)}")
    return tensors


def write_frame(descriptor, head, tensors=()):
    """Writes one frame; tensors is a sequence of (name, Tensor)."""
    if tensors:
        head["tensors"] = [
            {"name": name, "type": tensor.type, "shape": tensor.shape} for name, tensor in tensors]
    text = json.dumps(head, separators=(",", ":")).encode()
    body = sum(len(tensor.data) for _, tensor in tensors)
    if len(text) > HEAD_LIMIT or body > BODY_LIMIT:
        raise ProtocolError(f"an answer of {len(text)} + {body} bytes exceeds the frame limits")
    parts = [memoryview(PREFIX.pack(MAGIC, len(text), body) + text)]
    parts += [memoryview(tensor.data) for _, tensor in tensors if len(tensor.data)]
    while parts:
        written = os.writev(descriptor, parts)
        while parts and written >= len(parts[0]):
            written -= len(parts.pop(0))
        if written:
            parts[0] = parts[0][written:]


# ---- Tensors as targets see them ----------------------------------------------------------------


class RawCodec:
    """Targets see Tensor objects."""

    @staticmethod
    def decode(tensor):
        return tensor

    @staticmethod
    def encode(tensor):
        return tensor


class NumpyCodec:
    """Targets see numpy arrays."""

    EXTENSIONS = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3"}  # Types of ml_dtypes.

    def __init__(self):
        # The libraries under numpy start one thread per core each, and use none of them here.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        import numpy

        self.numpy = numpy
        self.types = {
            "f32": numpy.dtype("<f4"), "f16": numpy.dtype("<f2"), "bf16": numpy.dtype("<u2"),
            "f64": numpy.dtype("<f8"), "boolean": numpy.dtype("bool"), "i8": numpy.dtype("i1"),
            "u8": numpy.dtype("u1"), "i64": numpy.dtype("<i8"), "i32": numpy.dtype("<i4")}
        self.names = {dtype: name for name, dtype in self.types.items()}
        self.types["f8e4m3"] = self.types["u8"]

    def decode(self, tensor):
        flat = self.numpy.frombuffer(tensor.data, self.types[tensor.type])
        return flat.reshape(tensor.shape)

    def encode(self, array):
        array = self.numpy.ascontiguousarray(array)
        name = self.names.get(array.dtype)
        if name is None:
            name = self.EXTENSIONS.get(array.dtype.name)
            if name is None:
                raise TypeError(f"an array of {array.dtype} is none of {', '.join(self.types)}")
        return Tensor(name, array.shape, array.reshape(-1).view(self.numpy.uint8).data)
