// Comparison of two executions of the same tokens: bit for bit, or by what rounding can explain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "properties/case.h"
#include "properties/execution.h"

namespace kvcheck::properties {

/// A second run beside the main one.
struct OtherRun {
  const model::Scenario& scenario;
  const model::Timeline& timeline;
  const Execution& execution;
  /// Entry of the other run that stands for entry b of the main one is b - first_entry.
  std::int64_t first_entry = 0;
  /// Outputs below it in both runs may differ in bits: there the other run rounds elsewhere.
  double smallest = 0;
  bool* spared = nullptr;          ///< Becomes true where some did.
  std::int64_t* shared = nullptr;  ///< Grows by the queries that are compared.
};

/// Where two runs differ: the sentence, and the place in the main run.
struct Difference {
  std::string sentence;
  shrinkers::Hint hint;
  double ratio = 0;  ///< Difference over the allowed one; infinite where bits are promised.
};

/// Compares the outputs of every query that both runs answered, from step `first_step` of the main
/// run on. A query is named by its entry, position and generation, and where a step asks other
/// queries than its tokens by the length it sees as well. Where `bitwise` every bit counts, those
/// of NaN too, and intermediates (StepResult::qk) are compared as well, key by key; else
/// |a - b| <= 2 * bound.
std::optional<Difference> compare_outputs(Case& main, const OtherRun& other, bool bitwise,
                                          std::size_t first_step = 0);

/// Compares the rows after step `step` of the main run with those after `other_step`, for every
/// position that is resident in both. Entries that the other run does not have are passed over.
/// Where not `bitwise`, rows that a target computes or quantises may differ as far as both hold
/// content of the token.
std::optional<Difference> compare_rows(Case& main, const OtherRun& other, std::size_t step,
                                       std::size_t other_step, bool bitwise = true);

}  // namespace kvcheck::properties
