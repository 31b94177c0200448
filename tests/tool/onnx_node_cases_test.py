"""The node cases of ONNX for Attention, opsets 23 to 25, answered by the exact model.

Each case brings its inputs and its expected outputs, so it becomes a scenario with literal tensors.
"""

import contextlib
import math
import unittest
import warnings

import numpy
import onnx
from expect_program import expected_answers
from expected_attention import as_numbers
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

CASES = 93  # onnx 1.23.2, without the twins that expand the function body
ELEMENT = {"float32": "f32", "float16": "f16", "float64": "f64", "bfloat16": "bf16"}
PRECISION = {1: "f32", 10: "f16", 11: "f64", 16: "bf16"}
MODES = ("raw", "softcapped", "biased", "probabilities")

# Cases whose expected outputs the exact answer misses by the case's own tolerance, and why. Each
# must differ, one that no longer does fails here, and must agree within WIDER.
NARROW = "expected values come of 16-bit arithmetic, to whose spacing a relative 1e-3 is too narrow"
EXCEPTIONS = dict.fromkeys((
    "test_attention_4d_gqa_with_past_and_present_fp16", "test_attention_4d_causal_bf16",
    "test_attention_4d_padded_kv_bf16", "test_attention_4d_causal_padded_kv_bf16",
    "test_attention_4d_attn_mask_causal_bf16", "test_attention_3d_causal_bf16"), NARROW)
# Two spacings: one of the stored weights, one of the stored output.
WIDER = {"f16": 2 * 2.0**-10, "bf16": 2 * 2.0**-7}


def node_cases() -> list:
    with warnings.catch_warnings(), contextlib.suppress(ImportError):
        warnings.simplefilter("ignore")
        collected = collect_testcases("Attention")
    return [case for case in collected
            if case.name.startswith("test_attention_") and not case.name.endswith("_expanded")]


def arrays(values) -> list[numpy.ndarray]:
    return [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto)
            else numpy.asarray(value) for value in values]


def as_json(array: numpy.ndarray):
    """Nested lists; infinities as strings."""
    if array.ndim:
        return [as_json(row) for row in array]
    if array.dtype == bool:
        return bool(array)
    number = float(array)
    return number if math.isfinite(number) else str(number)


class NodeCase:
    """One case: its named inputs and outputs, and the scenario that asks the same."""

    def __init__(self, case):
        node = case.model.graph.node[0]
        inputs, outputs = case.data_sets[0]
        names = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
        given = [name for name, used in zip(names, node.input) if used]
        self.inputs = dict(zip(given, arrays(inputs)))
        names = ("Y", "present_key", "present_value", "qk_matmul_output")
        given = [name for name, used in zip(names, node.output) if used]
        self.outputs = dict(zip(given, arrays(outputs)))
        self.name, self.rtol, self.atol = case.name, case.rtol, case.atol
        self.attributes = {attribute.name: onnx.helper.get_attribute_value(attribute)
                           for attribute in node.attribute}
        self.opset = case.model.opset_import[0].version
        self.rank = self.inputs["Q"].ndim
        self.kv_heads = self.attributes.get("kv_num_heads", self.inputs["K"].shape[1])
        self.query_heads = self.attributes.get("q_num_heads", self.inputs["Q"].shape[1])

    def token_major(self, name: str) -> numpy.ndarray:
        """[batch, token, head, lane] of Q, K, V or a past tensor."""
        array = self.inputs[name]
        if array.ndim == 4:
            return array.transpose(0, 2, 1, 3)
        heads = self.query_heads if name == "Q" else self.kv_heads
        return array.reshape(array.shape[0], array.shape[1], heads, -1)

    def scenario(self) -> dict:
        query, key, value = map(self.token_major, ("Q", "K", "V"))
        scenario = {
            "schema": 1, "operator": "attention", "opset": self.opset, "batch": query.shape[0],
            "query_heads": query.shape[2], "kv_heads": key.shape[2], "head_size": query.shape[3],
            "value_head_size": value.shape[3], "element_type": ELEMENT[str(query.dtype)],
            "causal": bool(self.attributes.get("is_causal", 0)), "input_rank": self.rank,
            "fill": {"kind": "literal"}}
        self.put_attributes(scenario)
        step = {"append": key.shape[1], "queries": query.shape[1], "q": as_json(query),
                "k": as_json(key), "v": as_json(value)}
        scenario["steps"] = [step]
        length = key.shape[1]
        if "past_key" in self.inputs:
            past = self.token_major("past_key")
            length += past.shape[1]
            scenario["steps"].insert(0, {"past": past.shape[1], "k": as_json(past),
                                         "v": as_json(self.token_major("past_value"))})
        if "nonpad_kv_seqlen" in self.inputs:
            tokens = self.inputs["nonpad_kv_seqlen"].tolist()
            scenario["nonpad_kv_seqlen"] = True
            scenario.setdefault("cache", {})["capacity"] = length
            step.update(append=tokens, k=as_json(key[:, :max(tokens)]),
                        v=as_json(value[:, :max(tokens)]))
        if "attn_mask" in self.inputs:
            mask = self.inputs["attn_mask"]
            if mask.ndim == 3 and "nonpad_kv_seqlen" in self.inputs:
                # A scenario's mask is bound to positions, which differ between these entries.
                mask = numpy.broadcast_to(mask, (query.shape[0],) + mask.shape)
            scenario["mask"] = self.mask(mask, length)
            step["mask"] = as_json(mask)
        return scenario

    def put_attributes(self, scenario: dict) -> None:
        for name in ("scale", "softcap"):
            if name in self.attributes:
                scenario[name] = self.attributes[name]
        if "softmax_precision" in self.attributes:
            scenario["softmax_precision"] = PRECISION[self.attributes["softmax_precision"]]
        if "qk_matmul_output" in self.outputs:
            scenario["qk_output"] = MODES[self.attributes.get("qk_matmul_output_mode", 0)]
        left = self.attributes.get("left_window_size", -1)
        if left >= 0:
            scenario["cache"] = {"window_size": left + 1}
        right = self.attributes.get("right_window_size", -1)
        if right >= 0:
            scenario["right_window_size"] = right

    def mask(self, mask: numpy.ndarray, length: int) -> dict:
        """Its shape in the words of a scenario."""
        shape = (0,) * (4 - mask.ndim) + mask.shape
        batch, queries = self.inputs["Q"].shape[0], self.token_major("Q").shape[1]
        return {"kind": "boolean" if mask.dtype == bool else "additive", "rank": mask.ndim,
                "one_entry": shape[0] == 1 < batch, "one_head": shape[1] == 1 < self.query_heads,
                "one_query": shape[2] == 1 < queries, "missing_columns": length - shape[3]}

    def difference(self, answer: dict, rtol: float | None = None) -> str | None:
        """What differs by more than the case's own tolerance, or a relative one in its place."""
        step = answer["steps"][-1]
        output = numpy.array(as_numbers(step["outputs"]), float)  # [batch, query, head, lane]
        told = {"Y": output.transpose(0, 2, 1, 3)}
        if self.rank == 3:
            told["Y"] = output.reshape(output.shape[0], output.shape[1], -1)
        if "qk_matmul_output" in self.outputs:
            told["qk_matmul_output"] = numpy.array(as_numbers(step["qk_output"]), float)
        for name, new, past in (("present_key", "k", "past_key"),
                                ("present_value", "v", "past_value")):
            if name in self.outputs:
                rows = [numpy.array(item[new], float) for item in answer["steps"]]
                told[name] = numpy.concatenate(rows, axis=1).transpose(0, 2, 1, 3)
        for name, expected in self.outputs.items():
            close = numpy.isclose(told[name], expected.astype(float), rtol=rtol or self.rtol,
                                  atol=self.atol)
            if told[name].shape != expected.shape or not close.all():
                at = tuple(numpy.argwhere(~close)[0])
                return (f"{name} at {list(map(int, at))}: case {expected[at]}, "
                        f"model {told[name][at]}")
        return None


class NodeCases(unittest.TestCase):
    def test_the_model_answers_every_case_of_attention(self):
        cases = [NodeCase(case) for case in node_cases()]
        self.assertEqual(len(cases), CASES)
        passed = 0
        for case, answer in zip(cases, expected_answers([case.scenario() for case in cases])):
            with self.subTest(case=case.name):
                self.assertNotIn("error", answer)
                difference = case.difference(answer)
                if case.name in EXCEPTIONS:
                    self.assertIsNotNone(difference, f"{EXCEPTIONS[case.name]}: no longer so")
                    kind = answer["scenario"]["element_type"]
                    self.assertIsNone(case.difference(answer, WIDER[kind]))
                else:
                    self.assertIsNone(difference)
                    passed += 1
        print(f"\nonnx node cases: {passed} of {len(cases)} as the model answers, "
              f"{len(EXCEPTIONS)} exceptions")


if __name__ == "__main__":
    unittest.main()
