// What one row of the cache is made of: its element type, its elements and its bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/target.h"

namespace kvcheck::kernels {

// Fields of a session are compared with words as views, here and in what each step runs: lengths
// decide first then, while a string and a literal are compared byte by byte.

/// The element type that a cache of this session stores.
inline ElementType cache_type(const SessionConfig& config) {
  const std::string& kind = config.quantisation.kind;
  if (kind == std::string_view("none")) return config.element_type;
  if (kind == std::string_view("int8")) return ElementType::i8;
  return kind == std::string_view("int4") ? ElementType::u8 : ElementType::f8e4m3;
}

/// Elements of a stored row of `lanes` lanes: two codes of int4 share a byte.
inline std::int64_t cache_width(const SessionConfig& config, std::int64_t lanes) {
  return config.quantisation.kind == std::string_view("int4") ? lanes / 2 + lanes % 2 : lanes;
}

/// Bytes of a stored row of `lanes` lanes.
inline std::int64_t cache_row_bytes(const SessionConfig& config, std::int64_t lanes) {
  return cache_width(config, lanes) * static_cast<std::int64_t>(element_bytes(cache_type(config)));
}

}  // namespace kvcheck::kernels
