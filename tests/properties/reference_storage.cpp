// Codes by a division and the nearest integer, in f32 as the operator's documents say.
#include "tests/properties/reference_storage.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/element.h"
#include "properties/execution.h"

namespace kvcheck::properties {
namespace {

double rounded(kernels::ElementType type, double value) {
  std::byte bytes[8];
  kernels::encode_element(type, value, bytes);
  return kernels::decode_element(type, bytes);
}

}  // namespace

double ReferenceStorage::scale_of(bool key, std::int64_t head, std::int64_t lane) const {
  const kernels::Tensor& scales = key ? c_.quantisation.key_scale : c_.quantisation.value_scale;
  const bool each = c_.quantisation.per_channel && mistake_ != "scale_of_first_lane";
  return element(scales, each ? head * c_.head_size + lane : 0);
}

double ReferenceStorage::code(double value, double scale) const {
  const double exact = static_cast<float>(static_cast<float>(value) / static_cast<float>(scale));
  if (c_.quantisation.kind == "fp8") return rounded(kernels::ElementType::f8e4m3, exact);
  const double whole = mistake_ == "codes_truncated" ? std::trunc(exact) : std::nearbyint(exact);
  return c_.quantisation.kind == "int8" ? std::clamp(whole, -128.0, 127.0)
                                        : std::clamp(whole, -8.0, 7.0);
}

kernels::ElementType ReferenceStorage::type() const {
  if (c_.quantisation.kind == "int8") return kernels::ElementType::i8;
  if (c_.quantisation.kind == "int4") return kernels::ElementType::u8;
  if (c_.quantisation.kind == "fp8") return kernels::ElementType::f8e4m3;
  return c_.element_type;
}
std::size_t ReferenceStorage::row_bytes_of(std::size_t lanes) const {
  if (c_.quantisation.kind == "int4") return (lanes + 1) / 2;
  return lanes * kernels::element_bytes(type());
}

Row ReferenceStorage::stored(const Lanes& lanes, bool key, std::int64_t head) const {
  Row row{lanes, std::vector<std::byte>(row_bytes_of(lanes.size()))};
  if (c_.quantisation.kind == "int4")
    std::fill(row.bytes.begin(), row.bytes.end(), std::byte{0x88});
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    double value = rounded(c_.element_type, lanes[i]);
    if (mistake_ == "values_clamped" && !key) value = std::clamp(value, -8.0, 8.0);
    if (!c_.quantisation.quantised()) {
      const std::size_t width = kernels::element_bytes(type());
      kernels::encode_element(type(), value, row.bytes.data() + i * width);
      row.lanes[i] = value;
      continue;
    }
    const double scale = scale_of(key, head, static_cast<std::int64_t>(i));
    const double number = code(value, scale);
    row.lanes[i] = number * scale;
    if (c_.quantisation.kind == "int4") {
      auto& byte = row.bytes[i / 2];
      const auto nibble = static_cast<unsigned>(number + 8);
      const auto kept = std::to_integer<unsigned>(byte) & (i % 2 == 0 ? 0xf0u : 0x0fu);
      byte = static_cast<std::byte>(kept | (i % 2 == 0 ? nibble : nibble << 4));
    } else {
      kernels::encode_element(type(), number, row.bytes.data() + i);
    }
  }
  return row;
}

Row ReferenceStorage::loaded(const kernels::Tensor& rows, std::size_t entry, std::int64_t head,
                             std::int64_t at, bool key) const {
  const auto lanes = static_cast<std::size_t>(key ? c_.head_size : c_.value_head_size);
  const std::size_t width = row_bytes_of(lanes);
  const auto place = static_cast<std::size_t>(
      (static_cast<std::int64_t>(entry) * rows.shape[1] + head) * rows.shape[2] + at);
  const std::byte* from = rows.bytes.data() + place * width;
  Row row{Lanes(lanes), {from, from + width}};
  for (std::size_t i = 0; i < lanes; ++i) {
    if (c_.quantisation.kind == "int4") {
      const auto byte = std::to_integer<unsigned>(from[i / 2]);
      row.lanes[i] = static_cast<double>(i % 2 == 0 ? byte & 0xfu : byte >> 4) - 8;
    } else {
      row.lanes[i] = kernels::decode_element(type(), from + i * kernels::element_bytes(type()));
    }
    if (c_.quantisation.quantised()) {
      row.lanes[i] *= scale_of(key, head, static_cast<std::int64_t>(i));
    }
  }
  return row;
}

kernels::Tensor ReferenceStorage::rows(std::int64_t count, std::int64_t lanes) const {
  const std::size_t width = row_bytes_of(static_cast<std::size_t>(lanes));
  return kernels::Tensor::zeros(
      type(), {c_.batch, c_.kv_heads, count,
               static_cast<std::int64_t>(width / kernels::element_bytes(type()))});
}

}  // namespace kvcheck::properties
