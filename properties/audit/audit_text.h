// An audit as a table and as JSON.
#pragma once

#include <string>

#include "properties/audit/audit.h"

namespace kvcheck::properties {

/// Survivors first, then every fault by kind with what killed it, medians, what each property saw,
/// and the controls.
std::string audit_text(const AuditResult& result);

/// faults, totals, false_alarms, context, row, controls, properties.
std::string audit_json(const AuditResult& result);

/// Properties of the catalog that saw fewer than `least` faults.
std::vector<std::string> weak_properties(const AuditResult& result, std::int64_t least = 2);

}  // namespace kvcheck::properties
