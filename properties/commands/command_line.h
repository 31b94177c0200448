// The command line of the tool.
#pragma once

#include "properties/commands/command.h"

namespace kvcheck::properties {

/// Reads the arguments, runs the command that they name, and gives the exit code of the tool.
int run_command_line(int argc, const char* const* argv, CommandContext& context);

}  // namespace kvcheck::properties
