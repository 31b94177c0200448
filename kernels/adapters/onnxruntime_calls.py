"""Calls of the two operators as they come, sound or not: what ONNX Runtime refuses is a refusal.

A call that ends the process is for the tool to notice.
"""

import numpy
from kvcheck_adapter import Refused
from onnxruntime_gqa_run import INPUTS
from onnxruntime_models import make_session, reason

# Places of the operators' inputs and outputs, and the input whose type an output has.
PLACES = {
    "gqa": ([name for name, _, _ in INPUTS],
            {"output": "query", "present_key": "past_key", "present_value": "past_value",
             "output_qk": "query"}),
    "attention": (["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"],
                  {"Y": "Q", "present_key": "K", "present_value": "V", "qk_matmul_output": "Q"})}
NAMES = {numpy.dtype(kind): name for name, kind in (
    ("f32", "f4"), ("f16", "f2"), ("f64", "f8"), ("bf16", "u2"), ("boolean", "?"), ("i8", "i1"),
    ("u8", "u1"), ("i32", "i4"), ("i64", "i8"))}


def in_order(names, wanted, describe):
    """The operator's places up to the last one that is used; others are empty."""
    places = [describe(name) if name in wanted else (None, None, None) for name in names]
    while places and places[-1][0] is None:
        places.pop()
    return places


def run_call(call):
    """The outputs that the call asks for, in its order."""
    inputs, outputs = PLACES[call.op]
    unknown = (call.inputs.keys() - set(inputs)) | (set(call.outputs) - outputs.keys())
    if unknown:
        raise Refused(f"{sorted(unknown)[0]} is no input or output of {call.op}")

    def kind(name):
        found = call.inputs.get(name, call.inputs.get("query", call.inputs.get("Q")))
        return "f32" if found is None else NAMES[found.dtype]

    rank = call.inputs["Q"].ndim if "Q" in call.inputs else 3
    ranks = {"output": 3, "Y": rank}
    gqa = call.op == "gqa"
    try:
        session = make_session(
            "com.microsoft" if gqa else "", 17 if gqa else call.opset,
            "GroupQueryAttention" if gqa else "Attention", call.attributes,
            in_order(inputs, call.inputs,
                     lambda name: (name, kind(name), call.inputs[name].ndim)),
            in_order(outputs, call.outputs,
                     lambda name: (name, kind(outputs[name]), ranks.get(name, 4))))
        answers = session.run(call.outputs, {name: numpy.array(array)
                                             for name, array in call.inputs.items()})
    except Exception as error:
        raise Refused(reason(error)) from None
    # What the operator was asked for and leaves empty is an answer without elements.
    return [numpy.zeros(0, numpy.float32) if answer is None else answer for answer in answers]
