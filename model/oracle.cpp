// The two tiers of the oracle.
#include "model/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "model/attention_row.h"
#include "model/cheap_row.h"
#include "model/mask.h"
#include "model/token_store.h"
#include "model/visibility.h"

namespace kvcheck::model {
namespace {

using Truth = boost::multiprecision::cpp_bin_float_quad;

constexpr int kExactDigits = 30;

/// Share of the bound that the cheap tier's own error may take: ratios are right to this.
constexpr double kLargestDoubt = 1e-3;

/// Names one attention row of a scenario.
struct RowAddress {
  std::size_t step = 0;
  std::int64_t entry = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;
  friend bool operator==(const RowAddress&, const RowAddress&) = default;
};

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
        store_(scenario, fill),
        heads_see_the_same_(scenario.mask.kind == MaskKind::none || scenario.mask.rank <= 2) {}

  /// Gathers one row; cheapest when the heads of one query follow each other.
  const AttentionRowInput& input(const RowAddress& row) {
    if (!gathered_ || !(heads_see_the_same_ && same_query(*gathered_, row))) look(row);
    gathered_ = row;
    const std::int64_t kv_head = row.head / (scenario_.query_heads / scenario_.kv_heads);
    const auto key_offset = static_cast<std::size_t>(kv_head * scenario_.head_size);
    const auto value_offset = static_cast<std::size_t>(kv_head * scenario_.value_head_size);
    const Position position = position_of(row);
    input_.scale = scenario_.scale;
    input_.query.resize(static_cast<std::size_t>(scenario_.head_size));
    fill_.query_row(row.step, row.entry, row.head, row.query, input_.query);
    input_.keys.resize(visible_.size());
    input_.values.resize(visible_.size());
    input_.biases.assign(visible_.size(), 0.0);
    const bool biased = scenario_.mask.kind == MaskKind::additive;
    for (std::size_t j = 0; j < visible_.size(); ++j) {
      input_.keys[j] = seen_[j]->keys.data() + key_offset;
      input_.values[j] = seen_[j]->values.data() + value_offset;
      if (biased) {
        input_.biases[j] = mask_bias(scenario_, row.entry, row.head, position, visible_[j]);
      }
    }
    return input_;
  }

  Truth truth(const RowAddress& row, std::int64_t lane) {
    if (truth_of_ != row) {
      truth_input_ = input(row);
      multiply(truth_input_, truth_);
      weigh(truth_input_, truth_);
      truth_of_ = row;
    }
    return attend(truth_input_, truth_, static_cast<std::size_t>(lane));
  }

 private:
  static bool same_query(const RowAddress& a, const RowAddress& b) {
    return a.step == b.step && a.entry == b.entry && a.query == b.query;
  }

  Position position_of(const RowAddress& row) const {
    const auto& entries = timeline_.steps()[row.step].entries;
    return {entries[static_cast<std::size_t>(row.entry)].origin.value + row.query};
  }

  void look(const RowAddress& row) {
    visible_ = visible_positions(scenario_, timeline_, row.step, row.entry, row.head, row.query);
    seen_.clear();
    for (const Position key : visible_) {
      seen_.push_back(
          &store_.rows(row.entry, {key, timeline_.generation(row.step, row.entry, key)}));
    }
  }

  const Scenario& scenario_;
  const Timeline& timeline_;
  const Fill& fill_;
  TokenStore store_;
  bool heads_see_the_same_;

  std::optional<RowAddress> gathered_;  // The row that the members below are for.
  std::vector<Position> visible_;
  std::vector<const TokenRows*> seen_;
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

  CheapRow row(profile_);
  const auto lanes = static_cast<std::size_t>(scenario_.value_head_size);
  for (std::int64_t entry = 0; entry < scenario_.batch; ++entry) {
    const std::int64_t queries = entries[static_cast<std::size_t>(entry)].queries;
    for (std::int64_t query = 0; query < queries; ++query) {
      for (std::int64_t head = 0; head < scenario_.query_heads; ++head) {
        const AttentionRowInput& input = rows_->input({step, entry, head, query});
        if (input.keys.empty()) continue;
        const std::size_t first = element(expected, entry, query, head, 0);
        row.evaluate(input, lanes);
        for (std::size_t c = 0; c < lanes; ++c) {
          expected.output[first + c] = row.output(c);
          expected.bound[first + c] = row.bound(c);
          expected.uncertainty[first + c] = row.uncertainty(c);
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
  const bool clear = distance + doubt <= limit || distance - doubt > limit;
  if (clear && doubt <= kLargestDoubt * limit) return ratio_of(distance, limit);
  const Truth exact = rows_->truth({step, entry, head, query}, lane);
  return ratio_of<Truth>(abs(Truth(observed) - exact), Truth(limit));
}

std::string Oracle::exact_output(std::size_t step, std::int64_t entry, std::int64_t query,
                                 std::int64_t head, std::int64_t lane) {
  return rows_->truth({step, entry, head, query}, lane)
      .str(kExactDigits, std::ios_base::fmtflags(0));
}

}  // namespace kvcheck::model
