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

const TensorHead* take_rows(AnswerCheck& check, const SessionConfig& config) {
  const auto* key = check.take("rows.key", true, config.element_type,
                               {config.batch, config.kv_heads, kAny, config.head_size});
  check.take("rows.value", true, config.element_type,
             {config.batch, config.kv_heads, key->shape[2], config.value_head_size});
  return key;
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
  if (request.mask) {
    Shape shape{config.batch, config.query_heads, queries, kAny};
    const auto rank = std::clamp<std::size_t>(request.mask->shape.size(), 2, 4);
    shape.erase(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(rank));
    check_request_tensor("mask", *request.mask,
                         config.mask == "boolean" ? ElementType::boolean : type, shape);
  }
  if (request.poison) check_counts("poison.first_row", request.poison->first_row, config.batch);
}

void check_load_request(const LoadRequest& request, const SessionConfig& config) {
  check_counts("lengths", request.lengths, config.batch);
  check_request_tensor("rows.key", request.rows.key, config.element_type,
                       {config.batch, config.kv_heads, kAny, config.head_size});
  check_request_tensor(
      "rows.value", request.rows.value, config.element_type,
      {config.batch, config.kv_heads, request.rows.key.shape[2], config.value_head_size});
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
