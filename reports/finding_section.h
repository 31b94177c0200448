// The section of one finding: what happened, how to see it again, and the evidence.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/case_view.h"
#include "reports/html_writer.h"

namespace kvcheck::reports {

/// How much of a long case one section shows.
struct SectionLimits {
  std::size_t timeline_steps = 48, table_steps = 48, entries = 2;
};

/// Ids "finding-HASH", made unique where two findings share a case.
std::vector<std::string> finding_ids(const properties::RunRecord& record);

/// `id` is both the id of the section and the prefix of every id in it.
Element finding_section(const properties::RunRecord& record, std::size_t index,
                        const std::string& id, bool open, const SectionLimits& limits);

/// Replay command with a copy button, and the case as a file; `with_case` false leaves it out.
Element replay_block(const properties::FindingRecord& finding, const std::string& id,
                     bool with_case);

/// Property, target, kind and element type.
Element signature_chips(const properties::FindingRecord& finding);

/// The picture that shows the divergence at a glance; empty for a crash and its like.
std::optional<Element> glance(const properties::FindingRecord& finding, const CaseView& view,
                              const std::string& prefix);

}  // namespace kvcheck::reports
