// Reports: from a run record to a page, terminal text and JUnit XML. Pure functions: no clock, no
// network, no locale; the same record gives the same bytes.
#pragma once

#include <string>

#include "properties/run_record.h"

namespace kvcheck::reports {

/// One self-contained HTML page, complete without script, no external reference of any kind.
std::string html_page(const properties::RunRecord& record);

/// The table and the findings for a terminal, at most 100 columns; colour only when asked.
std::string text_report(const properties::RunRecord& record, bool colour);

/// One test case per property and target.
std::string junit_xml(const properties::RunRecord& record);

}  // namespace kvcheck::reports
