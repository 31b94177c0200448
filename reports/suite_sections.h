// The sections of a page that speak of the whole run.
#pragma once

#include <string>
#include <vector>

#include "reports/html_writer.h"
#include "reports/run_summary.h"

namespace kvcheck::reports {

/// Verdict, and for the first finding what broke, where, and how to replay it.
Element hero(const properties::RunRecord& record, const RunSummary& run,
             const std::vector<std::string>& finding_ids);

/// One row per property and target; what is not green comes first and is open.
/// Each of its two tables holds at most `max_rows`.
Element property_section(const properties::RunRecord& record,
                         const std::vector<std::string>& finding_ids, std::size_t detailed,
                         std::size_t max_rows);

/// Findings beyond the first `detailed`, one row each; nothing to show gives an empty element.
Element further_findings(const properties::RunRecord& record,
                         const std::vector<std::string>& finding_ids, std::size_t detailed);

Element error_section(const properties::RunRecord& record);
Element coverage_section(const properties::RunRecord& record, std::size_t max_rows);
Element provenance_section(const properties::RunRecord& record);
Element reading_section();

}  // namespace kvcheck::reports
