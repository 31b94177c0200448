"""Runs single operator calls in ONNX Runtime: a call as JSON on each line in, its answer on each line
out. A call may end the process, so the reader counts the answers."""

import json
import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

# The errors come back as exceptions; the log would only repeat them.
onnxruntime.set_default_logger_severity(4)

TYPES = {
    "f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16,
    "f64": TensorProto.DOUBLE, "i8": TensorProto.INT8, "u8": TensorProto.UINT8,
    "fp8": TensorProto.FLOAT8E4M3FN, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
    "boolean": TensorProto.BOOL,
}


def model(call, shaped):
    """The one-node model. With `shaped` the shapes are declared, so that inference at load sees
    them; without, not even the ranks are, so that all is left to the kernel."""
    def described(tensor):
        return helper.make_tensor_value_info(tensor["name"], TYPES[tensor["type"]],
                                             tensor["shape"] if shaped else None)

    inputs = [described(tensor) for tensor in call["inputs"] if tensor]
    outputs = [onnx.ValueInfoProto(name=name) for name in call["outputs"] if name]
    node = helper.make_node(
        call["operator"], [tensor["name"] if tensor else "" for tensor in call["inputs"]],
        [name or "" for name in call["outputs"]], domain=call["domain"], **call["attributes"])
    imports = [helper.make_opsetid("", call["opset"] if not call["domain"] else 24)]
    if call["domain"]:
        imports.append(helper.make_opsetid(call["domain"], call["opset"]))
    return helper.make_model(helper.make_graph([node], "call", inputs, outputs),
                             opset_imports=imports, ir_version=10).SerializeToString()


def value(tensor):
    dtype = helper.tensor_dtype_to_np_dtype(TYPES[tensor["type"]])
    if "values" in tensor:
        return numpy.array(tensor["values"], dtype).reshape(tensor["shape"])
    return numpy.ones(tensor["shape"], dtype)


def answer(call, shaped):
    """None where the call is accepted, else what ONNX Runtime says."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model(call, shaped), options,
                                               providers=["CPUExecutionProvider"])
        session.run(None, {tensor["name"]: value(tensor) for tensor in call["inputs"] if tensor})
    except Exception as error:  # The library's own exceptions share no base.
        return str(error)
    return None


if __name__ == "__main__":
    for line in sys.stdin:
        one = json.loads(line)
        print(json.dumps([answer(one, True), answer(one, False)]), flush=True)
