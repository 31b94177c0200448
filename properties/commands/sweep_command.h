// kvcheck sweep: an exhaustive grid on one target, or on two side by side.
#pragma once

#include <string>

#include "properties/commands/command.h"

namespace kvcheck::properties {

struct SweepOptions {
  std::string grid;
  std::string target;
  std::string against;       ///< Empty = one target.
  int workers = 0;           ///< 0 = one for each core.
  double case_seconds = 10;  ///< A foreign target may take for one request.
  std::string out;           ///< Folder of the corpus; empty = as `run` has it.
  bool json = false;
  bool quiet = false;
};

int sweep_command(const SweepOptions& options, CommandContext& context);

}  // namespace kvcheck::properties
