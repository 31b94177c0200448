// New rows for an append, and what the cache holds then, by plain loops.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/kernels/cuda/world.h"

namespace kvcheck::kernels::device {

struct AppendCase {
  Element element = Element::f32;
  bool int8 = false, per_channel = false;
  std::int32_t kv_heads = 2, head_size = 8, value_head_size = 8;
  std::vector<std::int64_t> tokens{3};     ///< Of each entry.
  std::vector<std::int64_t> first_row{0};  ///< Of each entry.
  std::int64_t rows = 8;                   ///< That the cache has for each head.
  std::size_t shift = 0;                   ///< Bytes between an address of 256 and the cache.
};

/// The cache, keys and then values, after the append.
Outcome run_append(const AppendCase& one, const KernelTable& kernels, simt::Order order);
std::vector<std::byte> expected_append(const AppendCase& one);

/// Cases of all element types, aligned and not, ragged, quantised and not.
std::vector<AppendCase> append_cases();

}  // namespace kvcheck::kernels::device
