// Comparison of tensors with the shapes that a session fixes.
#include "kernels/process/shape_check.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvcheck::kernels {
namespace {

using Shape = std::vector<std::int64_t>;

/// Any extent will do.
constexpr std::int64_t kAny = -1;

bool matches(const Shape& found, const Shape& wanted) {
  if (found.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (wanted[i] != kAny && found[i] != wanted[i]) return false;
  }
  return true;
}

std::string described(ElementType type, const Shape& shape) {
  std::string text = fmt::format("{} [", to_string(type));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += shape[i] == kAny ? std::string("any") : std::to_string(shape[i]);
  }
  return text + "]";
}

std::int64_t largest(std::span<const std::int64_t> counts) {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

void check_request_tensor(std::string_view name, const Tensor& tensor, ElementType type,
                          const Shape& shape) {
  if (tensor.type != type || !matches(tensor.shape, shape)) {
    throw std::invalid_argument(fmt::format("{} is {}; the session takes {}", name,
                                            described(tensor.type, tensor.shape),
                                            described(type, shape)));
  }
  const auto wanted = static_cast<std::uint64_t>(tensor.elements()) * element_bytes(tensor.type);
  if (tensor.bytes.size() != wanted) {
    throw std::invalid_argument(
        fmt::format("{} holds {} bytes; its shape takes {}", name, tensor.bytes.size(), wanted));
  }
}

/// The tensors of one answer; every one must be asked for exactly once.
class AnswerCheck {
 public:
  explicit AnswerCheck(std::span<const TensorHead> tensors) : tensors_(tensors) {}

  /// The tensor of that name, which must have this type and shape; nullptr where it is absent.
  const TensorHead* take(std::string_view name, bool required, ElementType type,
                         const Shape& shape) {
    const TensorHead* found = nullptr;
    for (const TensorHead& tensor : tensors_) {
      if (tensor.name != name) continue;
      if (found != nullptr) throw ProtocolError(fmt::format("the answer holds {} twice", name));
      found = &tensor;
    }
    if (found == nullptr) {
      if (required) {
        throw ProtocolError(fmt::format(
            "the answer lacks the tensor {}, which must be {}; send it, or do not claim it in the "
            "handshake",
            name, described(type, shape)));
      }
      return nullptr;
    }
    if (found->type != type || !matches(found->shape, shape)) {
      throw ProtocolError(fmt::format("the answer's {} is {}; it must be {}", name,
                                      described(found->type, found->shape),
                                      described(type, shape)));
    }
    ++taken_;
    return found;
  }

  void finish(std::string_view allowed) const {
    if (taken_ == tensors_.size()) return;
    std::vector<std::string_view> names;
    for (const TensorHead& tensor : tensors_) names.push_back(tensor.name);
    throw ProtocolError(
        fmt::format("the answer holds {}; this request takes {}", fmt::join(names, ", "), allowed));
  }

 private:
  std::span<const TensorHead> tensors_;
  std::size_t taken_ = 0;
};

/// How the cache stores its elements.
ElementType storage_type(const SessionConfig& config) {
  const std::string& kind = config.quantisation.kind;
  if (kind == "int8") return ElementType::i8;
  if (kind == "int4") return ElementType::u8;
  if (kind == "fp8") return ElementType::f8e4m3;
  return config.element_type;
}

/// [B,Nk,rows,lanes], two lanes in a byte of int4.
Shape rows_shape(const SessionConfig& config, std::int64_t rows, std::int64_t lanes) {
  const std::int64_t stored = config.quantisation.kind == "int4" ? (lanes + 1) / 2 : lanes;
  return {config.batch, config.kv_heads, rows, stored};
}

const TensorHead* take_rows(AnswerCheck& check, const SessionConfig& config) {
  const ElementType type = storage_type(config);
  const auto* key = check.take("rows.key", true, type, rows_shape(config, kAny, config.head_size));
  check.take("rows.value", true, type, rows_shape(config, key->shape[2], config.value_head_size));
  return key;
}

/// A mask of rank 1 to 4, whose dimensions but the last may be 1 in place of many.
void check_mask(const Tensor& mask, std::int64_t queries, const SessionConfig& config) {
  Shape shape{config.batch, config.query_heads, queries, kAny};
  const auto rank = std::clamp<std::size_t>(mask.shape.size(), 1, 4);
  shape.erase(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(rank));
  for (std::size_t i = 0; i + 1 < std::min(rank, mask.shape.size()); ++i) {
    if (mask.shape[i] == 1) shape[i] = 1;
  }
  check_request_tensor(
      "mask", mask, config.mask == "boolean" ? ElementType::boolean : config.element_type, shape);
}

}  // namespace

void check_counts(std::string_view name, std::span<const std::int64_t> counts, std::int64_t batch) {
  if (static_cast<std::int64_t>(counts.size()) == batch &&
      std::all_of(counts.begin(), counts.end(), [](std::int64_t n) { return n >= 0; })) {
    return;
  }
  throw std::invalid_argument(fmt::format("{} = [{}]: must hold {} counts, each at least 0", name,
                                          fmt::join(counts, ","), batch));
}

void check_session_config(const SessionConfig& config) {
  if (config.batch < 1) {
    throw std::invalid_argument(fmt::format("batch = {}: must be at least 1", config.batch));
  }
  const ElementType type = config.element_type;
  if (config.head_sink) {
    check_request_tensor("head_sink", *config.head_sink, type, {config.query_heads});
  }
  if (config.rotary) {
    check_request_tensor("rotary.cos", config.rotary->cos, type, {kAny, kAny});
    check_request_tensor("rotary.sin", config.rotary->sin, type, config.rotary->cos.shape);
  }
  if (config.qk_norm) {
    const Shape lanes{config.head_size};
    check_request_tensor("qk_norm.query_weight", config.qk_norm->query_weight, type, lanes);
    check_request_tensor("qk_norm.key_weight", config.qk_norm->key_weight, type, lanes);
  }
  if (config.quantisation.quantised()) {
    const Shape scales =
        config.quantisation.per_channel ? Shape{config.kv_heads, config.head_size} : Shape{1};
    check_request_tensor("quantisation.key_scale", config.quantisation.key_scale, ElementType::f32,
                         scales);
    check_request_tensor("quantisation.value_scale", config.quantisation.value_scale,
                         ElementType::f32, scales);
  }
}

void check_step_request(const StepRequest& request, const SessionConfig& config) {
  check_counts("tokens", request.tokens, config.batch);
  check_counts("queries", request.queries, config.batch);
  const std::int64_t tokens = largest(request.tokens), queries = largest(request.queries);
  const ElementType type = config.element_type;
  check_request_tensor("query", request.query, type,
                       {config.batch, queries, config.query_heads, config.head_size});
  check_request_tensor("key", request.key, type,
                       {config.batch, tokens, config.kv_heads, config.head_size});
  check_request_tensor("value", request.value, type,
                       {config.batch, tokens, config.kv_heads, config.value_head_size});
  if (request.mask.has_value() != (config.mask != "none")) {
    throw std::invalid_argument(fmt::format("mask is {} but the session has mask {}",
                                            request.mask ? "given" : "absent", config.mask));
  }
  if (request.mask) check_mask(*request.mask, queries, config);
  const bool positions = config.rotary && config.rotary->position_ids;
  if (request.position_ids.has_value() != positions) {
    throw std::invalid_argument(
        fmt::format("position_ids are {} but rotary.position_ids of the session is {}",
                    request.position_ids ? "given" : "absent", positions));
  }
  if (positions) {
    check_request_tensor("position_ids", *request.position_ids, ElementType::i64,
                         {config.batch, kAny});
  }
  if (request.poison) check_counts("poison.first_row", request.poison->first_row, config.batch);
}

void check_load_request(const LoadRequest& request, const SessionConfig& config) {
  check_counts("lengths", request.lengths, config.batch);
  const ElementType type = storage_type(config);
  check_request_tensor("rows.key", request.rows.key, type,
                       rows_shape(config, kAny, config.head_size));
  check_request_tensor("rows.value", request.rows.value, type,
                       rows_shape(config, request.rows.key.shape[2], config.value_head_size));
}

void check_step_answer(std::span<const TensorHead> tensors, std::int64_t queries, bool want_rows,
                       const Capabilities& claims, const SessionConfig& config) {
  AnswerCheck check(tensors);
  std::string allowed;
  if (claims.outputs) {
    check.take("output", queries > 0, config.element_type,
               {config.batch, queries, config.query_heads, config.value_head_size});
    allowed += "output ";
  }
  std::int64_t rows = kAny;
  if (want_rows) {
    rows = take_rows(check, config)->shape[2];
    allowed += "rows.key rows.value ";
  }
  if (config.qk_output != "none") {
    check.take("qk", claims.outputs && queries > 0, config.element_type,
               {config.batch, config.query_heads, queries, kAny});
    allowed += "qk ";
  }
  if (claims.visible) {
    check.take("visible", queries > 0, ElementType::boolean, {config.batch, queries, rows});
    allowed += "visible ";
  }
  check.finish(allowed.empty() ? "no tensor" : allowed.substr(0, allowed.size() - 1));
}

void check_rows_answer(std::span<const TensorHead> tensors, const SessionConfig& config) {
  AnswerCheck check(tensors);
  take_rows(check, config);
  check.finish("rows.key rows.value");
}

}  // namespace kvcheck::kernels
