// Checks that several refusals share.
#include "kernels/cpu/refusal.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "kernels/cpu/cache_format.h"

namespace kvcheck::kernels {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 31;

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

std::optional<std::int64_t> bytes_of(ElementType type, std::span<const std::int64_t> shape) {
  auto bytes = static_cast<std::int64_t>(element_bytes(type));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMaxBytes) return std::nullopt;
  }
  return bytes;
}

bool rows_fit(const SessionConfig& config, std::int64_t entries, std::int64_t rows) {
  const std::int64_t lanes = std::max(config.head_size, config.value_head_size);
  return bytes_of(cache_type(config), {entries, config.kv_heads, rows, cache_width(config, lanes)})
      .has_value();
}

Reason check_tensor(std::string_view field, const Tensor& tensor, ElementType type,
                    std::span<const std::int64_t> shape) {
  const std::optional<std::int64_t> bytes = bytes_of(type, shape);
  if (!bytes) {
    return refuse(field, shape_text(shape), "must not exceed 2 GiB; send fewer tokens");
  }
  if (*bytes == 0 && tensor.bytes.empty()) return std::nullopt;
  if (tensor.type != type) {
    return refuse(field, to_string(tensor.type),
                  fmt::format("its element type must be {}", to_string(type)));
  }
  if (!std::ranges::equal(tensor.shape, shape)) {
    return refuse(field, shape_text(tensor.shape),
                  fmt::format("its shape must be {}", shape_text(shape)));
  }
  if (static_cast<std::int64_t>(tensor.bytes.size()) != *bytes) {
    return refuse(field, fmt::format("{} bytes", tensor.bytes.size()),
                  fmt::format("its shape needs {} bytes", *bytes));
  }
  return std::nullopt;
}

}  // namespace kvcheck::kernels
