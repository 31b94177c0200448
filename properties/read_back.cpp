// Launches with zero logits.
#include "properties/read_back.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "model/fill.h"
#include "model/literal.h"
#include "properties/case.h"
#include "properties/convert.h"
#include "properties/query_walk.h"
#include "properties/uniform_rows.h"

namespace kvcheck::properties {
namespace {

using model::FillKind;
using model::Scenario;

std::vector<MeasuredQuery> expected_queries(const Scenario& scenario,
                                            const model::Timeline& timeline) {
  std::vector<MeasuredQuery> queries;
  for_each_query(scenario, timeline, [&](const MeasuredQuery& query) {
    queries.push_back(query);
    return true;
  });
  return queries;
}

/// Adds to `query` the positions of one block that its output gives weight.
void read_block(const Scenario& launch, const kernels::Tensor& output, std::int64_t length,
                MeasuredQuery& query) {
  const std::int64_t lanes = launch.value_head_size;
  const std::int64_t kv_head = query.head / (launch.query_heads / launch.kv_heads);
  const std::int64_t begin = launch.fill.index * lanes;
  // A visible key has at least the weight 1/(length + sink); anything near 0 is none.
  const double threshold = 0.25 / (static_cast<double>(length) + sink_mass(launch, query.head));
  for (std::int64_t j = begin; j < std::min(begin + lanes, length); ++j) {
    const std::int64_t lane = model::position_lane(launch, query.entry, kv_head, {j});
    const double weight = output_at(output, query.entry, query.query, query.head, lane);
    if (!std::isfinite(weight)) {
      query.measured = false;
      return;
    }
    if (std::abs(weight) > threshold) {
      query.observed.push_back({j});
      query.weights.push_back(weight);
    }
  }
}

}  // namespace

Scenario with_position_fill(const Scenario& scenario, FillKind kind, std::int64_t index) {
  Scenario launch = scenario;
  launch.fill.kind = kind;
  launch.fill.index = index;
  launch.fill.sink_logit = 0;  // A sink that outweighs the keys would leave nothing to see.
  model::fit_literals(launch);
  return launch;
}

namespace {

/// Launches `blocks` in turn and adds what each query shows to it.
void read_blocks(kernels::Target& target, const Scenario& scenario, const model::Timeline& timeline,
                 const std::vector<std::int64_t>& blocks, ReadBack& result) {
  const std::int64_t length = longest(timeline);
  for (auto& query : result.queries) query.measured = true;
  for (const std::int64_t block : blocks) {
    const Scenario launch = with_position_fill(scenario, FillKind::position_block, block);
    const model::Fill fill(launch, timeline);
    const Execution execution = execute(target, launch, timeline, fill, {.want_rows = false});
    if (!execution.complete && result.problem.empty())
      result.problem = broke_off(launch, execution);
    for (auto& query : result.queries) {
      if (!answered_with_output(execution, query.step)) {
        query.measured = false;
      } else if (query.measured) {
        read_block(launch, *execution.steps[query.step].result.output, length, query);
      }
    }
  }
}

std::int64_t blocks_of(const Scenario& scenario, const model::Timeline& timeline) {
  return (longest(timeline) + scenario.value_head_size - 1) / scenario.value_head_size;
}

}  // namespace

std::int64_t launches_to_measure(const Scenario& scenario) {
  return blocks_of(scenario, model::Timeline(scenario));
}

MeasuredQuery measure_edges(kernels::Target& target, const Scenario& scenario,
                            const DigitMismatch& place) {
  const model::Timeline timeline(scenario);
  ReadBack result;
  for_each_query(scenario, timeline, [&](const MeasuredQuery& query) {
    const bool here = query.step == place.step && query.entry == place.entry &&
                      query.head == place.head && query.query == place.query;
    if (here) result.queries = {query};
    return !here;
  });
  MeasuredQuery& query = result.queries.at(0);
  const std::int64_t count = blocks_of(scenario, timeline), lanes = scenario.value_head_size;
  std::set<std::int64_t> blocks{0, count - 1};
  const auto add_around = [&](std::int64_t position) {
    for (const std::int64_t at : {position - 1, position, position + 1}) {
      if (at >= 0 && at / lanes < count) blocks.insert(at / lanes);
    }
  };
  add_around(query.position.value);
  if (!query.expected.empty()) {
    add_around(query.expected.front().value);
    add_around(query.expected.back().value);
  }
  std::erase_if(query.expected,
                [&](model::Position at) { return blocks.count(at.value / lanes) == 0; });
  read_blocks(target, scenario, timeline, {blocks.begin(), blocks.end()}, result);
  return query;
}

ReadBack measure_visibility(kernels::Target& target, const Scenario& scenario) {
  const model::Timeline timeline(scenario);
  ReadBack result;
  result.queries = expected_queries(scenario, timeline);
  if (scenario.fill.kind == FillKind::literal && scenario.mask.kind != model::MaskKind::none) {
    result.problem =
        fixed_tensors_reason(scenario) + ", so its mask cannot be asked with other data";
    return result;
  }
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(blocks_of(scenario, timeline)));
  std::iota(blocks.begin(), blocks.end(), 0);
  read_blocks(target, scenario, timeline, blocks, result);
  return result;
}

}  // namespace kvcheck::properties
