"""One-node ONNX models and the ONNX Runtime sessions that run them."""

import collections

import onnx
import onnxruntime
from onnx import TensorProto, helper

ELEMENT = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE,
           "bf16": TensorProto.BFLOAT16, "boolean": TensorProto.BOOL, "i8": TensorProto.INT8,
           "u8": TensorProto.UINT8, "i32": TensorProto.INT32, "i64": TensorProto.INT64}

# Old enough for every release that has the operators.
IR_VERSION = 10

# A session holds a few hundred kilobytes, and scenarios rarely need more kinds than this.
CACHED_SESSIONS = 512

# The errors of runs come back as exceptions; the log would only repeat them.
onnxruntime.set_default_logger_severity(4)


def make_session(domain, opset, operator, attributes, inputs, outputs):
    """A session of one node.

    inputs, outputs: (name, element type, rank) in the operator's order; a name that is None
    leaves the place empty. Every dimension is dynamic.
    """
    def described(values):
        return [helper.make_tensor_value_info(name, ELEMENT[kind], [None] * rank)
                for name, kind, rank in values if name]

    node = helper.make_node(operator, [name or "" for name, _, _ in inputs],
                            [name or "" for name, _, _ in outputs], domain=domain, **attributes)
    graph = helper.make_graph([node], "kvcheck", described(inputs), described(outputs))
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class SessionCache:
    """Sessions by the arguments they were made of; the least recently used one goes first."""

    def __init__(self, make):
        self.make, self.sessions = make, collections.OrderedDict()

    def get(self, *key):
        session = self.sessions.get(key)
        if session is None:
            session = self.sessions[key] = self.make(*key)
            if len(self.sessions) > CACHED_SESSIONS:
                self.sessions.popitem(last=False)
        self.sessions.move_to_end(key)
        return session


def reason(error):
    """What ONNX Runtime says of a refused run, without its preamble."""
    text = str(error).strip()
    for preamble in ("Status Message: ", " was false. "):
        text = text.split(preamble, 1)[-1]
    return text.splitlines()[0][:400] if text else type(error).__name__
