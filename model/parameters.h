// Inputs of the operators that belong to no token: sinks, norm weights, scales of a quantised
// cache.
//
// Like the fill a pure function of the scenario; all values are representable in their type.
#pragma once

#include <cstdint>

#include "model/scenario.h"

namespace kvcheck::model {

/// Which of the two cached tensors.
enum class CacheSide { key, value };

/// head_sink[head], in the element type: fill.sink_logit plus between -2 and 2, under needles plus
/// between 4 and 6, so that it weighs against their hits. \pre scenario.head_sink
double sink_logit(const Scenario& scenario, std::int64_t query_head);

/// q_norm_weight[lane] (side key: k_norm_weight), between 0.75 and 1.25.
enum class NormSide { query, key };
double norm_weight(const Scenario& scenario, NormSide side, std::int64_t lane);

/// k_scale or v_scale of a KV head and lane, in f32; the same everywhere per tensor. A power of two
/// under the fills of exact codes, which then are stored exactly; otherwise such that the largest
/// values clamp under most seeds (fp8: under few).
/// \pre the cache is quantised
float cache_scale(const Scenario& scenario, CacheSide side, std::int64_t kv_head,
                  std::int64_t lane);

}  // namespace kvcheck::model
