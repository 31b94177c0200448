// One call of attention, and what it answers, by plain loops in double.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/kernels/cuda/world.h"

namespace kvcheck::kernels::device {

/// Rows of one entry.
struct EntryCase {
  std::int64_t first_position = 0, live = 0, origin = 0, queries = 1;
};

struct AttentionCase {
  AttentionLaunch launch;
  std::int32_t query_heads = 2, kv_heads = 1, head_size = 8, value_head_size = 8;
  std::vector<EntryCase> entries;
  std::int64_t rows = 16;  ///< That the cache has for each head; dead ones hold NaN.
  bool causal = true, per_channel = false, sinks = false;
  std::int64_t window = -1, right = -1;
  MaskKind mask = MaskKind::none;
  std::int64_t mask_columns = 0;
  float softcap = 0;
  /// Rows that no query of the entry sees by position hold NaN, too.
  bool poison_out_of_band = true;
};

struct AttentionOutcome {
  std::vector<float> output;  ///< [batch, queries, query_heads, value_head_size]
  std::vector<std::byte> bits;
  std::vector<simt::Defect> defects;
};

std::int64_t most_queries(const AttentionCase& one);

/// The call by `launch_of`, one of the launches of a table. Output that a query of an entry has to
/// be written and is not is among the defects.
using AttentionLaunchFunction = void (*)(Queue&, const AttentionLaunch&,
                                         const AttentionParameters&);
AttentionOutcome run_attention(const AttentionCase& one, AttentionLaunchFunction launch_of,
                               simt::Order order);

/// What each output is, and NaN where the call must leave the output alone. Of the numbers as the
/// element type holds them.
std::vector<double> expected_attention(const AttentionCase& one);

/// The largest |found - expected| / (tolerance of the element type); infinity where an output that
/// must be left alone was written, or a number is missing.
double worst_error(const AttentionCase& one, const AttentionOutcome& found);

}  // namespace kvcheck::kernels::device
