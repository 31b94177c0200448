// Verdicts and the kinds of finding.
#pragma once

#include <optional>
#include <string_view>

namespace kvcheck::properties {

/// errored > failed > blind > skipped > passed when merged. Blind (the check could not have
/// failed) and errored (our own fault) are not green.
enum class Verdict { passed, skipped, blind, failed, errored };

constexpr Verdict merge(Verdict a, Verdict b) { return a < b ? b : a; }

/// What went wrong; with property and target it is the signature of a finding.
enum class Kind {
  leak,              ///< A key that the query may not see has weight.
  missing_key,       ///< A key that the query must see has none.
  wrong_row,         ///< A row holds another token than the contract says.
  stale_row,         ///< A row holds a token that was rolled back or evicted.
  over_bound,        ///< An output is farther from the truth than rounding can explain.
  not_finite,        ///< An output is NaN or infinite where the truth is finite.
  influence,         ///< Content that must not matter changes the output.
  split_difference,  ///< Two splits of the same tokens differ.
  rollback_difference,
  bits_difference,  ///< Equal bits are promised of two ways to run one case, and they differ.
  crash,
  hang,
  nonsense,
  defect,            ///< A data race, an access outside memory, a barrier that not all reach.
  wrongly_accepted,  ///< Took what the contract refuses.
  wrongly_refused,   ///< Refused what it claims to take.
  nondeterministic
};

std::string_view to_string(Verdict verdict);
std::string_view to_string(Kind kind);
std::optional<Verdict> verdict_from(std::string_view name);
std::optional<Kind> kind_from(std::string_view name);

}  // namespace kvcheck::properties
