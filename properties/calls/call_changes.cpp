// The changes.
#include "properties/calls/call_changes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace kvcheck::properties {
namespace {

using kernels::ElementType;
using kernels::OperatorCall;
using kernels::Tensor;
using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt32Min = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();

struct AttributeValues {
  const char* name;
  std::vector<std::int64_t> values;
};

const std::vector<AttributeValues>& whole_attributes(bool gqa) {
  static const std::vector<AttributeValues> of_gqa = {
      {"num_heads", {0, -1, 1, 2, 3, 6, kInt32Max + 1}},
      {"kv_num_heads", {0, -1, 1, 2, 5, kInt32Max + 1}},
      {"causal", {-1, 0, 2}},
      {"local_window_size", {-7, 0, 1, kInt32Max}},
      {"sliding_window_cache", {0, 1, 2}},
      {"do_rotary", {0, 1, 2}},
      {"qk_output", {-1, 0, 1, 2, 3}},
      {"kv_cache_bit_width", {0, 3, 4, 8}},
  };
  static const std::vector<AttributeValues> of_attention = {
      {"is_causal", {-1, 0, 1, 2}},
      {"q_num_heads", {0, -1, 1, 2, 3}},
      {"kv_num_heads", {0, -1, 1, 2, 5}},
      {"softmax_precision", {0, 1, 7, 10, 11}},
      {"qk_matmul_output_mode", {-1, 0, 1, 4}},
      {"left_window_size", {-2, -1, 0, kInt32Max}},
      {"right_window_size", {-2, -1, 0, kInt32Max}},
  };
  return gqa ? of_gqa : of_attention;
}

/// A value with a name that holds for any sizes.
struct Value {
  const char* name;
  std::int64_t value;
};

constexpr const char* kExtremes[] = {"2^31-2", "2^31-1", "-2^31", "2^31", "2^63-1", "-2^63"};

Tensor resized(const Tensor& tensor, Shape shape) {
  Tensor result = Tensor::zeros(tensor.type, std::move(shape));
  const std::size_t common = std::min(result.bytes.size(), tensor.bytes.size());
  if (common > 0) std::memcpy(result.bytes.data(), tensor.bytes.data(), common);
  return result;
}

/// The inputs without which a call is none of the operator.
bool is_required(std::string_view name) {
  return name == "query" || name == "Q" || name == "K" || name == "V" || name == "seqlens_k" ||
         name == "total_sequence_length";
}

class Changer {
 public:
  explicit Changer(const OperatorCall& call) : call_(call) {}

  std::vector<ChangedCall> run() {
    attributes();
    lengths();
    if (gqa()) layouts();
    for (const auto& input : call_.inputs) {
      if (!is_required(input.name)) {
        std::erase_if(add("without " + input.name).inputs,
                      [&](const auto& other) { return other.name == input.name; });
      }
      shapes(input.name);
      types(input.name);
    }
    outputs();
    return std::move(changed_);
  }

 private:
  bool gqa() const { return call_.op == "gqa"; }

  OperatorCall& add(std::string name, bool same_meaning = false) {
    changed_.push_back({std::move(name), call_, same_meaning});
    return changed_.back().call;
  }

  template <class Attribute>
  void set(const char* name, const Attribute& value) {
    const auto now = call_.attributes.find(name);
    if (now != call_.attributes.end()) {
      const auto* held = std::get_if<Attribute>(&now->second);
      if (held != nullptr && *held == value) return;
    }
    add(fmt::format("{}={}", name, value)).attributes[name] = value;
  }

  void attributes() {
    for (const auto& [name, values] : whole_attributes(gqa())) {
      for (const std::int64_t value : values) set(name, value);
    }
    if (!gqa()) {
      for (const double scale : {0.0, -1.0}) set("scale", scale);
      return;
    }
    for (const char* name : {"k_quant_type", "v_quant_type"}) {
      for (const char* type : {"NONE", "PER_TENSOR", "PER_CHANNEL", "PER_ROW"}) {
        set(name, std::string(type));
      }
    }
  }

  std::int64_t past_rows() const {
    const auto* past = call_.find(gqa() ? "past_key" : "K");
    return past == nullptr || past->tensor.shape.size() != 4 ? 0 : past->tensor.shape[2];
  }

  std::int64_t step_tokens() const {
    const Shape& shape = call_.find(gqa() ? "query" : "Q")->tensor.shape;
    return shape[shape.size() - 2];
  }

  void lengths() {
    const std::int64_t rows = past_rows(), step = step_tokens();
    whole_values("seqlens_k", {{"-2", -2},
                               {"-1", -1},
                               {"0", 0},
                               {"step-2", step - 2},
                               {"step-1", step - 1},
                               {"rows-1", rows - 1},
                               {"rows", rows},
                               {"rows+1", rows + 1},
                               {"2^31-2", kInt32Max - 1},
                               {"2^31-1", kInt32Max},
                               {"-2^31", kInt32Min}});
    whole_values("total_sequence_length", {{"-1", -1},
                                           {"0", 0},
                                           {"1", 1},
                                           {"step-1", step - 1},
                                           {"step", step},
                                           {"rows", rows},
                                           {"rows+1", rows + 1},
                                           {"rows+step", rows + step},
                                           {"rows+step+1", rows + step + 1},
                                           {"2^31-1", kInt32Max},
                                           {"-2^31", kInt32Min}});
    whole_values("nonpad_kv_seqlen", {{"-1", -1},
                                      {"0", 0},
                                      {"rows", rows},
                                      {"rows+1", rows + 1},
                                      {"2^31-1", kInt32Max},
                                      {"2^31", kInt32Max + 1},
                                      {"2^63-1", kInt64Max},
                                      {"-2^63", kInt64Min}});
    whole_values("position_ids", {{"-1", -1},
                                  {"0", 0},
                                  {"2^31-1", kInt32Max},
                                  {"2^31", kInt32Max + 1},
                                  {"2^63-1", kInt64Max},
                                  {"-2^63", kInt64Min}});
  }

  /// The first and the last element of an input of whole numbers.
  void whole_values(const char* name, const std::vector<Value>& values) {
    const auto* input = call_.find(name);
    if (input == nullptr) return;
    const std::size_t width = kernels::element_bytes(input->tensor.type);
    const std::size_t count = input->tensor.bytes.size() / width;
    for (const Value& value : values) set_whole(name, "0", 0, value, width);
    if (count < 2) return;
    for (const Value& value : values) set_whole(name, "last", count - 1, value, width);
  }

  void set_whole(const char* name, const char* index, std::size_t at, const Value& value,
                 std::size_t width) {
    OperatorCall changed = call_;
    std::byte* where = changed.find(name)->tensor.bytes.data() + at * width;
    const auto narrow = static_cast<std::int32_t>(value.value);
    const void* source = width == 4 ? static_cast<const void*>(&narrow) : &value.value;
    if (std::memcmp(where, source, width) == 0) return;
    std::memcpy(where, source, width);
    changed_.push_back({fmt::format("{}[{}]={}", name, index, value.name), std::move(changed)});
  }

  /// Shapes that the operator takes for the same elements.
  void layouts() {
    const std::int64_t batch = call_.find("seqlens_k")->tensor.shape[0];
    add("seqlens_k as a column", true).find("seqlens_k")->tensor.shape = {batch, 1};
    add("seqlens_k as a row", true).find("seqlens_k")->tensor.shape = {1, batch};
    add("total_sequence_length as a scalar", true).find("total_sequence_length")->tensor.shape = {};
  }

  void reshape(const std::string& name, const std::string& change, Shape shape) {
    add(name + change).find(name)->tensor = resized(call_.find(name)->tensor, std::move(shape));
  }

  void shapes(const std::string& name) {
    const Shape now = call_.find(name)->tensor.shape;
    for (std::size_t d = 0; d < now.size(); ++d) {
      const std::string dimension = fmt::format(".dim[{}]", d);
      Shape shape = now;
      shape[d] = now[d] + 1;
      reshape(name, dimension + "+1", shape);
      if (now[d] == 0) continue;
      shape[d] = now[d] - 1;
      reshape(name, dimension + "-1", shape);
      shape[d] = 0;
      if (now[d] > 1) reshape(name, dimension + "=0", shape);
    }
    if (now.size() > 1) reshape(name, ".rank-1", Shape(now.begin() + 1, now.end()));
    Shape longer = now;
    longer.insert(longer.begin(), 1);
    reshape(name, ".rank+1", std::move(longer));
  }

  void types(const std::string& name) {
    const Tensor& now = call_.find(name)->tensor;
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::f64,
                                   ElementType::i8, ElementType::i32, ElementType::i64}) {
      if (type == now.type) continue;
      add(fmt::format("{}.type={}", name, to_string(type))).find(name)->tensor =
          Tensor::zeros(type, now.shape);
    }
  }

  void outputs() {
    for (std::size_t i = 1; i < call_.outputs.size(); ++i) {
      std::erase(add("without the output " + call_.outputs[i]).outputs, call_.outputs[i]);
    }
    const std::string qk = gqa() ? "output_qk" : "qk_matmul_output";
    if (std::find(call_.outputs.begin(), call_.outputs.end(), qk) == call_.outputs.end()) {
      add("with the output " + qk).outputs.push_back(qk);
    }
  }

  const OperatorCall& call_;
  std::vector<ChangedCall> changed_;
};

}  // namespace

std::vector<ChangedCall> changed_calls(const OperatorCall& call) { return Changer(call).run(); }

std::optional<ChangedCall> changed_call(const OperatorCall& call, std::string_view name) {
  for (ChangedCall& changed : changed_calls(call)) {
    if (changed.name == name) return std::move(changed);
  }
  return std::nullopt;
}

bool is_extreme(std::string_view change) {
  const auto equals = change.find("]=");
  if (equals == std::string_view::npos) return false;
  const std::string_view value = change.substr(equals + 2);
  return std::find(std::begin(kExtremes), std::end(kExtremes), value) != std::end(kExtremes);
}

}  // namespace kvcheck::properties
