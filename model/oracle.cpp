// The two tiers of the oracle.
#include "model/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "model/attention_row.h"
#include "model/gather.h"
#include "model/rational_row.h"

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

ArithmeticProfile with_softmax_precision(ArithmeticProfile profile,
                                         std::optional<ElementType> precision) {
  if (!precision) return profile;
  const double u = unit_roundoff(*precision);
  if (u <= profile.accumulator_roundoff) return profile;
  profile.accumulator_roundoff = u;
  profile.exp_error = std::max(profile.exp_error, 2 * u);
  profile.tanh_error = std::max(profile.tanh_error, 2 * u);
  return profile;
}

class Oracle::TruthRow {
 public:
  void look(Gatherer& gatherer, const RowAddress& address) {
    if (address_ == address) return;
    input_ = gatherer.row(address.step, address.entry, address.head, address.query);
    address_ = address;
    weighed_ = false;
  }

  /// Exact, where all weights are equal.
  std::optional<Rational> rational(std::int64_t lane) const {
    return rational_output(input_, static_cast<std::size_t>(lane));
  }

  Truth lane(std::int64_t lane) {
    if (!weighed_) {
      multiply(input_, row_);
      weigh(input_, row_);
      weighed_ = true;
    }
    return attend(input_, row_, static_cast<std::size_t>(lane));
  }

 private:
  std::optional<RowAddress> address_;
  AttentionRowInput input_;
  AttentionRow<Truth> row_;
  bool weighed_ = false;
};

Oracle::Oracle(const Scenario& scenario, const ArithmeticProfile& profile, const Reading& reading)
    : scenario_(scenario),
      profile_(with_softmax_precision(profile, scenario.softmax_precision)),
      reading_(reading),
      timeline_(scenario_),
      fill_(scenario_, timeline_),
      gatherer_(scenario_, timeline_, fill_, profile_.accumulator_roundoff, reading_),
      cheap_row_(profile_),
      expected_(scenario_.steps.size()),
      qk_(scenario_.steps.size()),
      truth_(std::make_unique<TruthRow>()) {}

Oracle::~Oracle() = default;

std::size_t element_index(const Scenario& scenario, const Expected& expected, std::int64_t entry,
                          std::int64_t query, std::int64_t head, std::int64_t lane) {
  const std::int64_t row = (entry * expected.queries + query) * scenario.query_heads + head;
  return static_cast<std::size_t>(row * scenario.value_head_size + lane);
}

const Expected& Oracle::expected(std::size_t step) {
  auto& slot = expected_[step];
  if (!slot) {
    slot = std::make_unique<Expected>();
    compute(step, *slot);
  }
  return *slot;
}

const QkExpected& Oracle::expected_qk(std::size_t step) {
  auto& slot = qk_[step];
  if (!slot) {
    slot = std::make_unique<QkExpected>(
        model::expected_qk(scenario_, timeline_, profile_, gatherer_, step));
  }
  return *slot;
}

void Oracle::compute(std::size_t step, Expected& expected) {
  const auto& entries = timeline_.steps()[step].entries;
  for (const EntryStep& entry : entries) {
    expected.queries = std::max(expected.queries, entry.queries);
  }
  const auto lanes = static_cast<std::size_t>(scenario_.value_head_size);
  const std::size_t size = element_index(scenario_, expected, scenario_.batch, 0, 0, 0);
  expected.output.assign(size, 0.0);
  expected.bound.assign(size, 0.0);
  expected.doubt.assign(size / lanes, 0.0);

  CheapRow& row = cheap_row_;
  row.forget_values();
  for (std::int64_t entry = 0; entry < scenario_.batch; ++entry) {
    const std::int64_t queries = entries[static_cast<std::size_t>(entry)].queries;
    for (std::int64_t query = 0; query < queries; ++query) {
      for (std::int64_t head = 0; head < scenario_.query_heads; ++head) {
        const AttentionRowInput& input = gatherer_.row(step, entry, head, query);
        if (input.keys.empty()) continue;
        // Rows that a reading distorts lie in memory of its own, which changes.
        if (reading_.distort != nullptr) row.forget_values();
        row.evaluate(input, lanes);
        const std::size_t first = element_index(scenario_, expected, entry, query, head, 0);
        note_row(row, first / lanes, expected);
      }
    }
  }
}

void Oracle::note_row(CheapRow& row, std::size_t index, Expected& expected) const {
  const std::size_t lanes = row.outputs().size();
  const std::size_t first = index * lanes;
  std::ranges::copy(row.outputs(), &expected.output[first]);
  row.bounds(std::span(expected.bound).subspan(first, lanes));
  const double doubt = row.largest_doubt();
  expected.doubt[index] = doubt;
  if (doubt <= kLargestDoubt) return;
  expected.uncertainty.resize(expected.output.size(), 0.0);
  for (std::size_t c = 0; c < lanes; ++c) expected.uncertainty[first + c] = row.uncertainty(c);
}

double Oracle::bound_ratio(std::size_t step, std::int64_t entry, std::int64_t query,
                           std::int64_t head, std::int64_t lane, double observed) {
  return ratio_at(expected(step), step, entry, query, head, lane, observed);
}

void Oracle::bound_ratios(std::size_t step, std::int64_t entry, std::int64_t query,
                          std::int64_t head, std::span<const double> observed,
                          std::span<double> ratios) {
  const Expected& all = expected(step);
  const std::size_t first = element_index(scenario_, all, entry, query, head, 0);
  const double share = all.doubt[first / static_cast<std::size_t>(scenario_.value_head_size)];
  for (std::size_t c = 0; c < observed.size(); ++c) {
    const double limit = all.bound[first + c];
    const double distance = std::abs(observed[c] - all.output[first + c]);
    // Clearly within; what is not finite is not.
    if (share <= kLargestDoubt && limit > 0 && distance + share * limit <= limit &&
        !std::isinf(limit)) {
      ratios[c] = std::min(distance / limit, 1.0);
    } else {
      ratios[c] =
          ratio_at(all, step, entry, query, head, static_cast<std::int64_t>(c), observed[c]);
    }
  }
}

Operands* Oracle::operands(double roundoff) {
  const bool right = reading_.rotary_position == nullptr && !reading_.other_pairs &&
                     !reading_.without_norm && !reading_.without_quantisation;
  return right && roundoff == profile_.accumulator_roundoff ? &gatherer_.operands() : nullptr;
}

double Oracle::ratio_at(const Expected& all, std::size_t step, std::int64_t entry,
                        std::int64_t query, std::int64_t head, std::int64_t lane, double observed) {
  constexpr double kFailed = std::numeric_limits<double>::infinity();
  if (!std::isfinite(observed)) return kFailed;
  const std::size_t at = element_index(scenario_, all, entry, query, head, lane);
  const double limit = all.bound[at];
  if (std::isinf(limit)) return 0;
  const double distance = std::abs(observed - all.output[at]);
  if (limit == 0) return distance == 0 ? 0 : kFailed;
  const double share = all.doubt[at / static_cast<std::size_t>(scenario_.value_head_size)];
  const double doubt = share <= kLargestDoubt ? share * limit : all.uncertainty[at];
  const bool clear = distance + doubt <= limit || distance - doubt > limit;
  if (clear && doubt <= kLargestDoubt * limit) return ratio_of(distance, limit);
  ++truths_asked_;
  truth_->look(gatherer_, {step, entry, head, query});
  if (const auto exact = truth_->rational(lane)) {
    return ratio_of<Rational>(abs(Rational(Rational(observed) - *exact)), Rational(limit));
  }
  return ratio_of<Truth>(abs(Truth(observed) - truth_->lane(lane)), Truth(limit));
}

BoundTerms Oracle::bound_terms(std::size_t step, std::int64_t entry, std::int64_t query,
                               std::int64_t head, std::int64_t lane) {
  const AttentionRowInput& input = gatherer_.row(step, entry, head, query);
  if (input.keys.empty()) return {};
  cheap_row_.forget_values();
  cheap_row_.evaluate(input, static_cast<std::size_t>(scenario_.value_head_size));
  return cheap_row_.bound(static_cast<std::size_t>(lane));
}

std::string Oracle::exact_output(std::size_t step, std::int64_t entry, std::int64_t query,
                                 std::int64_t head, std::int64_t lane) {
  truth_->look(gatherer_, {step, entry, head, query});
  Truth exact;
  if (const auto mean = truth_->rational(lane)) {
    exact = Truth(numerator(*mean)) / Truth(denominator(*mean));
  } else {
    exact = truth_->lane(lane);
  }
  return exact.str(kExactDigits, std::ios_base::fmtflags(0));
}

}  // namespace kvcheck::model
