// The oracle: exact attention outputs of a scenario, each with its error bound.
//
// Two tiers give the same verdict. The cheap tier computes in double and knows its own error
// (the same bound with u = 2^-53); it decides unless an observed value lies within that error of
// the limit. Then the truth, 113-bit binary floating point, decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/error_bound.h"
#include "model/fill.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// Expected outputs of one step. Element (entry, query, head, lane) is at
/// ((entry * queries + query) * query_heads + head) * value_head_size + lane; entries with fewer
/// queries leave their tail at 0 with bound 0 and are not judged there.
struct Expected {
  std::int64_t queries = 0;            ///< Largest number of queries of any entry.
  std::vector<double> output;          ///< Double tier value.
  std::vector<double> uncertainty;     ///< Error bound of `output` itself.
  std::vector<BoundTerms> bound;       ///< Allowed error of the target.
};

class Oracle {
 public:
  /// \pre validate(scenario) is empty
  Oracle(const Scenario& scenario, const ArithmeticProfile& profile);

  const Scenario& scenario() const { return scenario_; }
  const Timeline& timeline() const { return timeline_; }
  const Fill& fill() const { return fill_; }

  /// \pre step is an Append and timeline().steps()[step].defined. Computed on first use.
  const Expected& expected(std::size_t step);

  /// bound ratio = |observed - truth| / bound of one element; above 1 fails. Not finite where
  /// the truth is finite: infinity. Bound 0: 0 when equal, else infinity.
  double bound_ratio(std::size_t step, std::int64_t entry, std::int64_t query, std::int64_t head,
                     std::int64_t lane, double observed);

  /// The truth as a decimal string of 30 significant digits.
  std::string exact_output(std::size_t step, std::int64_t entry, std::int64_t query,
                           std::int64_t head, std::int64_t lane);

 private:
  Scenario scenario_;
  ArithmeticProfile profile_;
  Timeline timeline_;
  Fill fill_;
  std::vector<Expected> expected_;  // [step], empty until asked
};

}  // namespace kvcheck::model
