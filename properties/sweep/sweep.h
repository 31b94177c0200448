// A sweep: every configuration of a grid on one target, or on two side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/wrong_models.h"
#include "properties/known_findings.h"
#include "properties/sweep/cells.h"
#include "properties/sweep/outcome.h"
#include "properties/sweep/workers.h"

namespace kvcheck::properties {

/// Which of two targets breaks the contract where they differ.
enum class Breaker : std::uint8_t { neither, target, against, both };
std::string_view to_string(Breaker breaker);

/// Diverging configurations of one cause, and what they have in common.
struct SweepGroup {
  std::string property;  ///< Of the first one; empty where only bits differ.
  Kind kind = Kind::over_bound;
  Breaker breaker = Breaker::target;
  const model::WrongModel* model = nullptr;  ///< The reading that explains all of them, if any.
  const KnownFinding* known = nullptr;       ///< The entry of the ledger that explains all of them.
  /// Of a group that neither explains: what comes nearest on its first configuration.
  std::string nearest;
  double explained_ratio = 0;          ///< Largest bound ratio under it.
  std::int64_t asked_elsewhere = 0;    ///< Agreeing configurations it was held against.
  std::int64_t differs_elsewhere = 0;  ///< Of these it would have changed.
  double ratio = 0;        ///< Largest bound ratio, of two targets that of their difference.
  std::string text;        ///< Of the first one.
  std::int64_t first = 0;  ///< Its index.
  Cell cell;
};

struct SweepResult {
  std::int64_t configurations = 0;  ///< Of the grid.
  std::int64_t done = 0;
  std::int64_t agree = 0, diverge = 0, refused = 0, errored = 0;
  std::int64_t explained = 0;  ///< Of those that diverge: by a reading or entry.
  std::map<const KnownFinding*, std::int64_t> known;  ///< Of those that diverge, by entry.
  double max_ratio = 0;                               ///< Of those that agree.
  std::map<std::string, std::int64_t> refusals;       ///< Reasons, and how often.
  std::string first_error;
  std::vector<SweepGroup> groups;  ///< Largest first.
  Cell all;                        ///< Of everything that diverges.
  bool interrupted = false;

  // Of two targets: where each breaks the contract.
  std::int64_t target_breaks = 0, against_breaks = 0;
  std::int64_t both_alike_break = 0;  ///< Same bits, and they break the contract.
};

/// What is going on, for a progress line.
struct SweepProgress {
  const char* phase = "";  ///< "judging", "explaining".
  std::int64_t done = 0, of = 0, diverge = 0;
};

/// The same result for any number of workers. Of one target, `known` says which entries of the
/// ledger explain what diverges; the result refers to them. With `against` the two targets are
/// compared bit for bit: agree then means equal, and what breaks the contract is counted besides.
SweepResult sweep(const Grid& grid, Workers& workers, bool against,
                  const std::function<void(const SweepProgress&)>& watch = nullptr,
                  std::span<const KnownFinding> known = {});

}  // namespace kvcheck::properties
