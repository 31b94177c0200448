// kvcheck list: what there is, and why something cannot run here.
#pragma once

#include <string>

#include "properties/commands/command.h"

namespace kvcheck::properties {

struct ListOptions {
  std::string what;  ///< "targets", "properties", "grids" or "faults".
  bool json = false;
};

int list_command(const ListOptions& options, CommandContext& context);

}  // namespace kvcheck::properties
