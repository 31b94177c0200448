// One row per step of a case: what it did, what the contract says, what the target answered.
#pragma once

#include <string_view>

#include "reports/case_view.h"
#include "reports/html_writer.h"

namespace kvcheck::reports {

/// Rows carry ids "PREFIX-step-N" and the facts that the page's filter reads.
Element step_table(const CaseView& view, Shown shown, std::string_view prefix);

}  // namespace kvcheck::reports
