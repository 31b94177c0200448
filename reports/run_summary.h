// A run in one sentence and a few counts; the page and the terminal text say the same.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "properties/run_record.h"

namespace kvcheck::reports {

/// A check is one property on one target.
struct RunSummary {
  properties::Verdict verdict = properties::Verdict::skipped;  ///< passed where some passed and
                                                               ///< the rest was skipped.
  std::array<std::int64_t, 5> checks{};                        ///< By verdict.
  std::string sentence;              ///< "1 of 14 checks broke the contract, on ort-cpu."
  std::vector<std::string> remarks;  ///< Interrupted, findings without a check, ...

  std::int64_t count(properties::Verdict verdict_) const {
    return checks[static_cast<std::size_t>(verdict_)];
  }
};

RunSummary summarise(const properties::RunRecord& record);

/// Indices of the findings of one property on one target.
std::vector<std::size_t> findings_of(const properties::RunRecord& record,
                                     const properties::PropertyRecord& property);

/// How sure a finding is and what it took: "Shrunk in 57 evaluations. Seen in 41 scenarios ...".
std::string finding_facts(const properties::FindingRecord& finding);

}  // namespace kvcheck::reports
