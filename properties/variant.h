// Variants: the same case run in another way that must not change a bit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "properties/case.h"
#include "properties/execution.h"

namespace kvcheck::properties {

/// Another way to run a case.
struct Variant {
  model::Scenario scenario;  ///< With the steps of the case.
  ExecuteOptions options;
  std::string words;  ///< How it differs: "with 3 threads".
};

/// Judges a case in `count` ways, one after the other: the first failure, else passed where any way
/// passed, else skipped with the reason of the last one; `none` = the reason where there is no way.
/// \pre the case's own execution is complete, else it is skipped
Judgement judge_each(Case& c, std::size_t count, std::string none,
                     const std::function<Judgement(std::size_t)>& judge);

/// Runs the case in each of the ways and compares it with the main run bit for bit: outputs,
/// intermediates, and the rows of the positions that both caches hold. A difference is a failure
/// of `kind`. Skipped when no variant could be compared, with the reason of the last one.
Judgement judge_variants(Case& c, const std::vector<Variant>& variants, Kind kind);

}  // namespace kvcheck::properties
