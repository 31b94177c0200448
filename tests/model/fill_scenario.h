// A scenario for tests of the fills: two entries, two KV heads of two query heads, 16 lanes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::model {

inline Scenario windowed(FillKind fill, std::vector<Step> steps) {
  Scenario scenario;
  scenario.batch = 2;
  scenario.query_heads = 4;
  scenario.kv_heads = 2;
  scenario.head_size = scenario.value_head_size = 16;
  scenario.cache = {LayoutKind::full, 0, 5};
  scenario.fill.kind = fill;
  if (fill == FillKind::position_digits) scenario.fill.index = 3;
  scenario.fill.seed = 11;
  scenario.steps = std::move(steps);
  return scenario;
}

inline Append append(std::int64_t tokens, std::int64_t generation = 0) {
  return {{tokens, tokens}, {tokens, tokens}, generation};
}

}  // namespace kvcheck::model
