// The mask tensor of a step: rows of biases, whatever its rank and the dimensions it lacks.
//
// Shapes [T], [Sq,T], [Nq,Sq,T] and [B,Nq,Sq,T], each dimension but the last possibly 1; column =
// position. Columns that are missing hide their keys (ONNX Attention from opset 24 on).
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cpu/element.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// What the mask says to one query of one head.
struct MaskRow {
  const std::byte* cells = nullptr;  ///< Of column 0; the others lie next to it.
  ElementType type = ElementType::boolean;
  std::int64_t columns = 0;

  /// What the mask adds to the logit of the key at `position`; -infinity hides it.
  double bias(std::int64_t position) const {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    if (position >= columns) return kHidden;
    const auto at = static_cast<std::size_t>(position) * element_bytes(type);
    const double cell = decode_element(type, cells + at);
    if (type != ElementType::boolean) return cell;
    return cell != 0 ? 0 : kHidden;
  }
};

class MaskRows {
 public:
  /// \pre check_mask found nothing wrong. Refers to the tensor.
  explicit MaskRows(const Tensor& mask) : mask_(&mask) {
    const std::size_t rank = mask.shape.size();
    std::int64_t stride = mask.shape[rank - 1];
    for (std::size_t d = rank - 1; d-- > 0;) {
      strides_[4 - rank + d] = mask.shape[d] == 1 ? 0 : stride;
      stride *= mask.shape[d];
    }
  }

  MaskRow row(std::int64_t entry, std::int64_t head, std::int64_t query) const {
    const std::int64_t first = entry * strides_[0] + head * strides_[1] + query * strides_[2];
    const auto bytes = static_cast<std::size_t>(first) * element_bytes(mask_->type);
    return {mask_->bytes.data() + bytes, mask_->type, mask_->shape.back()};
  }
  /// Elements from the row of one entry, head or query to that of the next; 0 where they share it.
  std::int64_t entry_stride() const { return strides_[0]; }
  std::int64_t head_stride() const { return strides_[1]; }
  std::int64_t query_stride() const { return strides_[2]; }
  std::int64_t columns() const { return mask_->shape.back(); }

  /// All heads of a group read one row.
  bool same_for_heads() const { return strides_[1] == 0; }

 private:
  const Tensor* mask_;
  std::int64_t strides_[3] = {0, 0, 0};  // Elements from one entry, head and query to the next.
};

}  // namespace kvcheck::kernels
