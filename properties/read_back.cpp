// Launches with zero logits.
#include "properties/read_back.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "model/fill.h"
#include "model/literal.h"
#include "model/oracle.h"
#include "model/parameters.h"
#include "model/visibility.h"
#include "properties/case.h"
#include "properties/convert.h"
#include "properties/execution.h"

namespace kvcheck::properties {
namespace {

using model::FillKind;
using model::Scenario;

std::int64_t longest(const model::Timeline& timeline) {
  std::int64_t length = 1;
  for (const auto& step : timeline.steps()) {
    for (const auto& entry : step.entries) length = std::max(length, entry.length);
  }
  return length;
}

/// Digits in base `base` that tell `count` positions apart.
std::int64_t digits_needed(std::int64_t count, std::int64_t base) {
  std::int64_t digits = 1;
  for (std::int64_t reach = base; reach < count; reach *= base) ++digits;
  return digits;
}

bool answered_with_output(const Execution& execution, std::size_t step) {
  const StepAnswer& answer = execution.steps[step];
  return answer.status == StepAnswer::Status::ok && answer.result.output.has_value();
}

/// Calls `each` with every query of the defined steps and the contract's set. The query is one
/// object that goes from place to place.
template <class Each>
void for_each_query(const Scenario& scenario, const model::Timeline& timeline, Each&& each) {
  const bool alike = model::heads_see_alike(scenario);
  MeasuredQuery query;
  for (std::size_t i = 0; i < scenario.steps.size() && timeline.steps()[i].defined; ++i) {
    if (!std::holds_alternative<model::Append>(scenario.steps[i])) continue;
    for (std::int64_t b = 0; b < scenario.batch; ++b) {
      const auto& state = timeline.steps()[i].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; q < state.queries; ++q) {
        for (std::int64_t h = 0; h < scenario.query_heads; ++h) {
          query.step = i;
          query.entry = b;
          query.head = h;
          query.query = q;
          query.position = {state.origin.value + q};
          if (h == 0 || !alike) {
            model::visible_positions(scenario, timeline, i, b, h, q, query.expected);
          }
          if (!each(query)) return;
        }
      }
    }
  }
}

std::vector<MeasuredQuery> expected_queries(const Scenario& scenario,
                                            const model::Timeline& timeline) {
  std::vector<MeasuredQuery> queries;
  for_each_query(scenario, timeline, [&](const MeasuredQuery& query) {
    queries.push_back(query);
    return true;
  });
  return queries;
}

/// What the sink of a head weighs where a key with logit 0 weighs 1.
double sink_mass(const Scenario& launch, std::int64_t head) {
  if (launch.head_sink) return std::exp(model::sink_logit(launch, head));
  return launch.smooth_softmax ? 1 : 0;
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

/// One key more changes a lane that shows c of n keys from c/n to c/(n+1) or (c+1)/(n+1); blind
/// when even the larger of the two stays within the bound of every lane. `n` counts what the
/// sink weighs as well.
bool could_hide_a_key(const model::Expected& expected, std::size_t first, std::int64_t lanes,
                      double n) {
  for (std::int64_t l = 0; l < lanes; ++l) {
    const auto at = first + static_cast<std::size_t>(l);
    const double shift = (1 - expected.output[at]) / (n + 1);
    if (shift > 2 * expected.bound[at].total()) return false;
  }
  return true;
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

namespace {

/// Judges one query of a digit launch; false where it contradicts the contract.
bool check_query(Case& launch, const Execution& execution, const MeasuredQuery& query, bool first,
                 DigitCheck& check) {
  if (!answered_with_output(execution, query.step)) return true;
  const Scenario& scenario = launch.scenario();
  const std::int64_t lanes = scenario.value_head_size;
  const auto& output = *execution.steps[query.step].result.output;
  if (first) ++check.queries;
  for (std::int64_t l = 0; l < lanes; ++l) {
    const double observed = output_at(output, query.entry, query.query, query.head, l);
    const double ratio =
        launch.oracle().bound_ratio(query.step, query.entry, query.query, query.head, l, observed);
    if (!(ratio <= 1)) {
      check.mismatch = {query.step, query.entry, query.head, query.query};
      return false;
    }
  }
  if (query.expected.empty()) return true;
  const auto& expected = launch.oracle().expected(query.step);
  const std::size_t at =
      model::element_index(scenario, expected, query.entry, query.query, query.head, 0);
  const double mass = static_cast<double>(query.expected.size()) + sink_mass(scenario, query.head);
  check.blind |= could_hide_a_key(expected, at, lanes, mass);
  return true;
}

}  // namespace

DigitCheck check_digits(kernels::Target& target, const Scenario& scenario) {
  DigitCheck check;
  std::int64_t digits = 1;
  for (std::int64_t digit = 0; digit < digits; ++digit) {
    Case launch(target, with_position_fill(scenario, FillKind::position_code, digit));
    digits = digits_needed(longest(launch.timeline()), scenario.value_head_size);
    const Execution execution =
        execute(target, launch.scenario(), launch.timeline(), launch.fill(), {.want_rows = false});
    if (!execution.complete) {
      check.problem = broke_off(launch.scenario(), execution);
      return check;
    }
    for_each_query(launch.scenario(), launch.timeline(), [&](const MeasuredQuery& query) {
      return check_query(launch, execution, query, digit == 0, check);
    });
    if (check.mismatch) return check;
  }
  return check;
}

}  // namespace kvcheck::properties
