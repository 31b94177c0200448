"""ONNX models of one node, every dimension dynamic."""

import onnx
from onnx import TensorProto, helper

ELEMENT = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE,
           "bool": TensorProto.BOOL, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
           "int8": TensorProto.INT8, "int4": TensorProto.UINT8}


def one_node_model(operator: str, domain: str, opset: int, attributes: tuple, inputs: tuple,
                   outputs: tuple) -> onnx.ModelProto:
    """attributes: (name, value); inputs, outputs: (name, type, rank), None = an empty place."""
    def described(values):
        return [helper.make_tensor_value_info(name, ELEMENT[kind], [None] * rank)
                for name, kind, rank in filter(None, values)]

    node = helper.make_node(operator, [value[0] if value else "" for value in inputs],
                            [value[0] if value else "" for value in outputs], domain=domain,
                            **dict(attributes))
    graph = helper.make_graph([node], "peer", described(inputs), described(outputs))
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def trimmed(places: list) -> tuple:
    """Without the empty places at the end."""
    while places and places[-1] is None:
        places.pop()
    return tuple(places)
