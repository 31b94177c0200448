// kvcheck bench: times of the own kernels as ratios to their peers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "properties/commands/command.h"

namespace kvcheck::properties {

struct BenchOptions {
  std::string target;              ///< Own target; empty = cpu-flash, else cpu-naive.
  std::vector<std::string> peers;  ///< Names, or "none"; empty = all.
  std::vector<std::string> rows;   ///< Patterns of row ids; empty = all.
  bool quick = false;              ///< Some rows, and less time for each.
  std::optional<double> seconds;   ///< In all; empty = 2 s for each row and peer, quick 0.5 s.
  bool list = false;               ///< The ids of the rows alone.
  bool json = false;
  std::string html;  ///< Write the page to this file.
  std::string from;  ///< A stored record instead of a measurement.
};

/// Exit code 1 where a timed output was wrong, 2 where nothing could be measured. A goal that is
/// missed is shown and is no failure: times depend on the machine.
int bench_command(const BenchOptions& options, CommandContext& context);

}  // namespace kvcheck::properties
