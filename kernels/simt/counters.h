// Deterministic counts of one launch: what a profiler would measure, without a clock.
#pragma once

#include <cstdint>

namespace kvcheck::kernels::simt {

struct Counters {
  std::int64_t shared_accesses = 0;      ///< Warp accesses of shared memory.
  std::int64_t bank_conflicts = 0;       ///< Wavefronts beyond the least that each of them needs.
  std::int64_t global_loads = 0;         ///< Warp accesses.
  std::int64_t global_load_bytes = 0;    ///< Distinct bytes that lanes asked for.
  std::int64_t global_load_sectors = 0;  ///< 32-byte sectors that these lie in, per access.
  std::int64_t global_stores = 0;
  std::int64_t global_store_bytes = 0;
  std::int64_t global_store_sectors = 0;
  std::int64_t block_barriers = 0;
  std::int64_t matrix_products = 0;  ///< mma of a warp.
  void add(const Counters& other);
};

}  // namespace kvcheck::kernels::simt
