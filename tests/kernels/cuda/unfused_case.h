// One call of attention of any element type, and what it answers, by plain loops in double.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/cuda/world.h"

namespace kvcheck::kernels::device {

/// One entry. Rows [0, live) of `rows` hold tokens.
struct EntryCase {
  std::int64_t first_position = 0, live = 0, origin = 0, queries = 1, rows = 0;
};

/// Numbers depend on entry, head, position and lane, not on where rows lie. Rows that no query sees
/// hold NaN (int8: the largest code).
struct AttentionCase {
  AttentionLaunch launch;
  std::int32_t query_heads = 2, kv_heads = 1, head_size = 8, value_head_size = 8;
  std::vector<EntryCase> entries;
  bool causal = true, per_channel = false, sinks = false;
  std::int64_t window = -1, right = -1;
  MaskKind mask = MaskKind::none;
  bool mask_of_heads = false;     ///< Else one for all heads.
  std::int64_t mask_columns = 0;  ///< 0 = as many as there are positions.
  float softcap = 0;

  std::int64_t queries() const;
};

struct AttentionOutcome {
  std::vector<std::byte> bits;  ///< [batch, queries, query_heads, value_head_size]
  std::vector<float> output;
  std::vector<simt::Defect> defects;
};

AttentionOutcome run_unfused(const AttentionCase& one, const KernelTable& kernels,
                             simt::Order order);

/// Compares every output, those of queries that an entry does not have included. \return the first
/// difference, or nothing
std::string difference(const AttentionCase& one, const AttentionOutcome& found);

/// Every element type, with masks, windows, softcap and sinks, ragged, some queries without a key.
std::vector<AttentionCase> attention_cases();

}  // namespace kvcheck::kernels::device
