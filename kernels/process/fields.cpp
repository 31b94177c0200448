// Reading of JSON fields, and the tensors that a head announces.
#include "kernels/process/fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvcheck::kernels {

using nlohmann::json;

std::string shown(std::string_view bytes, std::size_t most) {
  std::string text;
  for (const char c : bytes.substr(0, most)) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return bytes.size() > most ? text + "..." : text;
}

json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::optional<double> number_from(const json& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return kInfinity;
  if (value == "-inf") return -kInfinity;
  return std::nullopt;
}

json json_descriptions(std::span<const NamedTensor> tensors) {
  auto list = json::array();
  for (const auto& [name, tensor] : tensors) {
    list.push_back({{"name", name}, {"type", to_string(tensor->type)}, {"shape", tensor->shape}});
  }
  return list;
}

json parse_head(std::string_view head, FrameKind kind) {
  json parsed = json::parse(head, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object()) {
    const bool answer = kind == FrameKind::answer;
    throw ProtocolError(fmt::format(
        "the head of the {} is not a JSON object: \"{}\"; write {}", answer ? "answer" : "request",
        shown(head, 60), answer ? R"({"id":..,"answer":..})" : R"({"kind":..,"id":..})"));
  }
  return parsed;
}

Fields::Fields(const json& object, std::string name) : object_(object), name_(std::move(name)) {
  if (!object.is_object()) throw ProtocolError(fmt::format("{} must be an object", name_));
}

const json& Fields::at(const std::string& field) const {
  const auto found = object_.find(field);
  if (found == object_.end()) {
    throw ProtocolError(fmt::format("{} lacks the field {}", name_, field));
  }
  return *found;
}

const json& Fields::array(const std::string& field) const {
  const json& items = at(field);
  if (!items.is_array()) {
    throw ProtocolError(fmt::format("{}.{} must be an array", name_, field));
  }
  return items;
}

namespace {

/// `whose` is "the answer" or "the request".
TensorHead decode_tensor(const json& object, const std::string& whose) {
  const Fields fields(object, fmt::format("a tensor of {}", whose));
  TensorHead head;
  head.name = fields.get<std::string>("name");
  const auto type = element_type_from(fields.get<std::string>("type"));
  if (!type) {
    throw ProtocolError(fmt::format("{}'s {} has the unknown element type {}", whose, head.name,
                                    shown(fields.at("type").dump(), 40)));
  }
  head.type = *type;
  const json& shape = fields.at("shape");
  head.bytes = element_bytes(*type);
  bool valid = shape.is_array();
  for (std::size_t i = 0; valid && i < shape.size(); ++i) {
    valid = shape[i].is_number_integer() && shape[i].get<std::int64_t>() >= 0;
    if (!valid) break;
    const auto extent = shape[i].get<std::int64_t>();
    head.shape.push_back(extent);
    valid = !__builtin_mul_overflow(head.bytes, static_cast<std::uint64_t>(extent), &head.bytes);
  }
  if (!valid || head.bytes > kBodyLimit) {
    throw ProtocolError(fmt::format("{}'s {} has the shape {}, which is none of at most {} bytes",
                                    whose, head.name, shown(shape.dump(), 80), kBodyLimit));
  }
  return head;
}

}  // namespace

std::vector<TensorHead> decode_tensors(const Fields& head, std::uint64_t body_bytes) {
  std::vector<TensorHead> tensors;
  std::uint64_t total = 0;
  if (head.has("tensors")) {
    if (!head.at("tensors").is_array()) {
      throw ProtocolError(fmt::format("{}.tensors must be a list", head.name()));
    }
    for (const json& object : head.at("tensors")) {
      tensors.push_back(decode_tensor(object, head.name()));
      total += tensors.back().bytes;
    }
  }
  if (total != body_bytes) {
    throw ProtocolError(fmt::format("the tensors of {} take {} bytes but its body has {}",
                                    head.name(), total, body_bytes));
  }
  return tensors;
}

namespace {

auto place_of(auto& tensors, std::string_view name) {
  return std::find_if(tensors.begin(), tensors.end(),
                      [&](const OperatorCall::Input& input) { return input.name == name; });
}

}  // namespace

void RequestTensors::add(std::string name, Tensor tensor) {
  if (has(name)) throw ProtocolError(fmt::format("the request holds the tensor {} twice", name));
  tensors_.push_back({std::move(name), std::move(tensor)});
}

bool RequestTensors::has(std::string_view name) const {
  return place_of(tensors_, name) != tensors_.end();
}

Tensor RequestTensors::take(std::string_view name) {
  const auto found = place_of(tensors_, name);
  if (found == tensors_.end()) {
    throw ProtocolError(fmt::format("the request lacks the tensor {}", name));
  }
  Tensor tensor = std::move(found->tensor);
  tensors_.erase(found);
  return tensor;
}

void RequestTensors::finish() const {
  if (tensors_.empty()) return;
  throw ProtocolError(
      fmt::format("the request holds the unknown tensor {}", tensors_.front().name));
}

std::optional<std::string> FieldNames::unknown_in(const json& object,
                                                  const std::string& prefix) const {
  for (const auto& [name, value] : object.items()) {
    const std::string path = prefix + name;
    if (!names_.contains(path)) return path;
    if (!value.is_object()) continue;
    if (auto inner = unknown_in(value, path + ".")) return inner;
  }
  return std::nullopt;
}

}  // namespace kvcheck::kernels
