// Counting explained rows.
#include "model/row_explanation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Readings whose share of all rows is counted, apart from those that explain every failing row.
constexpr std::size_t kNearest = 3;

std::vector<RowAt> answered_rows(Oracle& oracle, const Observed& observed) {
  const Scenario& s = oracle.scenario();
  std::vector<RowAt> rows;
  for (std::size_t step = 0; step < s.steps.size(); ++step) {
    const TimelineStep& state = oracle.timeline().steps()[step];
    if (!state.defined || !std::holds_alternative<Append>(s.steps[step])) continue;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < state.entries[static_cast<std::size_t>(b)].queries; ++i) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          if (observed({step, b, i, h, 0})) rows.push_back({step, b, i, h});
        }
      }
    }
  }
  return rows;
}

/// Largest bound ratio of the row's lanes; not below `give_up` once one lane exceeds it.
double row_ratio(Oracle& oracle, const RowAt& row, const Observed& observed,
                 double give_up = kInfinity) {
  double worst = 0;
  for (std::int64_t c = 0; c < oracle.scenario().value_head_size && !(worst > give_up); ++c) {
    const auto value = observed({row.step, row.entry, row.query, row.head, c});
    if (!value) continue;
    worst =
        std::max(worst, oracle.bound_ratio(row.step, row.entry, row.query, row.head, c, *value));
  }
  return worst;
}

bool finite(const Scenario& s, const RowAt& row, const Observed& observed) {
  for (std::int64_t c = 0; c < s.value_head_size; ++c) {
    const auto value = observed({row.step, row.entry, row.query, row.head, c});
    if (value && !std::isfinite(*value)) return false;
  }
  return true;
}

/// Whether the two readings can be told apart on the row, and the wrong one commits itself.
bool told_apart(Oracle& right, Oracle& wrong, const RowAt& row) {
  const Scenario& s = right.scenario();
  const Expected& a = right.expected(row.step);
  const Expected& b = wrong.expected(row.step);
  bool apart = false;
  for (std::int64_t c = 0; c < s.value_head_size; ++c) {
    const std::size_t at = element_index(s, a, row.entry, row.query, row.head, c);
    if (std::isinf(b.bound[at])) return false;
    apart = apart || !(std::abs(b.output[at] - a.output[at]) <= a.bound[at]);
  }
  return apart;
}

ReadingShare share_of(Oracle& right, Oracle& wrong, const std::vector<RowAt>& failing,
                      const Observed& observed) {
  ReadingShare share;
  for (const RowAt& row : failing) {
    if (!told_apart(right, wrong, row)) continue;
    const double ratio = row_ratio(wrong, row, observed, 1);
    if (!(ratio <= 1)) continue;
    ++share.failing;
    share.worst_ratio = std::max(share.worst_ratio, ratio);
  }
  return share;
}

std::int64_t explained(Oracle& wrong, const std::vector<RowAt>& rows, const Observed& observed) {
  return std::count_if(rows.begin(), rows.end(),
                       [&](const RowAt& row) { return row_ratio(wrong, row, observed, 1) <= 1; });
}

bool better(const ReadingShare& a, const ReadingShare& b) {
  if (a.rows != b.rows) return a.rows > b.rows;
  if (a.failing != b.failing) return a.failing > b.failing;
  return a.worst_ratio < b.worst_ratio;
}

/// Asks one reading; its share of all rows is counted as well where `count_rows`.
std::optional<ReadingShare> ask(Oracle& right, const ArithmeticProfile& profile,
                                const WrongModel& model, const std::vector<RowAt>& failing,
                                const std::vector<RowAt>& rows, const Observed& observed) {
  if (!model.concerns(right.scenario())) return {};
  Oracle wrong(right.scenario(), profile, model.reading);
  ReadingShare share = share_of(right, wrong, failing, observed);
  if (share.failing == 0) return {};
  share.model = &model;
  if (share.failing == static_cast<std::int64_t>(failing.size())) {
    share.rows = explained(wrong, rows, observed);
  }
  return share;
}

}  // namespace

RowExplanation explain_rows(Oracle& right, const ArithmeticProfile& profile,
                            const Observed& observed, const ExplainOptions& options) {
  RowExplanation result;
  const std::vector<RowAt> rows = answered_rows(right, observed);
  std::vector<RowAt> failing;
  for (const RowAt& row : rows) {
    const double ratio = row_ratio(right, row, observed);
    result.contract_ratio = std::max(result.contract_ratio, ratio);
    if (ratio <= 1) continue;
    failing.push_back(row);
    result.not_finite += finite(right.scenario(), row, observed) ? 0 : 1;
  }
  result.rows = static_cast<std::int64_t>(rows.size());
  result.failing = static_cast<std::int64_t>(failing.size());
  if (failing.empty() || result.not_finite == result.failing) return result;

  for (const WrongModel* model : options.first) {
    const auto share = ask(right, profile, *model, failing, rows, observed);
    if (share && share->rows == result.rows) {
      result.readings = {*share};
      return result;
    }
  }
  for (const WrongModel& model : wrong_models()) {
    if (const auto share = ask(right, profile, model, failing, rows, observed)) {
      result.readings.push_back(*share);
    }
  }
  std::stable_sort(result.readings.begin(), result.readings.end(), better);
  for (std::size_t i = 0; i < std::min(kNearest, result.readings.size()); ++i) {
    ReadingShare& share = result.readings[i];
    if (share.rows > 0) continue;
    Oracle wrong(right.scenario(), profile, share.model->reading);
    share.rows = explained(wrong, rows, observed);
  }
  std::stable_sort(result.readings.begin(), result.readings.end(), better);
  return result;
}

}  // namespace kvcheck::model
