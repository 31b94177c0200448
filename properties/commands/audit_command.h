// kvcheck audit: the power of the suite as a kill matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/commands/command.h"

namespace kvcheck::properties {

struct AuditCommandOptions {
  std::vector<std::string> targets;  ///< Faults of these targets alone; "model" = wrong models.
  std::vector<std::string> faults;   ///< With or without the target's name.
  std::int64_t context = 0;
  std::int64_t scenarios = 0;
  double seconds = 20;
  std::uint64_t seed = 1;
  int workers = 0;
  bool row = false;
  bool random_only = false;
  bool json = false;
  bool quiet = false;
};

/// Exit code: 0 all faults killed and no false alarm, 1 a survivor or a false alarm, 2 interrupted,
/// 254 an unknown target or fault.
int audit_command(const AuditCommandOptions& options, CommandContext& context);

}  // namespace kvcheck::properties
