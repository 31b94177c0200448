#include "model/calls/tensor_info.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace kvcheck::model {

std::int64_t TensorInfo::dim(std::int64_t axis) const {
  return shape[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)];
}

std::int64_t TensorInfo::elements() const {
  // A dimension of 0 wins over an overflow of the others.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    if (product > kMost / size) return kMost;
    product *= size;
  }
  return product;
}

std::string_view to_string(TensorType type) {
  switch (type) {
    case TensorType::f32:
      return "f32";
    case TensorType::f16:
      return "f16";
    case TensorType::bf16:
      return "bf16";
    case TensorType::f64:
      return "f64";
    case TensorType::i8:
      return "i8";
    case TensorType::u8:
      return "u8";
    case TensorType::fp8:
      return "fp8";
    case TensorType::i32:
      return "i32";
    case TensorType::i64:
      return "i64";
    case TensorType::boolean:
      break;
  }
  return "boolean";
}

std::string to_string(const std::vector<std::int64_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace kvcheck::model
