// How partial results of one row become its output, and the kernel that merges those of splits.
//
// A partial result is (maximum, sum, output): the largest base-2 logit, the sum of exp2(logit -
// maximum), and the sum of exp2(logit - maximum) * value. One that saw no key has the maximum minus
// infinity; its sum and output are not read. Arithmetic: factors exp2(maximum - largest), all terms
// added in ascending order of the splits, one division, one rounding to the element type; int8
// values are multiplied by their scale before that. The sink is one more term of the sum, once.
#pragma once

#include <cstdint>

#include "kernels/cuda/band.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/parameters.h"
#include "kernels/cuda/planted.h"

namespace kvcheck::kernels::device::decoding {
namespace {

/// exp2(maximum - largest); 0 for a part that saw nothing.
KV_DEVICE float part_factor(float maximum, float largest) {
  return maximum == kMinusInfinity ? 0.f : exp2_approx(maximum - largest);
}

/// What one row's sums are finished with.
struct RowFinish {
  float factor;   ///< Of the sum of values; 0 where the row saw nothing.
  float divisor;  ///< The row sum, sink included; never 0.
};

KV_DEVICE RowFinish row_finish(const AttentionParameters& p, std::int64_t query_head, float maximum,
                               float sum) {
  if (maximum == kMinusInfinity) return {0.f, 1.f};
  if (p.sinks == nullptr) return {1.f, sum};
  const float sink = p.sinks[query_head] * kLog2E;
  const float largest = larger(maximum, sink);
  const float factor = exp2_approx(maximum - largest);
  return {factor, fused(sum, factor, exp2_approx(sink - largest))};
}

/// The scale of lane `lane` of the values of a KV head; 1 without int8.
KV_DEVICE float value_scale_of(const AttentionParameters& p, std::int64_t head, std::int64_t lane) {
  if (p.value_scale == nullptr) return 1.f;
  return p.value_scale[p.per_channel ? head * p.value_head_size + lane : 0];
}

template <class E>
KV_DEVICE E finished(float sum, const RowFinish& finish, float scale) {
  // A row that saw nothing is 0 whatever the sum is.
  if (finish.factor == 0.f && finish.divisor == 1.f) return from_float<E>(0.f);
  return from_float<E>(sum * finish.factor / finish.divisor * scale);
}

/// Grid: queries x query heads, 1, batch. A block writes one row of the output.
template <class E, Fault kFault>
KV_KERNEL void merge_kernel(const AttentionParameters p) {
  const std::int64_t entry = block_index().z;
  const std::int64_t query = block_index().x / static_cast<unsigned>(p.query_heads);
  const std::int64_t head = block_index().x % static_cast<unsigned>(p.query_heads);
  if (query >= p.entries[entry].queries) return;
  const std::int64_t row = (entry * p.queries + query) * p.query_heads + head;
  const float* maxima = p.partial_maxima + row * p.splits;
  const float* sums = p.partial_sums + row * p.splits;
  const float* outputs = p.partial_outputs + row * p.splits * p.value_head_size;

  float maximum = kMinusInfinity;
  for (std::int64_t k = 0; k < p.splits; ++k) maximum = larger(maximum, maxima[k]);
  const std::int64_t group = p.query_heads / p.kv_heads;
  E* output = static_cast<E*>(p.output) + row * p.value_head_size;
  for (std::int64_t lane = thread_index(); lane < p.value_head_size; lane += block_threads()) {
    float sum = 0.f, value = 0.f;
    for (std::int64_t k = 0; k < p.splits; ++k) {
      if (maxima[k] == kMinusInfinity) continue;
      const bool rescales = !has(kFault, Fault::merge_no_rescale);
      const float factor = rescales ? part_factor(maxima[k], maximum) : 1.f;
      sum = fused(sums[k], factor, sum);
      value = fused(outputs[k * p.value_head_size + lane], factor, value);
    }
    const RowFinish finish = row_finish(p, head, maximum, sum);
    output[lane] = finished<E>(value, finish, value_scale_of(p, head / group, lane));
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device::decoding
