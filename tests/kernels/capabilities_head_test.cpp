// What a target claims, there and back.
#include "kernels/process/capabilities_head.h"

#include <limits>

#include <gtest/gtest.h>

#include "kernels/process/answer_head.h"
#include "tests/kernels/field_texts.h"

namespace kvcheck::kernels {
namespace {

FieldTexts texts_of(const Arithmetic& arithmetic) {
  const auto& [accumulator_roundoff, truncates, operand_roundoff, product_roundoff, logit_roundoff,
               probability_roundoff, sums_stored_weights, exp_error, tanh_error, exp_flushes,
               base_two, fused_shift, scale_on_operands, exact_products, dequantise_roundings,
               dot_ways, dot_block, value_block, max_rescales, rescale_block, splits,
               merges_by_lse] = arithmetic;
  return {{"accumulator_roundoff", text_of(accumulator_roundoff)},
          {"truncates", text_of(truncates)},
          {"operand_roundoff", text_of(operand_roundoff)},
          {"product_roundoff", text_of(product_roundoff)},
          {"logit_roundoff", text_of(logit_roundoff)},
          {"probability_roundoff", text_of(probability_roundoff)},
          {"sums_stored_weights", text_of(sums_stored_weights)},
          {"exp_error", text_of(exp_error)},
          {"tanh_error", text_of(tanh_error)},
          {"exp_flushes", text_of(exp_flushes)},
          {"base_two", text_of(base_two)},
          {"fused_shift", text_of(fused_shift)},
          {"scale_on_operands", text_of(scale_on_operands)},
          {"exact_products", text_of(exact_products)},
          {"dequantise_roundings", text_of(dequantise_roundings)},
          {"dot_ways", text_of(dot_ways)},
          {"dot_block", text_of(dot_block)},
          {"value_block", text_of(value_block)},
          {"max_rescales", text_of(max_rescales)},
          {"rescale_block", text_of(rescale_block)},
          {"splits", text_of(splits)},
          {"merges_by_lse", text_of(merges_by_lse)}};
}

FieldTexts texts_of(const Capabilities& claims) {
  const auto& [name, version, outputs, rows, visible, operators, opsets, element_types,
               element_types_where, layouts, head_size_multiple, head_size_multiple_with, features,
               isas, arithmetic, arithmetic_where] = claims;
  FieldTexts texts{{"name", text_of(name)},
                   {"version", text_of(version)},
                   {"outputs", text_of(outputs)},
                   {"rows", text_of(rows)},
                   {"visible", text_of(visible)},
                   {"operators", text_of(operators)},
                   {"opsets", text_of(opsets)},
                   {"element_types", text_of(element_types)},
                   {"element_types_where", text_of(element_types_where)},
                   {"layouts", text_of(layouts)},
                   {"head_size_multiple", text_of(head_size_multiple)},
                   {"head_size_multiple_with", text_of(head_size_multiple_with)},
                   {"features", fmt::format("{}", fmt::join(features, ","))},
                   {"isas", text_of(isas)}};
  add_part(texts, "arithmetic", texts_of(arithmetic));
  for (const auto& [where, part] : arithmetic_where) add_part(texts, where, texts_of(part));
  return texts;
}

/// Every field away from its default, and no two alike.
Arithmetic other_arithmetic() {
  Arithmetic other;
  other.accumulator_roundoff = 0x1p-11;
  other.truncates = other.sums_stored_weights = other.exp_flushes = other.base_two = true;
  other.operand_roundoff = 0x1p-9;
  other.product_roundoff = 1.0 / 3;
  other.logit_roundoff = 0x1p-149;
  other.probability_roundoff = 0.1;
  other.exp_error = std::numeric_limits<double>::infinity();
  other.tanh_error = 0x1p-8;
  other.fused_shift = other.scale_on_operands = other.exact_products = other.merges_by_lse = true;
  other.dequantise_roundings = 2;
  other.dot_ways = 3;
  other.dot_block = 4;
  other.value_block = 5;
  other.max_rescales = std::int64_t{1} << 62;
  other.rescale_block = 7;
  other.splits = 8;
  return other;
}

Capabilities other_claims() {
  Capabilities other;
  other.name = "a \"name\"";
  other.version = "1.2 on NVIDIA H200";
  other.outputs = other.rows = false;
  other.visible = true;
  other.operators = {"attention", "gqa"};
  other.opsets = {23, 25};
  other.element_types = {"f16", "f32"};
  other.element_types_where = {{"gqa", {"f32"}}, {"attention", {}}};
  other.layouts = {"block"};
  other.head_size_multiple = 16;
  other.head_size_multiple_with = {{"rotary", 32}};
  other.features = {"rollback", "short_mask from 25"};
  other.isas = {"avx512", "avx2"};
  other.arithmetic = other_arithmetic();
  other.arithmetic_where["attention f16 25"].splits = 9;
  other.arithmetic_where["gqa f16"] = other_arithmetic();
  return other;
}

Capabilities read_back(const Capabilities& claims) {
  return decode_hello(ok_answer(1, hello_fields(claims), {}).head);
}

TEST(Hello, ReadsBackFieldByField) {
  const Capabilities claims = other_claims();
  EXPECT_EQ(same_fields(texts_of(claims), texts_of(Capabilities{})), std::vector<std::string>{})
      << "these fields are at their default, so that nothing shows whether they travel";
  EXPECT_EQ(texts_of(read_back(claims)), texts_of(claims));
}

TEST(Hello, ReadsBackWhatIsAtItsDefault) {
  EXPECT_EQ(texts_of(read_back(Capabilities{})), texts_of(Capabilities{}));
}

}  // namespace
}  // namespace kvcheck::kernels
