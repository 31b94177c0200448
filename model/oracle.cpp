// The two tiers of the oracle.
#include "model/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "model/attention_row.h"
#include "model/mask.h"
#include "model/token_store.h"
#include "model/visibility.h"

namespace kvcheck::model {
namespace {

using Truth = boost::multiprecision::cpp_bin_float_quad;

constexpr int kExactDigits = 30;

/// Names one attention row of a scenario.
struct RowAddress {
  std::size_t step = 0;
  std::int64_t entry = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;
  friend bool operator==(const RowAddress&, const RowAddress&) = default;
};

/// Rows are read lane by lane, so the sums of all lanes are kept side by side.
struct Lanes {
  std::vector<double> output, magnitude, values, widest, spread, own_spread;

  void reset(std::size_t lanes) {
    for (auto* sums : {&output, &magnitude, &values, &widest, &spread, &own_spread}) {
      sums->assign(lanes, 0.0);
    }
  }
};

/// Adds up a weighed row. `growth` belongs to the target's bound, `own_growth` to the cheap tier's.
void sum_lanes(const AttentionRowInput& in, const AttentionRow<double>& row,
               std::span<const double> growth, std::span<const double> own_growth, Lanes& lanes) {
  const std::size_t count = lanes.output.size();
  for (std::size_t j = 0; j < in.values.size(); ++j) {
    for (std::size_t c = 0; c < count; ++c) lanes.output[c] += row.weights[j] * in.values[j][c];
  }
  for (std::size_t j = 0; j < in.values.size(); ++j) {
    const double weight = row.weights[j];
    const double stretch = weight * growth[j];
    const double own_stretch = weight * own_growth[j];
    for (std::size_t c = 0; c < count; ++c) {
      const double size = std::abs(in.values[j][c]);
      const double distance = std::abs(in.values[j][c] - lanes.output[c]);
      lanes.magnitude[c] += weight * size;
      lanes.values[c] += size;
      lanes.widest[c] = std::max(lanes.widest[c], distance);
      lanes.spread[c] += stretch * distance;
      lanes.own_spread[c] += own_stretch * distance;
    }
  }
}

void key_terms(const AttentionRowInput& in, const AttentionRow<double>& row,
               std::vector<KeyTerm>& terms) {
  const std::size_t lanes = in.query.size();
  const double scale = std::abs(in.scale ? *in.scale : 1.0 / std::sqrt(static_cast<double>(lanes)));
  terms.resize(in.keys.size());
  for (std::size_t j = 0; j < in.keys.size(); ++j) {
    double magnitude = 0;
    for (std::size_t c = 0; c < lanes; ++c) magnitude += std::abs(in.query[c] * in.keys[j][c]);
    terms[j] = {row.products[j], scale * magnitude, in.biases[j], row.weights[j]};
  }
}

/// distance / limit, on the side of 1 where the comparison is even if the quotient rounds to 1.
template <class Real>
double ratio_of(const Real& distance, const Real& limit) {
  const auto quotient = static_cast<double>(Real(distance / limit));
  if (distance > limit) return std::max(quotient, std::nextafter(1.0, 2.0));
  return std::min(quotient, 1.0);
}

}  // namespace

class Oracle::Rows {
 public:
  Rows(const Scenario& scenario, const Timeline& timeline, const Fill& fill)
      : scenario_(scenario),
        timeline_(timeline),
        fill_(fill),
        store_(scenario, timeline, fill),
        visible_depends_on_head_(scenario.mask.kind != MaskKind::none && scenario.mask.rank >= 3) {}

  /// Gathers one row. Rows that share what they see are cheapest when asked head by head.
  const AttentionRowInput& input(const RowAddress& row) {
    const bool same_cache =
        gathered_ && gathered_->step == row.step && gathered_->entry == row.entry;
    if (!same_cache) slots_ = store_.slots(row.step, row.entry);
    if (!same_cache || gathered_->query != row.query || visible_depends_on_head_) {
      visible_ = visible_positions(scenario_, timeline_, row.step, row.entry, row.head, row.query);
    }
    gathered_ = row;

    const std::int64_t kv_head = row.head / (scenario_.query_heads / scenario_.kv_heads);
    const auto& around = timeline_.steps()[row.step].entries[static_cast<std::size_t>(row.entry)];
    const Position position{around.origin.value + row.query};
    input_.scale = scenario_.scale;
    input_.query.resize(static_cast<std::size_t>(scenario_.head_size));
    fill_.query_row(row.step, row.entry, row.head, row.query, input_.query);
    input_.keys.clear();
    input_.values.clear();
    input_.biases.clear();
    for (const Position key : visible_) {
      const std::int64_t slot = slots_[static_cast<std::size_t>(key.value)];
      input_.keys.push_back(store_.key(row.entry, kv_head, slot));
      input_.values.push_back(store_.value(row.entry, kv_head, slot));
      input_.biases.push_back(mask_bias(scenario_, row.entry, row.head, position, key));
    }
    return input_;
  }

  Truth truth(const RowAddress& row, std::int64_t lane) {
    if (truth_of_ != row) {
      truth_input_ = input(row);
      weigh(truth_input_, truth_);
      truth_of_ = row;
    }
    return attend(truth_input_, truth_, static_cast<std::size_t>(lane));
  }

 private:
  const Scenario& scenario_;
  const Timeline& timeline_;
  const Fill& fill_;
  TokenStore store_;
  bool visible_depends_on_head_;

  std::optional<RowAddress> gathered_;  // Row that slots_ and visible_ are for.
  std::vector<std::int64_t> slots_;
  std::vector<Position> visible_;
  AttentionRowInput input_;

  std::optional<RowAddress> truth_of_;
  AttentionRowInput truth_input_;
  AttentionRow<Truth> truth_;
};

Oracle::Oracle(const Scenario& scenario, const ArithmeticProfile& profile)
    : scenario_(scenario),
      profile_(profile),
      timeline_(scenario_),
      fill_(scenario_, timeline_),
      expected_(scenario_.steps.size()),
      rows_(std::make_unique<Rows>(scenario_, timeline_, fill_)) {}

Oracle::~Oracle() = default;

std::size_t Oracle::element(const Expected& expected, std::int64_t entry, std::int64_t query,
                            std::int64_t head, std::int64_t lane) const {
  const std::int64_t row = (entry * expected.queries + query) * scenario_.query_heads + head;
  return static_cast<std::size_t>(row * scenario_.value_head_size + lane);
}

const Expected& Oracle::expected(std::size_t step) {
  auto& slot = expected_[step];
  if (!slot) {
    slot = std::make_unique<Expected>();
    compute(step, *slot);
  }
  return *slot;
}

void Oracle::compute(std::size_t step, Expected& expected) {
  const auto& entries = timeline_.steps()[step].entries;
  for (const EntryStep& entry : entries) {
    expected.queries = std::max(expected.queries, entry.queries);
  }
  const std::size_t size = element(expected, scenario_.batch, 0, 0, 0);
  expected.output.assign(size, 0.0);
  expected.uncertainty.assign(size, 0.0);
  expected.bound.assign(size, {});

  RowBound bound(profile_);
  RowBound own_bound(double_profile());
  AttentionRow<double> row;
  std::vector<KeyTerm> terms;
  Lanes lanes;
  const auto lane_count = static_cast<std::size_t>(scenario_.value_head_size);
  for (std::int64_t entry = 0; entry < scenario_.batch; ++entry) {
    const std::int64_t queries = entries[static_cast<std::size_t>(entry)].queries;
    for (std::int64_t query = 0; query < queries; ++query) {
      for (std::int64_t head = 0; head < scenario_.query_heads; ++head) {
        const AttentionRowInput& input = rows_->input({step, entry, head, query});
        if (input.keys.empty()) continue;
        weigh(input, row);
        key_terms(input, row, terms);
        bound.set_row(scenario_.head_size, terms, row.exp_sum);
        own_bound.set_row(scenario_.head_size, terms, row.exp_sum);
        lanes.reset(lane_count);
        sum_lanes(input, row, bound.growth(), own_bound.growth(), lanes);
        const std::size_t first = element(expected, entry, query, head, 0);
        for (std::size_t c = 0; c < lane_count; ++c) {
          LaneSums sums{lanes.spread[c], lanes.magnitude[c], lanes.values[c], lanes.widest[c]};
          expected.output[first + c] = lanes.output[c];
          expected.bound[first + c] = bound.terms(sums, lanes.output[c]);
          sums.spread = lanes.own_spread[c];
          expected.uncertainty[first + c] = own_bound.terms(sums, lanes.output[c]).total();
        }
      }
    }
  }
}

double Oracle::bound_ratio(std::size_t step, std::int64_t entry, std::int64_t query,
                           std::int64_t head, std::int64_t lane, double observed) {
  constexpr double kFailed = std::numeric_limits<double>::infinity();
  if (!std::isfinite(observed)) return kFailed;
  const Expected& all = expected(step);
  const std::size_t at = element(all, entry, query, head, lane);
  const double limit = all.bound[at].total();
  if (std::isinf(limit)) return 0;
  const double distance = std::abs(observed - all.output[at]);
  if (limit == 0) return distance == 0 ? 0 : kFailed;
  const double doubt = all.uncertainty[at];
  if (distance + doubt <= limit || distance - doubt > limit) {
    return ratio_of(distance, limit);
  }
  const Truth exact = rows_->truth({step, entry, head, query}, lane);
  return ratio_of<Truth>(abs(Truth(observed) - exact), Truth(limit));
}

std::string Oracle::exact_output(std::size_t step, std::int64_t entry, std::int64_t query,
                                 std::int64_t head, std::int64_t lane) {
  return rows_->truth({step, entry, head, query}, lane)
      .str(kExactDigits, std::ios_base::fmtflags(0));
}

}  // namespace kvcheck::model
