"""What an adapter is told of a session: SessionConfig in kernels/target.h, field by field."""

from collections import namedtuple

from kvcheck_frames import ProtocolError

Rotary = namedtuple("Rotary", "interleaved position_ids cos sin")
Rotary.__doc__ = """cos and sin are [rows, lanes/2]; with position_ids the steps bring them."""
QkNorm = namedtuple("QkNorm", "epsilon query_weight key_weight")
QkNorm.__doc__ = """RMSNorm of queries and new keys; the weights are [H]."""
Quantisation = namedtuple("Quantisation", "kind per_channel key_scale value_scale")
Quantisation.__doc__ = """int8, int4 or fp8; the scales are f32 [1], or [Nk, H] per channel."""

STORAGE = {"int8": "i8", "int4": "u8", "fp8": "f8e4m3"}


class Refused(Exception):
    """The target declines; nothing has changed."""


def require_shape(name, tensor, kind, shape):
    """`shape` may hold None where any extent will do."""
    if tensor.type == kind and tensor.shape == shape:
        return
    fits = len(tensor.shape) == len(shape) and all(
        wanted is None or wanted == found for wanted, found in zip(shape, tensor.shape))
    if tensor.type != kind or not fits:
        raise ProtocolError(f"{name} is {tensor.type} {list(tensor.shape)}; it must be {kind} "
                            f"{['any' if extent is None else extent for extent in shape]}")


def require_counts(name, counts, batch):
    if (type(counts) is not list or len(counts) != batch
            or any(type(n) is not int or n < 0 for n in counts)):
        raise ProtocolError(f"{name} = {counts!r}: must hold {batch} counts, each at least 0")
    return counts


def typed(name, value, kind):
    """The value, which must be of the type; numbers come as words where JSON has none."""
    if kind is float:
        return float(value)
    if type(value) is not kind:
        raise ProtocolError(f"config.{name} = {value!r}: must be of type {kind.__name__}")
    return value


class Config:
    """What stays fixed over one session. Tensors are what the codec of the server makes of them."""

    FIELDS = {
        "op": str, "opset": int, "batch": int, "query_heads": int, "kv_heads": int,
        "head_size": int, "value_head_size": int, "element_type": str, "layout": str,
        "capacity": int, "window_size": int, "causal": bool, "nonpad_kv_seqlen": bool,
        "share_buffers": bool, "mask": str, "scale": float, "initial_poison": float,
    }
    # Left out where they have this value.
    DEFAULTS = {
        "right_window_size": -1, "softcap": 0.0, "smooth_softmax": False, "input_rank": 4,
        "packed_qkv": False, "qk_output": "none", "softmax_precision": "", "threads": 0, "isa": "",
        "head_sink": False, "rotary": {}, "qk_norm": {}, "quantisation": {}, "launch": {},
        "record_stores": False,
    }
    __slots__ = tuple(FIELDS) + tuple(DEFAULTS)

    def __init__(self, fields, tensors, codec):
        # An unknown field changes what is asked; a reader that passed over it would answer
        # another question.
        for name in fields:
            if name not in self.FIELDS and name not in self.DEFAULTS:
                raise Refused(f"config.{name}: this adapter does not know the field")
        for name, kind in self.FIELDS.items():
            if name not in fields:
                raise ProtocolError(f"config.{name} is missing")
            setattr(self, name, typed(name, fields[name], kind))
        for name, default in self.DEFAULTS.items():
            setattr(self, name, typed(name, fields.get(name, default), type(default)))
        self.take_tensors(tensors, codec)

    def take_tensors(self, tensors, codec):
        """Puts the tensors where the fields announce them; None where they do not."""
        left = dict(tensors)

        def take(name, kind, *shape):
            if name not in left:
                raise ProtocolError(f"open lacks the tensor {name}")
            tensor = left.pop(name)
            require_shape(name, tensor, kind, shape)
            return codec.decode(tensor)

        def parts(name, kinds):
            fields = getattr(self, name)
            for field in fields.keys() - kinds.keys():
                raise Refused(f"config.{name}.{field}: this adapter does not know the field")
            for field in kinds.keys() - fields.keys():
                raise ProtocolError(f"config.{name}.{field} is missing")
            return [typed(f"{name}.{field}", fields[field], kind) for field, kind in kinds.items()]

        kind = self.element_type
        self.head_sink = take("head_sink", kind, self.query_heads) if self.head_sink else None
        if self.rotary:
            values = parts("rotary", {"interleaved": bool, "position_ids": bool})
            self.rotary = Rotary(*values, take("rotary.cos", kind, None, None),
                                 take("rotary.sin", kind, None, None))
        if self.qk_norm:
            self.qk_norm = QkNorm(*parts("qk_norm", {"epsilon": float}),
                                  take("qk_norm.query_weight", kind, self.head_size),
                                  take("qk_norm.key_weight", kind, self.head_size))
        if self.quantisation:
            name, per_channel = parts("quantisation", {"kind": str, "per_channel": bool})
            if name not in STORAGE:
                raise Refused(f"config.quantisation.kind {name}: this adapter does not know it")
            shape = (self.kv_heads, self.head_size) if per_channel else (1,)
            self.quantisation = Quantisation(
                name, per_channel, take("quantisation.key_scale", "f32", *shape),
                take("quantisation.value_scale", "f32", *shape))
        self.rotary, self.qk_norm = self.rotary or None, self.qk_norm or None
        self.quantisation = self.quantisation or None
        if left:
            raise ProtocolError(f"open has the unknown tensor {sorted(left)[0]}")

    @property
    def storage_type(self):
        """The element type of the rows that the cache holds."""
        return STORAGE[self.quantisation.kind] if self.quantisation else self.element_type

    def stored_lanes(self, lanes):
        """Elements of a row of the cache: two lanes of int4 share a byte."""
        int4 = self.quantisation and self.quantisation.kind == "int4"
        return (lanes + 1) // 2 if int4 else lanes
