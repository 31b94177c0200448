// Writing the elements of a tensor in order.
#pragma once

#include <span>

#include "kernels/target.h"
#include "model/element_type.h"
#include "properties/convert.h"

namespace kvcheck::properties {

/// Writes elements one after the other, each rounded to the type.
class TensorWriter {
 public:
  /// \pre the type of `tensor` is one that the model computes in
  explicit TensorWriter(kernels::Tensor& tensor)
      : where_(tensor.bytes.data()),
        type_(to_model(tensor.type)),
        width_(kernels::element_bytes(tensor.type)) {}

  void put(double value) {
    model::store_element(type_, value, where_);
    where_ += width_;
  }

  void put_row(std::span<const double> row) {
    model::store_elements(type_, row, where_);
    where_ += row.size() * width_;
  }

 private:
  std::byte* where_;
  model::ElementType type_;
  std::size_t width_;
};

}  // namespace kvcheck::properties
