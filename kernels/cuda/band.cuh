// Which keys the rows of a launch see, and what becomes of their products: common to the kernels
// that visit only the positions of a band.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/parameters.h"
#include "kernels/cuda/planted.h"

namespace kvcheck::kernels::device::decoding {
namespace {

/// No position is as far as this from another; wider windows are none.
constexpr std::int64_t kFarthest = std::int64_t{1} << 61;
constexpr float kMinusInfinity = -__builtin_inff();
constexpr float kLog2E = 1.44269504088896340736f;

/// Positions [begin, end).
struct Band {
  std::int64_t begin, end;
};

/// What query `query` of the entry sees before the mask; begin >= end: nothing.
template <Fault kFault>
KV_DEVICE Band band_of(const AttentionParameters& p, const EntryView& entry, std::int64_t query) {
  const std::int64_t position = entry.origin + query;
  Band band{entry.first_position, entry.first_position + entry.live};
  if (p.causal && position + 1 < band.end) band.end = position + 1;
  if (p.right >= 0 && p.right < kFarthest && position + p.right + 1 < band.end) {
    band.end = position + p.right + 1;
  }
  const std::int64_t own = has(kFault, Fault::decode_window_edge) ? 0 : 1;
  if (p.window >= 0 && p.window < kFarthest && position - p.window + own > band.begin) {
    band.begin = position - p.window + own;
  }
  return band;
}

/// One row of a tile: a query head of one query.
struct RowView {
  Band band;
  std::int64_t mask;    ///< Element of the mask at position 0.
  std::int64_t output;  ///< Number of the row in [batch, queries, query_heads].
  std::int64_t unused;  ///< So that eight rows lie in different banks.
};

/// Row `row` of KV head `head`: rows of one query lie next to each other.
template <Fault kFault>
KV_DEVICE RowView row_view(const AttentionParameters& p, const EntryView& entry, std::int64_t batch,
                           std::int64_t head, std::int64_t row, std::int64_t first_row) {
  const std::int64_t group = p.query_heads / p.kv_heads;
  const std::int64_t query = row / group;
  const std::int64_t query_head = head * group + row % group;
  RowView view{};
  const bool first = has(kFault, Fault::decode_first_window);
  view.band = band_of<kFault>(p, entry, first ? first_row / group : query);
  view.mask =
      batch * p.mask_entry_stride + query_head * p.mask_head_stride + query * p.mask_query_stride;
  view.output = (batch * p.queries + query) * p.query_heads + query_head;
  return view;
}

/// From a product q.k to a logit of base 2.
struct LogitScale {
  float scale;      ///< Without a cap: scale * log2(e); with one: scale / cap.
  float cap = 0.f;  ///< cap * log2(e).
};

KV_DEVICE LogitScale logit_scale(const AttentionParameters& p, float key_scale) {
  const float scale = p.scale * key_scale;
  if (p.softcap == 0.f) return {scale * kLog2E};
  return {scale / p.softcap, p.softcap * kLog2E};
}

KV_DEVICE float base_two_logit(const LogitScale& by, float product) {
  const float scaled = product * by.scale;
  return by.cap == 0.f ? scaled : tanh_of(scaled) * by.cap;
}

/// The logit of a key that the band lets through, after the mask; minus infinity: hidden.
template <class E>
KV_DEVICE float masked_logit(const AttentionParameters& p, std::int64_t mask, std::int64_t position,
                             float logit) {
  if (p.mask_kind == MaskKind::none) return logit;
  if (position >= p.mask_columns) return kMinusInfinity;
  if (p.mask_kind == MaskKind::boolean) {
    const bool seen = static_cast<const unsigned char*>(p.mask)[mask + position] != 0;
    return seen ? logit : kMinusInfinity;
  }
  const float bias = to_float(static_cast<const E*>(p.mask)[mask + position]);
  return bias == kMinusInfinity ? kMinusInfinity : fused(bias, kLog2E, logit);
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
