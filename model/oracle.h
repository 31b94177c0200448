// The oracle: exact attention outputs of a scenario, each with its error bound.
//
// Three tiers give the same verdict. The cheap tier computes in double and knows its own error
// (the same bound with u = 2^-53, or a share of the target's bound that this is below); it decides
// where that error is small against the target's bound and the observed value is not within it of
// the limit. Elsewhere the truth decides: in rational
// arithmetic where all weights of a row are equal, in 113-bit binary floating point otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/cheap_row.h"
#include "model/error_bound.h"
#include "model/fill.h"
#include "model/qk_output.h"
#include "model/reading.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// Expected outputs of one step. Element (entry, query, head, lane) is at
/// ((entry * queries + query) * query_heads + head) * value_head_size + lane; entries with fewer
/// queries leave their tail at 0 with bound 0 and are not judged there.
struct Expected {
  std::int64_t queries = 0;    ///< Largest number of queries of any entry.
  std::vector<double> output;  ///< Double tier value.
  std::vector<double> bound;   ///< Allowed error of the target.
  /// What part of its bound the error of an `output` may be, [entry][query][head].
  std::vector<double> doubt;
  /// Error bound of `output` itself, for all elements or none. Wanted where the doubt of a row is
  /// large.
  std::vector<double> uncertainty;
};

/// softmax_precision narrower than the target's own arithmetic takes precedence: every step of the
/// softmax may round to it. A wider one is no promise to be wider.
ArithmeticProfile with_softmax_precision(ArithmeticProfile profile,
                                         std::optional<ElementType> precision);

/// Index of an output element in the vectors of Expected.
std::size_t element_index(const Scenario& scenario, const Expected& expected, std::int64_t entry,
                          std::int64_t query, std::int64_t head, std::int64_t lane);

/// Owns its scenario; fill() and timeline() refer into it, so an oracle stays where it is. One
/// thread at a time.
class Oracle {
 public:
  /// Answers for `reading`, which is the right one unless a wrong model is asked.
  /// \pre validate(scenario) is empty
  Oracle(const Scenario& scenario, const ArithmeticProfile& profile, const Reading& reading = {});
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;
  ~Oracle();

  const Scenario& scenario() const { return scenario_; }
  const Timeline& timeline() const { return timeline_; }
  const Fill& fill() const { return fill_; }

  /// From here on rows of the fill come from `rows`, which others use as well.
  /// \pre it gives those of fill() and lives as long as the oracle is asked
  void share_rows(RowSource& rows) { gatherer_.operands().share_rows(rows); }

  /// \pre step is an Append and timeline().steps()[step].defined. Computed on first use.
  const Expected& expected(std::size_t step);

  /// The intermediate that scenario.qk_output asks for.
  /// \pre as for expected(), and qk_output is not none. Computed on first use.
  const QkExpected& expected_qk(std::size_t step);

  /// bound ratio = |observed - truth| / bound of one element; above 1 fails. Not finite where
  /// the truth is finite: infinity. Bound 0: 0 when equal, else infinity. Bound infinite: 0.
  /// \pre 0 <= query < queries of the entry
  double bound_ratio(std::size_t step, std::int64_t entry, std::int64_t query, std::int64_t head,
                     std::int64_t lane, double observed);

  /// The same of the first lanes of one row, as many as are observed.
  void bound_ratios(std::size_t step, std::int64_t entry, std::int64_t query, std::int64_t head,
                    std::span<const double> observed, std::span<double> ratios);

  /// The operands that outputs are computed from, if they are those of a target with this unit
  /// roundoff; null otherwise. Valid as long as the oracle.
  Operands* operands(double roundoff);

  /// The terms that the bound of one element is the sum of.
  BoundTerms bound_terms(std::size_t step, std::int64_t entry, std::int64_t query,
                         std::int64_t head, std::int64_t lane);

  /// The truth as a decimal string of at most 30 significant digits, zeros at the end left out.
  std::string exact_output(std::size_t step, std::int64_t entry, std::int64_t query,
                           std::int64_t head, std::int64_t lane);

  /// Verdicts so far that the cheap tier handed over to the truth.
  std::int64_t truths_asked() const { return truths_asked_; }

 private:
  double ratio_at(const Expected& all, std::size_t step, std::int64_t entry, std::int64_t query,
                  std::int64_t head, std::int64_t lane, double observed);

  class TruthRow;  // The row of the truth that was asked last.
  void compute(std::size_t step, Expected& expected);
  void note_row(CheapRow& row, std::size_t index, Expected& expected) const;

  Scenario scenario_;
  ArithmeticProfile profile_;
  Reading reading_;
  Timeline timeline_;
  Fill fill_;
  Gatherer gatherer_;
  CheapRow cheap_row_;
  std::vector<std::unique_ptr<Expected>> expected_;  // [step], null until asked
  std::vector<std::unique_ptr<QkExpected>> qk_;      // [step], null until asked
  std::unique_ptr<TruthRow> truth_;
  std::int64_t truths_asked_ = 0;
};

}  // namespace kvcheck::model
