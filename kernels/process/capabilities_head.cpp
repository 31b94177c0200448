// Capabilities as JSON, there and back.
#include "kernels/process/capabilities_head.h"

#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "kernels/process/fields.h"
#include "kernels/process/protocol.h"

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

template <class A, class Visit>
void each_arithmetic(A& arithmetic, Visit& visit) {
  static const Arithmetic plain;
  visit("accumulator_roundoff", arithmetic.accumulator_roundoff, plain.accumulator_roundoff);
  visit("truncates", arithmetic.truncates, plain.truncates);
  visit("operand_roundoff", arithmetic.operand_roundoff, plain.operand_roundoff);
  visit("product_roundoff", arithmetic.product_roundoff, plain.product_roundoff);
  visit("logit_roundoff", arithmetic.logit_roundoff, plain.logit_roundoff);
  visit("probability_roundoff", arithmetic.probability_roundoff, plain.probability_roundoff);
  visit("sums_stored_weights", arithmetic.sums_stored_weights, plain.sums_stored_weights);
  visit("exp_error", arithmetic.exp_error, plain.exp_error);
  visit("tanh_error", arithmetic.tanh_error, plain.tanh_error);
  visit("exp_flushes", arithmetic.exp_flushes, plain.exp_flushes);
  visit("base_two", arithmetic.base_two, plain.base_two);
  visit("fused_shift", arithmetic.fused_shift, plain.fused_shift);
  visit("scale_on_operands", arithmetic.scale_on_operands, plain.scale_on_operands);
  visit("exact_products", arithmetic.exact_products, plain.exact_products);
  visit("dequantise_roundings", arithmetic.dequantise_roundings, plain.dequantise_roundings);
  visit("dot_ways", arithmetic.dot_ways, plain.dot_ways);
  visit("dot_block", arithmetic.dot_block, plain.dot_block);
  visit("value_block", arithmetic.value_block, plain.value_block);
  visit("max_rescales", arithmetic.max_rescales, plain.max_rescales);
  visit("rescale_block", arithmetic.rescale_block, plain.rescale_block);
  visit("splits", arithmetic.splits, plain.splits);
  visit("merges_by_lse", arithmetic.merges_by_lse, plain.merges_by_lse);
}

/// All but name and version, which stand beside the claims.
template <class C, class Visit>
void each_claim(C& claims, Visit& visit) {
  static const Capabilities none;
  const auto arithmetic = [](auto& part, auto& inner) { each_arithmetic(part, inner); };
  visit("outputs", claims.outputs, none.outputs);
  visit("rows", claims.rows, none.rows);
  visit("visible", claims.visible, none.visible);
  visit("operators", claims.operators, none.operators);
  visit("opsets", claims.opsets, none.opsets);
  visit("element_types", claims.element_types, none.element_types);
  visit("element_types_where", claims.element_types_where, none.element_types_where);
  visit("layouts", claims.layouts, none.layouts);
  visit("head_size_multiple", claims.head_size_multiple, none.head_size_multiple);
  visit("head_size_multiple_with", claims.head_size_multiple_with, none.head_size_multiple_with);
  visit("features", claims.features, none.features);
  visit("isas", claims.isas, none.isas);
  visit.group("arithmetic", claims.arithmetic, true, arithmetic);
  visit.groups("arithmetic_where", claims.arithmetic_where, arithmetic);
}

/// No roundoff and no count is negative.
struct AtLeastZero {
  std::string where;

  template <class T>
  void operator()(const char* field, const T& value, const T&) const {
    if constexpr (!std::is_same_v<T, bool>) {
      if (!(value >= 0)) {
        throw ProtocolError(fmt::format("{}.{} = {}: must be at least 0", where, field, value));
      }
    }
  }
};

void check_multiple(const std::string& name, std::int64_t multiple) {
  if (multiple >= 1) return;
  throw ProtocolError(fmt::format("capabilities.{} = {}: must be at least 1", name, multiple));
}

void check_claims(const Capabilities& claims) {
  check_multiple("head_size_multiple", claims.head_size_multiple);
  for (const auto& [feature, multiple] : claims.head_size_multiple_with) {
    check_multiple(fmt::format("head_size_multiple_with[\"{}\"]", feature), multiple);
  }
  const AtLeastZero plain{"capabilities.arithmetic"};
  each_arithmetic(claims.arithmetic, plain);
  for (const auto& [where, arithmetic] : claims.arithmetic_where) {
    const AtLeastZero check{fmt::format("capabilities.arithmetic_where[\"{}\"]", where)};
    each_arithmetic(arithmetic, check);
  }
}

}  // namespace

json hello_fields(const Capabilities& claims) {
  json head{{"protocol", kProtocol}, {"name", claims.name}, {"version", claims.version}};
  std::vector<NamedTensor> none;
  FieldWriter writer(head["capabilities"] = json::object(), none);
  each_claim(claims, writer);
  return head;
}

Capabilities decode_hello(std::string_view head) {
  const json parsed = parse_head(head, FrameKind::answer);
  const Fields answer(parsed, "the answer to hello");
  if (const auto protocol = answer.get<std::int64_t>("protocol"); protocol != kProtocol) {
    throw ProtocolError(
        fmt::format("the adapter speaks protocol {}, this tool speaks {}", protocol, kProtocol));
  }
  Capabilities claims;
  claims.name = answer.get<std::string>("name");
  claims.version = answer.get<std::string>("version");
  const Fields fields(answer.at("capabilities"), "capabilities");
  FieldReader reader(fields, nullptr);
  each_claim(claims, reader);
  check_claims(claims);
  return claims;
}

}  // namespace kvcheck::kernels
