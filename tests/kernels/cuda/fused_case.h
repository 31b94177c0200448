// Problems for fused attention kernels on the SIMT runtime, and attention in double of the same
// numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/kernel_table.h"
#include "kernels/simt/launch.h"

namespace kvcheck::kernels::device {

/// Keys of one entry: rows [0, live) of `capacity`, the first at first_position.
struct FusedEntry {
  std::int64_t first_position = 0, live = 0, origin = 0, queries = 0;
  std::int64_t capacity = 0;
};

/// Numbers depend on seed, entry content, head, position and lane, not on where rows lie.
struct FusedCase {
  void (*KernelTable::*kernel)(Queue&, const AttentionLaunch&,
                               const AttentionParameters&) = &KernelTable::prefill;
  Element element = Element::f16;
  std::int32_t query_heads = 1, kv_heads = 1, head_size = 64, value_head_size = 64;
  std::int64_t window = -1, right = -1;
  bool causal = true;
  float scale = 0.25F, softcap = 0;
  MaskKind mask = MaskKind::none;
  bool mask_of_entries = true, mask_of_heads = true;  ///< Else one for all.
  std::int64_t mask_columns = 0;                      ///< 0 = as many as there are positions.
  bool sinks = false;
  float largest_query = 1;  ///< Queries are up to so large.
  std::uint32_t threads = 128;
  std::int64_t split_positions = 0;  ///< Decode kernels; 0 = one split.
  bool int8_cache = false, per_channel = false;
  std::uint64_t seed = 1;
  std::vector<FusedEntry> entries;
  /// NaN in keys and values that no query of the entry sees in any head, besides dead rows.
  bool poisons_hidden = true;
  std::int64_t infinite_position = -1;  ///< Where values are infinite; -1 = nowhere.

  std::int64_t queries() const;
  std::int64_t output_row(std::size_t entry, std::int64_t query, std::int64_t head) const;
};

struct FusedRun {
  std::vector<std::uint16_t> bits;  ///< [entries, queries, query_heads, value_head_size]
  std::vector<float> output;
  std::vector<simt::Defect> defects;
  simt::Counters counters;
  std::string first_defect() const { return defects.empty() ? "" : defects[0].sentence(); }
};

FusedRun run_fused(const FusedCase& problem, const simt::Schedule& schedule = {},
                   const KernelTable& table = simt_kernels());

/// The same in double, with what a kernel may be off: both as FusedRun::output.
struct FusedTruth {
  std::vector<double> output, tolerance;
};
FusedTruth fused_truth(const FusedCase& problem);

/// What the bits of rows without a query are after a run.
inline constexpr std::uint16_t kUntouched = 0x7dad;

/// Compares every row, rows without a query included. \return the first difference, or nothing
std::string difference(const FusedCase& problem, const FusedRun& run);

}  // namespace kvcheck::kernels::device
