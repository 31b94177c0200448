// The command `serve`: an own target for a tool at the other end of the standard streams.
#pragma once

#include <string>

#include "properties/commands/command.h"

namespace kvcheck::properties {

struct ServeOptions {
  std::string target;  ///< "cpu-flash", "cpu-naive+FAULT", "cuda": one that is compiled in.
};

/// Answers the requests of kernels/adapters/README.md on the standard input until they end. The
/// standard output is for frames alone; what is printed goes to standard error.
///
/// Returns 0, or 1 when the target or a request broke, 2 when the target cannot run here, 254 when
/// there is no such target or a terminal is where frames should be.
int serve_command(const ServeOptions& options, CommandContext& context);

}  // namespace kvcheck::properties
