// Element types and tensors of the target interface.
#include "kernels/target.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvcheck::kernels {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 31;

constexpr std::array<std::pair<ElementType, std::string_view>, 10> kNames{{
    {ElementType::f32, "f32"},
    {ElementType::f16, "f16"},
    {ElementType::bf16, "bf16"},
    {ElementType::f64, "f64"},
    {ElementType::boolean, "boolean"},
    {ElementType::i8, "i8"},
    {ElementType::u8, "u8"},
    {ElementType::f8e4m3, "f8e4m3"},
    {ElementType::i64, "i64"},
    {ElementType::i32, "i32"},
}};

}  // namespace

void refuse_element_type(ElementType type) {
  throw std::invalid_argument(fmt::format(
      "element type = {}: is none of f32, f16, bf16, f64, boolean, i8, u8, f8e4m3, i64, i32",
      static_cast<int>(type)));
}

std::string_view to_string(ElementType type) {
  for (const auto& [known, name] : kNames) {
    if (known == type) return name;
  }
  return "unknown";
}

std::optional<ElementType> element_type_from(std::string_view name) {
  for (const auto& [type, known] : kNames) {
    if (known == name) return type;
  }
  return std::nullopt;
}

std::int64_t Tensor::elements() const {
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      throw std::length_error(
          fmt::format("shape = [{}]: extents must not be negative", fmt::join(shape, ",")));
    }
    empty |= extent == 0;
  }
  if (empty) return 0;
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      throw std::length_error(fmt::format("shape = [{}]: has more than 2^63-1 elements; split it",
                                          fmt::join(shape, ",")));
    }
  }
  return product;
}

Tensor Tensor::zeros(ElementType type, std::vector<std::int64_t> shape) {
  Tensor tensor{type, std::move(shape), {}};
  const std::int64_t count = tensor.elements();
  const auto size = static_cast<std::int64_t>(element_bytes(type));
  if (count > kMaxBytes / size) {
    throw std::length_error(
        fmt::format("shape = [{}]: a tensor of {} must not exceed 2 GiB; "
                    "lower an extent",
                    fmt::join(tensor.shape, ","), to_string(type)));
  }
  tensor.bytes.resize(static_cast<std::size_t>(count * size));
  return tensor;
}

const Arithmetic& Capabilities::arithmetic_of(std::string_view op, std::string_view element_type,
                                              int opset) const {
  if (arithmetic_where.empty()) return arithmetic;
  const std::string pair = fmt::format("{} {}", op, element_type);
  for (const std::string& where : {fmt::format("{} {}", pair, opset), pair}) {
    const auto found = arithmetic_where.find(where);
    if (found != arithmetic_where.end()) return found->second;
  }
  return arithmetic;
}

bool Capabilities::has_at(std::string_view feature, int opset,
                          std::string_view element_type) const {
  if (has(feature) || has(fmt::format("{} {}", feature, element_type))) return true;
  for (int first = 23; first <= opset; ++first) {
    if (has(fmt::format("{} from {}", feature, first))) return true;
  }
  return false;
}

const OperatorCall::Input* OperatorCall::find(std::string_view name) const {
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const Input& input) { return input.name == name; });
  return found == inputs.end() ? nullptr : &*found;
}

OperatorCall::Input* OperatorCall::find(std::string_view name) {
  return const_cast<Input*>(std::as_const(*this).find(name));
}

std::string Session::last_store(const ElementPlace&) const { return ""; }

Answer<CallResult> Target::call(const OperatorCall&) {
  return Refusal{fmt::format("{} takes no operator calls; open a session", capabilities().name)};
}

}  // namespace kvcheck::kernels
