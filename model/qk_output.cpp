// Logits and probabilities of one step.
#include "model/qk_output.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/cheap_row.h"
#include "model/visibility.h"

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class QkRows {
 public:
  QkRows(const Scenario& scenario, const Timeline& timeline, const ArithmeticProfile& profile,
         Gatherer& gatherer)
      : s_(scenario),
        timeline_(timeline),
        profile_(profile),
        gatherer_(gatherer),
        row_(profile),
        own_(double_profile()) {}

  /// Writes one row of `out` that starts at `first`.
  void write(const QueryPlace& place, QkExpected& out, std::size_t first) {
    const std::int64_t length = place.around().length;
    const bool all_keys = s_.qk_output == QkOutput::raw || s_.qk_output == QkOutput::softcapped;
    const double hidden =
        s_.op == Operator::attention && s_.qk_output == QkOutput::biased ? -kInfinity : 0;
    for (std::int64_t j = 0; j < length; ++j) {
      out.values[first + static_cast<std::size_t>(j)] = hidden;
      out.bound[first + static_cast<std::size_t>(j)] = 0;
    }
    // A key that is in reach, and hidden by the bias alone, has the logit -infinity also in gqa.
    if (s_.op == Operator::gqa && s_.qk_output == QkOutput::biased &&
        s_.mask.kind == MaskKind::additive) {
      const auto [oldest, newest] = visible_range(s_, length, place.position());
      for (std::int64_t j = oldest; j <= newest; ++j) {
        out.values[first + static_cast<std::size_t>(j)] = -kInfinity;
      }
    }
    if (all_keys) {
      std::vector<Position> every(static_cast<std::size_t>(length));
      for (std::size_t j = 0; j < every.size(); ++j) every[j] = {static_cast<std::int64_t>(j)};
      gather(gatherer_.row_over(place, every), out, first);
    } else {
      gather(gatherer_.row(place.step, place.entry, place.head, place.query), out, first);
    }
  }

 private:
  void gather(const AttentionRowInput& input, QkExpected& out, std::size_t first) {
    if (input.keys.empty()) return;
    row_.evaluate(input, 0);
    const auto& row = row_.row();
    bound_own_error(input);
    // A wrong reading may see more rows than there are columns, or keys at no position.
    const std::size_t keys = std::min(row.weights.size(), gatherer_.positions().size());
    for (std::size_t j = 0; j < keys; ++j) {
      const std::int64_t column = gatherer_.positions()[j].value;
      if (column >= out.columns) continue;
      const std::size_t at = first + static_cast<std::size_t>(column);
      const KeyTerm& term = row_.terms()[j];
      switch (s_.qk_output) {
        case QkOutput::raw:
          set(out, at, term.product, logit_error(j, LogitStage::product));
          break;
        case QkOutput::softcapped:
          set(out, at, term.score, logit_error(j, LogitStage::score));
          break;
        case QkOutput::biased:
          set(out, at, row.logits[j], logit_error(j, LogitStage::logit));
          break;
        default:
          set(out, at, row.weights[j],
              row_.bound().weight_error(j, row.weights[j]) + own_.weight_error(j, row.weights[j]));
      }
    }
  }

  /// The expected values are computed in double, from the query rounded to it.
  void bound_own_error(const AttentionRowInput& input) {
    own_terms_ = row_.terms();
    for (KeyTerm& term : own_terms_) term.operand_error = 0;
    own_.set_row(static_cast<std::int64_t>(input.query.size()) + 1, own_terms_, row_.row().exp_sum,
                 input.softcap);
  }

  double logit_error(std::size_t j, LogitStage stage) const {
    return row_.bound().logit_error(row_.terms()[j], stage) +
           own_.logit_error(own_terms_[j], stage);
  }

  void set(QkExpected& out, std::size_t at, double value, double error) const {
    const ElementType type = profile_.output_type;
    out.values[at] = value;
    out.bound[at] =
        error + unit_roundoff(type) * (std::abs(value) + error) + subnormal_half_spacing(type);
  }

  const Scenario& s_;
  const Timeline& timeline_;
  const ArithmeticProfile& profile_;
  Gatherer& gatherer_;
  CheapRow row_;
  RowBound own_;
  std::vector<KeyTerm> own_terms_;
};

}  // namespace

QkExpected expected_qk(const Scenario& scenario, const Timeline& timeline,
                       const ArithmeticProfile& profile, Gatherer& gatherer, std::size_t step) {
  QkExpected out;
  const auto& entries = timeline.steps()[step].entries;
  out.columns = scenario.nonpad_kv_seqlen ? timeline.buffer_rows() : 0;
  for (const EntryStep& entry : entries) {
    out.queries = std::max(out.queries, entry.queries);
    out.columns = std::max(out.columns, entry.length);
  }
  const std::int64_t rows = scenario.batch * scenario.query_heads * out.queries;
  out.values.assign(static_cast<std::size_t>(rows * out.columns), 0.0);
  out.bound.assign(out.values.size(), kInfinity);
  QkRows writer(scenario, timeline, profile, gatherer);
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    for (std::int64_t i = 0; i < entries[static_cast<std::size_t>(b)].queries; ++i) {
      for (std::int64_t h = 0; h < scenario.query_heads; ++h) {
        const std::int64_t row = (b * scenario.query_heads + h) * out.queries + i;
        writer.write({scenario, timeline, step, b, h, i}, out,
                     static_cast<std::size_t>(row * out.columns));
      }
    }
  }
  return out;
}

}  // namespace kvcheck::model
