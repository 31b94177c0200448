// Encoding and decoding of protocol heads.
#include "kernels/process/protocol.h"

#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/process/protocol_json.h"

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

void store_little_endian(std::byte* where, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) where[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t load_little_endian(const std::byte* where, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(where[i]) << (8 * i);
  return value;
}

/// What a person recognises of bytes that should have been something else.
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

json request(const char* kind, std::int64_t id) { return {{"kind", kind}, {"id", id}}; }

json request(const char* kind, std::int64_t id, std::int64_t session) {
  return {{"kind", kind}, {"id", id}, {"session", session}};
}

json counts(std::span<const std::int64_t> values) {
  json list = json::array();
  for (const std::int64_t value : values) list.push_back(value);
  return list;
}

json parse_head(std::string_view head) {
  json parsed = json::parse(head, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object()) {
    throw ProtocolError(fmt::format(
        "the head of the answer is not a JSON object: \"{}\"; write {{\"id\":..,\"answer\":..}}",
        shown(head, 60)));
  }
  return parsed;
}

/// Reads typed fields of a JSON object and names them when they are not there.
class Fields {
 public:
  Fields(const json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object.is_object()) throw ProtocolError(fmt::format("{} must be an object", name_));
  }

  const std::string& name() const { return name_; }

  const json& at(const char* field) const {
    const auto found = object_.find(field);
    if (found == object_.end()) {
      throw ProtocolError(fmt::format("{} lacks the field {}", name_, field));
    }
    return *found;
  }
  bool has(const char* field) const { return object_.contains(field); }

  template <class T>
  T get(const char* field) const {
    const json& value = at(field);
    if (!fits<T>(value)) {
      throw ProtocolError(
          fmt::format("{}.{} = {}: has the wrong type", name_, field, shown(value.dump(), 60)));
    }
    return value.get<T>();
  }

  template <class T>
  T get_or(const char* field, T otherwise) const {
    return has(field) ? get<T>(field) : otherwise;
  }

  template <class T>
  std::vector<T> list(const char* field) const {
    std::vector<T> result;
    if (!has(field)) return result;
    const json& items = at(field);
    if (!items.is_array()) {
      throw ProtocolError(fmt::format("{}.{} must be an array", name_, field));
    }
    for (const json& item : items) {
      if (!fits<T>(item)) {
        throw ProtocolError(fmt::format("{}.{} holds {}: has the wrong type", name_, field,
                                        shown(item.dump(), 60)));
      }
      result.push_back(item.get<T>());
    }
    return result;
  }

  template <class T>
  std::set<T> set(const char* field) const {
    const std::vector<T> items = list<T>(field);
    return std::set<T>(items.begin(), items.end());
  }

 private:
  template <class T>
  static bool fits(const json& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value.is_boolean();
    } else if constexpr (std::is_same_v<T, std::string>) {
      return value.is_string();
    } else if constexpr (std::is_floating_point_v<T>) {
      return value.is_number();
    } else {
      return value.is_number_integer();
    }
  }

  const json& object_;
  std::string name_;
};

Arithmetic decode_arithmetic(const json& object, std::string name) {
  const Fields fields(object, std::move(name));
  Arithmetic result;
  const auto read = [&](const char* field, auto& value) {
    value = fields.get_or(field, value);
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (!std::is_same_v<Value, bool>) {
      if (!(value >= 0)) {
        throw ProtocolError(
            fmt::format("{}.{} = {}: must be at least 0", fields.name(), field, value));
      }
    }
  };
  read("accumulator_roundoff", result.accumulator_roundoff);
  read("truncates", result.truncates);
  read("operand_roundoff", result.operand_roundoff);
  read("product_roundoff", result.product_roundoff);
  read("logit_roundoff", result.logit_roundoff);
  read("probability_roundoff", result.probability_roundoff);
  read("sums_stored_weights", result.sums_stored_weights);
  read("exp_error", result.exp_error);
  read("tanh_error", result.tanh_error);
  read("exp_flushes", result.exp_flushes);
  read("base_two", result.base_two);
  read("fused_shift", result.fused_shift);
  read("scale_on_operands", result.scale_on_operands);
  read("exact_products", result.exact_products);
  read("dequantise_roundings", result.dequantise_roundings);
  read("dot_ways", result.dot_ways);
  read("dot_block", result.dot_block);
  read("value_block", result.value_block);
  read("max_rescales", result.max_rescales);
  read("rescale_block", result.rescale_block);
  read("splits", result.splits);
  read("merges_by_lse", result.merges_by_lse);
  return result;
}

std::map<std::string, std::int64_t> decode_multiples(const Fields& claims) {
  std::map<std::string, std::int64_t> result;
  constexpr const char* kField = "head_size_multiple_with";
  if (!claims.has(kField)) return result;
  const Fields multiples(claims.at(kField), fmt::format("capabilities.{}", kField));
  for (const auto& [feature, unused] : claims.at(kField).items()) {
    result[feature] = multiples.get<std::int64_t>(feature.c_str());
    if (result[feature] < 1) {
      throw ProtocolError(fmt::format("capabilities.{}[\"{}\"] = {}: must be at least 1", kField,
                                      feature, result[feature]));
    }
  }
  return result;
}

TensorHead decode_tensor_head(const json& object) {
  const Fields fields(object, "a tensor of the answer");
  TensorHead head;
  head.name = fields.get<std::string>("name");
  const auto type = element_type_from(fields.get<std::string>("type"));
  if (!type) {
    throw ProtocolError(fmt::format("the answer's {} has the unknown element type {}", head.name,
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
    throw ProtocolError(
        fmt::format("the answer's {} has the shape {}, which is none of at most {} "
                    "bytes",
                    head.name, shown(shape.dump(), 80), kBodyLimit));
  }
  return head;
}

}  // namespace

std::array<std::byte, kPrefixBytes> encode_prefix(const FramePrefix& prefix) {
  std::array<std::byte, kPrefixBytes> bytes{};
  std::memcpy(bytes.data(), kFrameMagic.data(), kFrameMagic.size());
  store_little_endian(bytes.data() + 4, prefix.head_bytes, 4);
  store_little_endian(bytes.data() + 8, prefix.body_bytes, 8);
  return bytes;
}

FramePrefix decode_prefix(std::span<const std::byte, kPrefixBytes> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kFrameMagic.size()) != kFrameMagic) {
    throw ProtocolError(
        fmt::format("an answer must start with {} but starts with \"{}\"; write nothing but frames "
                    "to standard output, and messages to standard error",
                    kFrameMagic, shown(text, kPrefixBytes)));
  }
  const FramePrefix prefix{load_little_endian(bytes.data() + 4, 4),
                           load_little_endian(bytes.data() + 8, 8)};
  if (prefix.head_bytes > kHeadLimit || prefix.body_bytes > kBodyLimit) {
    throw ProtocolError(fmt::format(
        "the answer announces a head of {} and a body of {} bytes; the limits are {} and {}",
        prefix.head_bytes, prefix.body_bytes, kHeadLimit, kBodyLimit));
  }
  return prefix;
}

std::string hello_head(std::int64_t id) {
  json head = request("hello", id);
  head["protocol"] = kProtocol;
  return head.dump();
}

std::string step_head(std::int64_t id, std::int64_t session, const StepRequest& step,
                      bool want_rows, std::span<const NamedTensor> tensors) {
  json head = request("step", id, session);
  head["tokens"] = counts(step.tokens);
  head["queries"] = counts(step.queries);
  if (want_rows) head["want_rows"] = true;
  if (step.poison) {
    head["poison"] = {{"value", json_number(step.poison->value)},
                      {"first_row", counts(step.poison->first_row)}};
  }
  head["tensors"] = json_descriptions(tensors);
  return head.dump();
}

std::string rollback_head(std::int64_t id, std::int64_t session,
                          std::span<const std::int64_t> tokens) {
  json head = request("rollback", id, session);
  head["tokens"] = counts(tokens);
  return head.dump();
}

std::string load_head(std::int64_t id, std::int64_t session, std::span<const std::int64_t> lengths,
                      std::span<const NamedTensor> tensors) {
  json head = request("load", id, session);
  head["lengths"] = counts(lengths);
  head["tensors"] = json_descriptions(tensors);
  return head.dump();
}

std::string present_head(std::int64_t id, std::int64_t session) {
  return request("present", id, session).dump();
}

std::string close_head(std::int64_t id, std::int64_t session) {
  return request("close", id, session).dump();
}

AnswerHead decode_answer(std::string_view head, std::int64_t id, std::uint64_t body_bytes) {
  const json parsed = parse_head(head);
  const Fields fields(parsed, "the answer");
  const auto kind = fields.get<std::string>("answer");
  // An adapter that cannot read a request does not know its id, and says so with 0.
  const auto found = fields.get<std::int64_t>("id");
  if (found != id && !(found == 0 && kind == "error")) {
    throw ProtocolError(fmt::format(
        "the answer has the id {}, the request had {}; answer every request once, in order, with "
        "its own id",
        found, id));
  }
  AnswerHead answer;
  if (kind == "refused") {
    answer.kind = AnswerHead::Kind::refused;
    answer.text = fields.get<std::string>("reason");
  } else if (kind == "error") {
    answer.kind = AnswerHead::Kind::error;
    answer.text = fields.get<std::string>("detail");
  } else if (kind != "ok") {
    throw ProtocolError(
        fmt::format("the answer is of the kind \"{}\"; protocol {} knows ok, refused and error",
                    shown(kind, 40), kProtocol));
  }
  std::uint64_t total = 0;
  if (fields.has("tensors")) {
    if (!fields.at("tensors").is_array()) throw ProtocolError("the answer.tensors must be a list");
    for (const json& object : fields.at("tensors")) {
      answer.tensors.push_back(decode_tensor_head(object));
      total += answer.tensors.back().bytes;
    }
  }
  if (total != body_bytes || (answer.kind != AnswerHead::Kind::ok && body_bytes > 0)) {
    throw ProtocolError(fmt::format("the tensors of the answer take {} bytes but its body has {}",
                                    total, body_bytes));
  }
  return answer;
}

Capabilities decode_hello(std::string_view head) {
  const json parsed = parse_head(head);
  const Fields answer(parsed, "the answer to hello");
  if (const auto protocol = answer.get<std::int64_t>("protocol"); protocol != kProtocol) {
    throw ProtocolError(
        fmt::format("the adapter speaks protocol {}, this tool speaks {}", protocol, kProtocol));
  }
  Capabilities result;
  result.name = answer.get<std::string>("name");
  result.version = answer.get<std::string>("version");
  const Fields claims(answer.at("capabilities"), "capabilities");
  result.outputs = claims.get_or("outputs", result.outputs);
  result.rows = claims.get_or("rows", result.rows);
  result.visible = claims.get_or("visible", result.visible);
  result.operators = claims.set<std::string>("operators");
  result.opsets = claims.set<int>("opsets");
  result.element_types = claims.set<std::string>("element_types");
  if (claims.has("element_types_where")) {
    const Fields where(claims.at("element_types_where"), "capabilities.element_types_where");
    for (const auto& [op, unused] : claims.at("element_types_where").items()) {
      result.element_types_where[op] = where.set<std::string>(op.c_str());
    }
  }
  result.layouts = claims.set<std::string>("layouts");
  const auto features = claims.set<std::string>("features");
  result.features.insert(features.begin(), features.end());
  result.head_size_multiple = claims.get_or("head_size_multiple", result.head_size_multiple);
  if (result.head_size_multiple < 1) {
    throw ProtocolError(fmt::format("capabilities.head_size_multiple = {}: must be at least 1",
                                    result.head_size_multiple));
  }
  result.head_size_multiple_with = decode_multiples(claims);
  result.isas = claims.list<std::string>("isas");
  if (claims.has("arithmetic")) {
    result.arithmetic = decode_arithmetic(claims.at("arithmetic"), "capabilities.arithmetic");
  }
  if (claims.has("arithmetic_where")) {
    if (!claims.at("arithmetic_where").is_object()) {
      throw ProtocolError("capabilities.arithmetic_where must be an object");
    }
    for (const auto& [where, object] : claims.at("arithmetic_where").items()) {
      result.arithmetic_where[where] =
          decode_arithmetic(object, fmt::format("capabilities.arithmetic_where[\"{}\"]", where));
    }
  }
  return result;
}

}  // namespace kvcheck::kernels
