// Operator calls as JSON, there and back.
#include "kernels/process/call_head.h"

#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvcheck::kernels {
namespace {

using nlohmann::json;
using Attribute = std::variant<std::int64_t, double, std::string>;

// The types of attributes, in the order of the variant: the operator's schema fixes them, and JSON
// does not tell them.
constexpr const char* kTypes[] = {"int", "float", "string"};

json encode_attribute(const Attribute& attribute) {
  json object;
  std::vector<NamedTensor> none;
  FieldWriter writer(object, none);
  std::visit([&](const auto& value) { writer(kTypes[attribute.index()], value); }, attribute);
  return object;
}

Attribute decode_attribute(const Fields& attribute) {
  if (attribute.has(kTypes[0])) return attribute.get<std::int64_t>(kTypes[0]);
  if (attribute.has(kTypes[1])) return attribute.get<double>(kTypes[1]);
  if (attribute.has(kTypes[2])) return attribute.get<std::string>(kTypes[2]);
  throw ProtocolError(fmt::format("{} = {}: has none of the types {}", attribute.name(),
                                  shown(attribute.object().dump(), 60), fmt::join(kTypes, ", ")));
}

template <class Call, class Visit>
void each_field(Call& call, Visit& visit) {
  visit("op", call.op);
  visit("opset", call.opset);
  visit("outputs", call.outputs);
}

constexpr const char* kAttributes = "attributes";

}  // namespace

FrameContent call_request(std::int64_t id, const OperatorCall& call) {
  json head{{"kind", "call"}, {"id", id}, {kAttributes, json::object()}};
  std::vector<NamedTensor> tensors;
  FieldWriter writer(head, tensors);
  each_field(call, writer);
  for (const auto& [name, value] : call.attributes) {
    head[kAttributes][name] = encode_attribute(value);
  }
  for (const OperatorCall::Input& input : call.inputs) {
    tensors.push_back({input.name, &input.tensor});
  }
  head["tensors"] = json_descriptions(tensors);
  return {head.dump(), std::move(tensors)};
}

OperatorCall decode_call(const Fields& head, RequestTensors& tensors) {
  OperatorCall call;
  FieldReader reader(head, nullptr);
  each_field(call, reader);
  const Fields attributes = head.part(kAttributes);
  for (const auto& [name, unused] : attributes.object().items()) {
    call.attributes[name] = decode_attribute(attributes.part(name));
  }
  call.inputs = tensors.take_all();
  return call;
}

void check_call_answer(std::span<const TensorHead> tensors, const OperatorCall& call) {
  std::vector<std::string> names;
  for (const TensorHead& tensor : tensors) names.push_back(tensor.name);
  if (names == call.outputs) return;
  throw ProtocolError(fmt::format("the answer holds [{}]; the call asks for [{}], in this order",
                                  fmt::join(names, ", "), fmt::join(call.outputs, ", ")));
}

}  // namespace kvcheck::kernels
