// Takes the streams, makes the target, and serves it.
#include "properties/commands/serve_command.h"

#include <csignal>
#include <memory>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include "kernels/process/serve.h"
#include "kernels/registry.h"

namespace kvcheck::properties {

int serve_command(const ServeOptions& options, CommandContext& context) {
  if (isatty(STDIN_FILENO) != 0 || context.out_is_terminal) {
    context.err << fmt::format(
        "kvcheck: serve speaks with a program, not with a person: frames on standard input and "
        "output (kernels/adapters/README.md). To judge the target, run\n"
        "  kvcheck run --target {}\n",
        options.target);
    return kBadUsage;
  }
  // Nobody waits for a clean end: the other side ends by closing the input.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  const kernels::FrameStreams streams = kernels::take_standard_streams();
  auto made = kernels::make_own_target(options.target);
  if (const auto* unavailable = std::get_if<kernels::Unavailable>(&made)) {
    context.err << "kvcheck: " << unavailable->reason << "\n";
    return unavailable->unknown ? kBadUsage : kUndecided;
  }
  return kernels::serve(*std::get<std::unique_ptr<kernels::Target>>(made), streams);
}

}  // namespace kvcheck::properties
