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
  std::vector<std::string> phases;      ///< named, corpus, lattice, random, targeted; empty = all.
  std::vector<std::string> files;       ///< Scenario files that are judged first.
  std::int64_t cases = 0;               ///< Random cases for each target; 0 = by time.
  std::int64_t context = 0;             ///< Length that the judged queries have; 0 = any.
  double seconds = 0;                   ///< In all; 0 = 20 for each target, unless cases is given.
  double case_seconds = 10;             ///< A target may take for one request.
  double shrink_seconds = 60;
  std::int64_t shrink_evaluations = 2000;
  std::int64_t workers = 0;  ///< Cases at the same time; 0 = as many as there are cores.
  std::string seed;          ///< Decimal; empty = drawn from the system.
  std::string resume;        ///< A run folder, or last: goes on with that run.
  std::string out;           ///< Folder of runs and corpus.
  bool observations = false, json = false, quiet = false;
};

int run_command(const RunOptions& options, CommandContext& context);

/// Exit code that a record stands for.
int exit_code_of(const RunRecord& record);

}  // namespace kvcheck::properties
