// Small scenarios for facts about the oracle, and where one output of its answer lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/oracle.h"

namespace kvcheck::model {

/// gqa of four query heads and two KV heads of eight lanes.
inline Scenario gqa_of(std::vector<Step> steps, FillKind fill = FillKind::random) {
  Scenario s;
  s.query_heads = 4;
  s.kv_heads = 2;
  s.head_size = s.value_head_size = 8;
  s.fill = {fill, 9, 0};
  s.steps = std::move(steps);
  return s;
}

inline std::size_t output_index(const Scenario& s, const Expected& e, std::int64_t entry,
                                std::int64_t query, std::int64_t head, std::int64_t lane) {
  return static_cast<std::size_t>(
      ((entry * e.queries + query) * s.query_heads + head) * s.value_head_size + lane);
}

}  // namespace kvcheck::model
