// The front door: streams, signals and reports for the command line.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include "properties/commands/command_line.h"
#include "reports/bench_report.h"
#include "reports/report.h"

namespace {

std::atomic<bool> interrupted{false};

/// The first Ctrl-C ends the run cleanly, the second ends the process.
void on_interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kvcheck;
  // Own targets that run in a process of their own are served by this very program.
  setenv("KVCHECK_PROGRAM", "/proc/self/exe", 0);
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  properties::CommandContext context{std::cout,
                                     std::cerr,
                                     {reports::html_page, reports::junit_xml, reports::text_report,
                                      reports::bench_page, reports::bench_text},
                                     isatty(STDERR_FILENO) != 0,
                                     isatty(STDOUT_FILENO) != 0,
                                     &interrupted,
                                     properties::kHeld};
  return properties::run_command_line(argc, argv, context);
}
