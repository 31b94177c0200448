// kvcheck run: the property suite on the targets that this machine can run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/commands/command.h"

namespace kvcheck::properties {

struct RunOptions {
  std::vector<std::string> targets;     ///< Empty = every available one.
  std::vector<std::string> properties;  ///< Ids; empty = all.
  std::vector<std::string> focus;       ///< gqa-block, gqa-full, attention, nonpad; empty = all.
  std::int64_t cases = 0;               ///< Random cases for each target; 0 = by time.
  double seconds = 0;                   ///< In all; 0 = 20 for each target, unless cases is given.
  double case_seconds = 10;             ///< A foreign target may take for one request.
  double shrink_seconds = 60;
  std::string seed;  ///< Decimal; empty = drawn from the system.
  std::string out;   ///< Folder of runs and corpus.
  bool json = false, quiet = false;
};

int run_command(const RunOptions& options, CommandContext& context);

/// Exit code that a record stands for.
int exit_code_of(const RunRecord& record);

}  // namespace kvcheck::properties
