// kvcheck replay: one stored scenario again.
#pragma once

#include <string>
#include <vector>

#include "properties/commands/command.h"

namespace kvcheck::properties {

struct ReplayOptions {
  std::string what;                  ///< A file, the beginning of a hash, or "last".
  std::vector<std::string> targets;  ///< Empty = the one named in the file, else every available.
  std::string out;
  std::string emit;  ///< "scenario": print the scenario instead of running it.
  bool shrink = false, explain = false, json = false;
};

int replay_command(const ReplayOptions& options, CommandContext& context);

}  // namespace kvcheck::properties
