// Parts that the sample records are put together from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/scenario.h"
#include "properties/run_record.h"

namespace kvcheck::reports::samples {

using model::Scenario;
using properties::EntryEvidence;
using properties::FindingRecord;
using properties::Kind;
using properties::PropertyRecord;
using properties::RunRecord;
using properties::StepEvidence;
using properties::Verdict;
using properties::VisibilityEvidence;

RunRecord run_of(std::string started);
PropertyRecord& fail(RunRecord& run, std::size_t row, Verdict verdict = Verdict::failed);
FindingRecord finding_of(const RunRecord& run, std::size_t row, Kind kind, std::string hash);
EntryEvidence entry(std::int64_t length, std::int64_t resident, std::int64_t evicted,
                    std::int64_t queries, bool staged = false);
StepEvidence step(std::string what, EntryEvidence around);
std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end);
VisibilityEvidence seen(std::int64_t position, std::vector<std::int64_t> expected,
                        std::vector<std::int64_t> observed);
Scenario attention_scenario();
Scenario windowed_scenario();

}  // namespace kvcheck::reports::samples
