// Launches with zero logits.
#include "properties/read_back.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "model/fill.h"
#include "model/literal.h"
#include "model/oracle.h"
#include "model/visibility.h"
#include "properties/case.h"
#include "properties/convert.h"
#include "properties/execution.h"
#include "properties/uniform_rows.h"

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
  if (base == 1) {  // One lane shows the binary digits of the position plus one.
    base = 2;
    ++count;
  }
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

namespace {

/// One launch whose values show a digit of every position.
class DigitLaunch {
 public:
  /// `rows` are those of the scenario under the position code, whatever the digit.
  DigitLaunch(kernels::Target& target, const Scenario& scenario, const model::Timeline& timeline,
              std::int64_t length, std::int64_t digit, UniformRows& rows,
              std::optional<DrawnRows>& drawn)
      : target_(target),
        scenario_(with_position_fill(scenario, FillKind::position_code, digit)),
        timeline_(timeline),
        fill_(scenario_, timeline),
        rows_(rows),
        quick_(is_quick()),
        execution_(launched(drawn)),
        lit_(static_cast<std::size_t>(scenario_.value_head_size)),
        observed_(lit_.size()) {
    for (std::int64_t b = 0; b < scenario_.batch; ++b) {
      for (std::int64_t h = 0; h < scenario_.kv_heads; ++h) {
        for (std::int64_t p = 0; p < length; ++p) {
          lanes_.push_back(model::position_lane(scenario_, b, h, {p}));
        }
      }
    }
    length_ = length;
  }

  const Execution& execution() const { return execution_; }
  std::string broke_off() const { return properties::broke_off(scenario_, execution_); }

  /// Judges one query; false where it contradicts the contract.
  /// `hides` = whether one key more could hide within the bounds of all lanes.
  bool check(const MeasuredQuery& query, bool first, DigitCheck& check, bool& hides) {
    if (!answered_with_output(execution_, query.step)) return true;
    if (first) ++check.queries;
    return passes_quickly(query, hides) || passes(query, check, hides);
  }

 private:
  /// Launches of several digits have the same keys.
  Execution launched(std::optional<DrawnRows>& drawn) {
    if (!drawn) drawn.emplace(scenario_);
    drawn->turn_to(scenario_);
    return execute(target_, scenario_, timeline_, fill_, {.want_rows = false, .rows = &*drawn});
  }

  /// Whether uniform_rows.h answers for the launch, and double is far finer than its bounds.
  bool is_quick() const {
    return scenario_.cache.quantisation.kind == model::QuantisationKind::none &&
           scenario_.fill.kind == FillKind::position_code &&
           scenario_.element_type != model::ElementType::f64 &&
           arithmetic_profile(target_.capabilities(), scenario_).accumulator_roundoff > 0x1p-40;
  }

  /// Counts in lit_ how many of the keys that the query should see light each lane.
  void count(const MeasuredQuery& query) {
    const std::int64_t kv_head = query.head / (scenario_.query_heads / scenario_.kv_heads);
    if (counted_step_ == query.step && counted_entry_ == query.entry &&
        counted_query_ == query.query && counted_head_ == kv_head &&
        model::heads_see_alike(scenario_)) {
      return;
    }
    counted_step_ = query.step, counted_entry_ = query.entry;
    counted_query_ = query.query, counted_head_ = kv_head;
    std::ranges::fill(lit_, 0);
    const std::int64_t* lanes =
        lanes_.data() + (query.entry * scenario_.kv_heads + kv_head) * length_;
    for (const model::Position position : query.expected) {
      const std::int64_t lane = lanes[position.value];
      if (lane >= 0) ++lit_[static_cast<std::size_t>(lane)];
    }
  }

  /// True where every lane is clearly within its bound; false says nothing.
  bool passes_quickly(const MeasuredQuery& query, bool& hides) {
    if (!quick_) return false;
    constexpr double kClearly = 1 - 0x1p-10;
    count(query);
    output_row(*execution_.steps[query.step].result.output, query.entry, query.query, query.head,
               observed_);
    const auto keys = static_cast<std::int64_t>(query.expected.size());
    bool all_hide = keys > 0;
    for (std::size_t l = 0; l < observed_.size(); ++l) {
      const auto& lane = rows_.lane(query.head, keys, lit_[l]);
      if (!(std::abs(observed_[l] - lane.output) <= kClearly * lane.bound)) return false;
      all_hide = all_hide && lane.hides_a_key;
    }
    hides = all_hide;
    return true;
  }

  /// The same by the exact model.
  bool passes(const MeasuredQuery& query, DigitCheck& check, bool& hides) {
    if (!exact_) exact_.emplace(target_, scenario_);
    const std::int64_t lanes = scenario_.value_head_size;
    const auto& output = *execution_.steps[query.step].result.output;
    for (std::int64_t l = 0; l < lanes; ++l) {
      const double observed = output_at(output, query.entry, query.query, query.head, l);
      const double ratio = exact_->oracle().bound_ratio(query.step, query.entry, query.query,
                                                        query.head, l, observed);
      if (!(ratio <= 1)) {
        check.mismatch = {query.step, query.entry, query.head, query.query};
        return false;
      }
    }
    if (query.expected.empty()) return true;
    const auto& expected = exact_->oracle().expected(query.step);
    const std::size_t at =
        model::element_index(scenario_, expected, query.entry, query.query, query.head, 0);
    const auto keys = static_cast<std::int64_t>(query.expected.size());
    const double mass = static_cast<double>(keys) + sink_mass(scenario_, query.head);
    hides = true;
    for (std::int64_t l = 0; l < lanes; ++l) {
      const auto lane = at + static_cast<std::size_t>(l);
      hides =
          hides && lane_hides_a_key(expected.output[lane], expected.bound[lane], lanes, keys, mass);
    }
    return true;
  }

  kernels::Target& target_;
  Scenario scenario_;
  const model::Timeline& timeline_;
  model::Fill fill_;
  UniformRows& rows_;
  bool quick_;
  Execution execution_;
  std::int64_t length_ = 0;
  std::vector<std::int64_t> lanes_;  // Of every entry, KV head and position.
  std::vector<std::int64_t> lit_;    // Of the query that was counted last, by lane.
  std::vector<double> observed_;     // Lanes of the query at hand.
  std::size_t counted_step_ = 0;
  std::int64_t counted_entry_ = -1, counted_query_ = -1, counted_head_ = -1;
  std::optional<Case> exact_;
};

}  // namespace

DigitCheck check_digits(kernels::Target& target, const Scenario& scenario) {
  DigitCheck check;
  const model::Timeline timeline(scenario);
  const std::int64_t length = longest(timeline);
  const std::int64_t digits = digits_needed(length, scenario.value_head_size);
  const bool one_lane = scenario.value_head_size == 1;
  const Scenario coded = with_position_fill(scenario, FillKind::position_code, 0);
  UniformRows rows(coded,
                   model::with_softmax_precision(arithmetic_profile(target.capabilities(), coded),
                                                 coded.softmax_precision));
  std::optional<DrawnRows> drawn;
  std::vector<char> hidden;  // Of every query, whether a key could hide in what it shows.
  for (std::int64_t digit = 0; digit < digits; ++digit) {
    DigitLaunch launch(target, scenario, timeline, length, digit, rows, drawn);
    if (!launch.execution().complete) {
      check.problem = launch.broke_off();
      return check;
    }
    std::size_t at = 0;
    for_each_query(scenario, timeline, [&](const MeasuredQuery& query) {
      bool hides = false;
      const bool passes = launch.check(query, digit == 0, check, hides);
      if (at == hidden.size()) hidden.push_back(one_lane);
      hidden[at] = one_lane ? hidden[at] && hides : hidden[at] || hides;
      ++at;
      return passes;
    });
    if (check.mismatch) return check;
  }
  check.blind = std::ranges::any_of(hidden, [](char could) { return could != 0; });
  return check;
}

}  // namespace kvcheck::properties
