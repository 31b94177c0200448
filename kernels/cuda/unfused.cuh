// Attention without fusion: one launch writes every score to memory, a second makes the softmax and
// sums the values. Any shape, element type and mask; made to be read, not to be fast.
//
// A thread's share of a sum is decided by positions alone, so that a windowed cache and a full one
// give the same bits.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/visible.cuh"

namespace kvcheck::kernels::device {
namespace {

constexpr float kLog2E = 1.44269504F;
constexpr unsigned kMostThreads = 1024;

/// Stored in place of the weight of a hidden key: no weight is negative.
constexpr float kHidden = -1;

/// One row of the scores: one query of one query head.
struct ScoreRow {
  std::int64_t entry, query, head, kv_head;
  std::int64_t output_row;  ///< In the query and output tensors.
  float* scores;            ///< By cache row.
};

template <Fault kFault>
KV_DEVICE ScoreRow score_row(const AttentionParameters& p, std::int64_t number) {
  const std::int64_t query = number % p.queries;
  const std::int64_t head = number / p.queries % p.query_heads;
  const std::int64_t entry = number / p.queries / p.query_heads;
  const std::int64_t kv_head = has(kFault, Fault::unfused_wrong_head)
                                   ? head % p.kv_heads
                                   : head / (p.query_heads / p.kv_heads);
  return {entry,
          query,
          head,
          kv_head,
          (entry * p.queries + query) * p.query_heads + head,
          p.scores + number * p.score_columns};
}

KV_DEVICE float stored_number(float x) { return x; }
KV_DEVICE float stored_number(F16 x) { return to_float(x); }
KV_DEVICE float stored_number(BF16 x) { return to_float(x); }
KV_DEVICE float stored_number(std::int8_t x) { return static_cast<float>(x); }

/// Rows of one KV head as numbers. \tparam C what they are stored as
template <class C>
struct StoredRows {
  const C* first;
  std::int64_t lanes;
  const float* scale;  ///< Of an int8 cache, of lane 0.
  bool per_channel;
  KV_DEVICE float number(std::int64_t row, std::int64_t lane) const {
    const float stored = stored_number(first[row * lanes + lane]);
    return sizeof(C) == 1 ? stored * scale[per_channel ? lane : 0] : stored;
  }
};

template <class C>
KV_DEVICE StoredRows<C> stored_rows(const AttentionParameters& p, const ScoreRow& row, bool keys) {
  const EntryView& e = p.entries[row.entry];
  const std::int64_t lanes = keys ? p.head_size : p.value_head_size;
  const float* const scale = keys ? p.key_scale : p.value_scale;
  const std::int64_t stride = keys ? e.key_head_stride : e.value_head_stride;
  const void* const base = keys ? e.key : e.value;
  const unsigned char* const first = static_cast<const unsigned char*>(base) + row.kv_head * stride;
  const bool shifted = scale != nullptr && p.per_channel;
  return {reinterpret_cast<const C*>(first), lanes, shifted ? scale + row.kv_head * lanes : scale,
          p.per_channel};
}

/// The logit of cache row `at` in base 2: scaled, capped, biased.
template <class E, class C>
KV_DEVICE float logit_of(const AttentionParameters& p, const ScoreRow& row,
                         const StoredRows<C>& keys, std::int64_t at) {
  const E* const query = static_cast<const E*>(p.query) + row.output_row * p.head_size;
  float sum = 0;
  for (std::int32_t lane = 0; lane < p.head_size; ++lane) {
    sum = fused(to_float(query[lane]), keys.number(at, lane), sum);
  }
  const float cap = p.softcap;
  const float logit =
      cap == 0 ? sum * (p.scale * kLog2E) : cap * kLog2E * tanh_of(sum * (p.scale / cap));
  const std::int64_t position = p.entries[row.entry].first_position + at;
  // A column that the mask lacks hides its key, whose logit nobody reads then.
  if (p.mask_kind != MaskKind::additive || position >= p.mask_columns) return logit;
  return fused(mask_bias<E>(p, row.entry, row.head, row.query, position), kLog2E, logit);
}

template <class E, class C, Fault kFault>
KV_KERNEL void KV_LAUNCH_BOUNDS(kMostThreads, 1) unfused_scores_kernel(AttentionParameters p) {
  const std::int64_t rows = p.queries * p.query_heads * p.batch;
  for (std::int64_t i = block_index().x; i < rows; i += grid_size().x) {
    const ScoreRow row = score_row<kFault>(p, i);
    const EntryView& e = p.entries[row.entry];
    if (!has(kFault, Fault::unfused_queries_of_the_batch) && row.query >= e.queries) continue;
    const StoredRows<C> keys = stored_rows<C>(p, row, true);
    const RowRange seen = rows_seen<kFault>(p, e, e.origin + row.query);
    for (std::int64_t at = seen.begin + thread_index(); at < seen.end; at += block_threads()) {
      row.scores[at] = logit_of<E>(p, row, keys, at);
    }
  }
}

/// The same number in every thread of the block: `value` of all of them, the warps in their order.
/// Ends with the slots free for the next one.
template <Fault kFault, class Combine>
KV_DEVICE float over_block(float value, float* slots, float none, Combine combine) {
  constexpr unsigned kMask = has(kFault, Fault::unfused_half_a_mask) ? 0xffffu : kAllLanes;
  for (unsigned bits = 16; bits > 0; bits /= 2) {
    value = combine(value, shuffle_xor(kMask, value, bits));
  }
  if (lane_index() == 0) slots[warp_index()] = value;
  if constexpr (!has(kFault, Fault::unfused_barrier_removed)) sync_block();
  const unsigned warps =
      block_threads() / 32 + (has(kFault, Fault::unfused_tail_uninitialised) ? 1 : 0);
  float all = none;
  for (unsigned warp = 0; warp < warps; ++warp) all = combine(all, slots[warp]);
  sync_block();
  return all;
}

/// First row at or behind `begin` whose position is this thread's.
KV_DEVICE std::int64_t first_of_thread(std::int64_t begin, std::int64_t first_position) {
  const std::int64_t threads = block_threads();
  const std::int64_t ahead =
      (thread_index() - (first_position + begin) % threads + threads) % threads;
  return begin + ahead;
}

/// Turns the logits of rows `seen` into weights that every thread may read, hidden ones into
/// kHidden. \return their sum, with the sink's; 0 where the query sees nothing
template <class E, Fault kFault>
KV_DEVICE float weigh(const AttentionParameters& p, const ScoreRow& row, const EntryView& e,
                      const RowRange& seen, float* slots) {
  const float lowest = -infinity();
  const std::int64_t mine = first_of_thread(seen.begin, e.first_position);
  const std::int64_t threads = block_threads();
  const float sink = p.sinks == nullptr ? lowest : p.sinks[row.head] * kLog2E;
  float largest = sink;
  float any = 0;
  for (std::int64_t at = mine; at < seen.end; at += threads) {
    if (mask_hides<E>(p, row.entry, row.head, row.query, e.first_position + at)) continue;
    any = 1;
    largest = larger(largest, row.scores[at]);
    if constexpr (has(kFault, Fault::unfused_barrier_in_a_branch)) sync_block();
  }
  const auto maximum = [](float a, float b) { return larger(a, b); };
  largest = over_block<kFault>(largest, slots, lowest, maximum);
  any = over_block<kFault>(any, slots, 0, maximum);
  if (any == 0) return 0;
  float sum = 0;
  for (std::int64_t at = mine; at < seen.end; at += threads) {
    const bool hidden = mask_hides<E>(p, row.entry, row.head, row.query, e.first_position + at);
    const float weight = hidden ? kHidden : exp2_approx(row.scores[at] - largest);
    if (!hidden) sum += weight;
    row.scores[at] = weight;
  }
  sum = over_block<kFault>(sum, slots, 0, [](float a, float b) { return a + b; });
  return p.sinks == nullptr ? sum : sum + exp2_approx(sink - largest);
}

template <class E, class C, Fault kFault>
KV_DEVICE void sum_values(const AttentionParameters& p, const ScoreRow& row, const RowRange& seen,
                          float total) {
  const StoredRows<C> values = stored_rows<C>(p, row, false);
  E* const output = static_cast<E*>(p.output) + row.output_row * p.value_head_size;
  for (std::int64_t lane = thread_index(); lane < p.value_head_size; lane += block_threads()) {
    float sum = 0;
    for (std::int64_t at = seen.begin; at < seen.end; ++at) {
      float weight = row.scores[at];
      if (weight < 0) {
        if (!has(kFault, Fault::unfused_hidden_times_zero)) continue;
        weight = 0;
      }
      sum = fused(weight, values.number(at, lane), sum);
    }
    if constexpr (has(kFault, Fault::unfused_written_twice)) output[lane] = from_float<E>(sum);
    output[lane] = from_float<E>(sum / total);
  }
}

template <class E, class C, Fault kFault>
KV_KERNEL void KV_LAUNCH_BOUNDS(kMostThreads, 1) unfused_values_kernel(AttentionParameters p) {
  KV_SHARED_BYTES(shared);
  const std::int64_t rows = p.queries * p.query_heads * p.batch;
  for (std::int64_t i = block_index().x; i < rows; i += grid_size().x) {
    const ScoreRow row = score_row<kFault>(p, i);
    const EntryView& e = p.entries[row.entry];
    if (!has(kFault, Fault::unfused_queries_of_the_batch) && row.query >= e.queries) continue;
    const RowRange seen = rows_seen<kFault>(p, e, e.origin + row.query);
    const float total = weigh<E, kFault>(p, row, e, seen, reinterpret_cast<float*>(shared));
    if (total != 0) {
      sum_values<E, C, kFault>(p, row, seen, total);
    } else if (!has(kFault, Fault::unfused_empty_row_left)) {
      E* const output = static_cast<E*>(p.output) + row.output_row * p.value_head_size;
      for (std::int64_t lane = thread_index(); lane < p.value_head_size; lane += block_threads()) {
        output[lane] = from_float<E>(0);
      }
    }
  }
}

template <class E, class C, Fault kFault>
void launch_unfused_of(Queue& queue, std::uint32_t threads, const AttentionParameters& p) {
  constexpr std::int64_t kMostBlocks = 1 << 20;
  const std::int64_t rows = p.queries * p.query_heads * p.batch;
  if (rows == 0) return;
  LaunchShape shape;
  shape.grid.x = static_cast<std::uint32_t>(rows < kMostBlocks ? rows : kMostBlocks);
  shape.threads = threads;
  launch(queue, unfused_scores_kernel<E, C, kFault>, shape, p);
  shape.shared_bytes = kMostThreads / 32 * sizeof(float);
  launch(queue, unfused_values_kernel<E, C, kFault>, shape, p);
}

template <Fault kFault = Fault::none>
void launch_unfused(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  const std::uint32_t threads = how.threads;
  switch (how.element) {
    case Element::f32:
      return how.int8_cache ? launch_unfused_of<float, std::int8_t, kFault>(queue, threads, p)
                            : launch_unfused_of<float, float, kFault>(queue, threads, p);
    case Element::f16:
      return how.int8_cache ? launch_unfused_of<F16, std::int8_t, kFault>(queue, threads, p)
                            : launch_unfused_of<F16, F16, kFault>(queue, threads, p);
    case Element::bf16:
      return how.int8_cache ? launch_unfused_of<BF16, std::int8_t, kFault>(queue, threads, p)
                            : launch_unfused_of<BF16, BF16, kFault>(queue, threads, p);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
