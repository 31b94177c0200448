// Operator calls as JSON.
#include "kernels/process/call_head.h"

#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "kernels/process/protocol_json.h"

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

/// With its type, which the operator's schema fixes and JSON does not tell.
json attribute(const std::variant<std::int64_t, double, std::string>& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return {{"int", *whole}};
  if (const auto* real = std::get_if<double>(&value)) return {{"float", json_number(*real)}};
  return {{"string", std::get<std::string>(value)}};
}

}  // namespace

std::vector<NamedTensor> call_tensors(const OperatorCall& call) {
  std::vector<NamedTensor> tensors;
  for (const OperatorCall::Input& input : call.inputs) {
    tensors.push_back({input.name, &input.tensor});
  }
  return tensors;
}

std::string call_head(std::int64_t id, const OperatorCall& call) {
  json attributes = json::object();
  for (const auto& [name, value] : call.attributes) attributes[name] = attribute(value);
  const json head{{"kind", "call"},
                  {"id", id},
                  {"op", call.op},
                  {"opset", call.opset},
                  {"attributes", attributes},
                  {"outputs", call.outputs},
                  {"tensors", json_descriptions(call_tensors(call))}};
  return head.dump();
}

void check_call_answer(std::span<const TensorHead> tensors, const OperatorCall& call) {
  std::vector<std::string> names;
  for (const TensorHead& tensor : tensors) names.push_back(tensor.name);
  if (names == call.outputs) return;
  throw ProtocolError(fmt::format("the answer holds [{}]; the call asks for [{}], in this order",
                                  fmt::join(names, ", "), fmt::join(call.outputs, ", ")));
}

}  // namespace kvcheck::kernels
