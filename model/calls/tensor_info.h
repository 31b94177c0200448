// Type and shape of a tensor of an operator call; no data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvcheck::model {

/// Element types that the inputs of either operator may have.
enum class TensorType { f32, f16, bf16, f64, i8, u8, fp8, i32, i64, boolean };

struct TensorInfo {
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;  ///< As found: dimensions may be negative or huge.

  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  /// \pre -rank() <= axis < rank(); a negative axis counts from the end
  std::int64_t dim(std::int64_t axis) const;
  /// Product of the dimensions; INT64_MAX where it is larger.
  /// \pre no dimension is negative
  std::int64_t elements() const;
};

/// "f32", "i64", "boolean", ...
std::string_view to_string(TensorType type);

/// "(2, 3, 16)"; "()" for a scalar.
std::string to_string(const std::vector<std::int64_t>& shape);

}  // namespace kvcheck::model
