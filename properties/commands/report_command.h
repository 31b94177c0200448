// kvcheck report: pages, JUnit XML and terminal text from stored records alone.
#pragma once

#include <string>
#include <vector>

#include "properties/commands/command.h"

namespace kvcheck::properties {

struct ReportOptions {
  std::vector<std::string> runs;  ///< Run folders, run.json files, or "last".
  std::string html, junit;        ///< Files to write; neither = text on standard output.
  std::string out;                ///< Folder of runs, for "last".
};

int report_command(const ReportOptions& options, CommandContext& context);

}  // namespace kvcheck::properties
