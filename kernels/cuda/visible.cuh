// What a query sees: the range of cache rows that causality and windows leave, and the mask.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/parameters.h"
#include "kernels/cuda/planted.h"

namespace kvcheck::kernels::device {
namespace {

KV_DEVICE float infinity() { return __builtin_huge_valf(); }

/// Rows [begin, end) of the cache; empty where end <= begin.
struct RowRange {
  std::int64_t begin, end;
};

/// Rows that a query at `position` may see before the mask; never outside [0, live).
template <Fault kFault = Fault::none>
KV_DEVICE RowRange rows_seen(const AttentionParameters& p, const EntryView& e,
                             std::int64_t position) {
  constexpr std::int64_t kMore = has(kFault, Fault::unfused_window_one_wide) ? 1 : 0;
  // Compared before they are added: windows and right windows may be the largest number there is.
  const std::int64_t last = e.first_position + e.live - 1;
  RowRange range{0, e.live};
  if (p.causal && position < last) range.end = position + 1 - e.first_position;
  if (p.right >= 0 && position < last && p.right < last - position) {
    const std::int64_t end = position + p.right + 1 - e.first_position;
    range.end = end < range.end ? end : range.end;
  }
  if (p.window >= 0 && p.window <= position - e.first_position) {
    range.begin = position - p.window + 1 - kMore - e.first_position;
  }
  return range;
}

/// Where the mask of a query has the column of a position.
KV_DEVICE std::int64_t mask_index(const AttentionParameters& p, std::int64_t entry,
                                  std::int64_t head, std::int64_t query, std::int64_t position) {
  return entry * p.mask_entry_stride + head * p.mask_head_stride + query * p.mask_query_stride +
         position;
}

/// \pre the mask is additive, and position < mask_columns
template <class E>
KV_DEVICE float mask_bias(const AttentionParameters& p, std::int64_t entry, std::int64_t head,
                          std::int64_t query, std::int64_t position) {
  return to_float(static_cast<const E*>(p.mask)[mask_index(p, entry, head, query, position)]);
}

/// Whether the mask says no: a column that it lacks, a 0 of a boolean one, -infinity.
template <class E>
KV_DEVICE bool mask_hides(const AttentionParameters& p, std::int64_t entry, std::int64_t head,
                          std::int64_t query, std::int64_t position) {
  if (p.mask_kind == MaskKind::none) return false;
  if (position >= p.mask_columns) return true;
  if (p.mask_kind == MaskKind::additive) {
    return mask_bias<E>(p, entry, head, query, position) == -infinity();
  }
  const unsigned char* const bytes = static_cast<const unsigned char*>(p.mask);
  return bytes[mask_index(p, entry, head, query, position)] == 0;
}

}  // namespace
}  // namespace kvcheck::kernels::device
