// Judging one case by every property, for a tally.
#pragma once

#include <string>

#include "properties/tally.h"

namespace kvcheck::properties {

/// Says which entry of the ledger of known findings explains a failure; empty = none does.
using Explains = std::function<std::string(Case&, const Property&, const Judgement&)>;

struct JudgeOptions {
  const std::vector<const Property*>* properties = nullptr;
  Explains known;             ///< May be empty.
  bool observations = false;  ///< Write a line of JSON for each case.
  std::string run_start;      ///< For those lines.
  bool candidates = false;    ///< Keep what the targeted phase may start from.
  /// Of each of coverage_classes() whether the target can reach it: reachable_classes().
  std::vector<bool> reachable;
};

/// Runs the scenario on the target and adds what every property says of it.
/// \pre the target claims to take the scenario
void judge_case(kernels::Target& target, const model::Scenario& scenario, const Origin& origin,
                const JudgeOptions& options, Tally& tally);

/// The judgement of one property on a fresh case; an exception becomes `errored`.
Judgement judge_fresh(kernels::Target& target, const model::Scenario& scenario,
                      const Property& property);

/// Candidates that one tally hands on.
inline constexpr std::size_t kCandidatesOfTally = 4;

}  // namespace kvcheck::properties
