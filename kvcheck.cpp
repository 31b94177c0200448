// The front door: reads the sub-command and hands over.
#include <atomic>
#include <csignal>
#include <exception>
#include <iostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "properties/commands/command.h"
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
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  properties::CommandContext context{std::cout,
                                     std::cerr,
                                     {reports::html_page, reports::junit_xml, reports::text_report},
                                     isatty(STDERR_FILENO) != 0,
                                     isatty(STDOUT_FILENO) != 0,
                                     &interrupted,
                                     properties::kHeld};
  CLI::App app("Proves on scenarios that attention kernels keep their KV-cache contract.",
               "kvcheck");
  app.set_version_flag("--version", KVCHECK_VERSION);
  app.require_subcommand(0, 1);
  properties::add_run_command(app, context);
  properties::add_replay_command(app, context);
  properties::add_report_command(app, context);
  properties::add_expect_command(app, context);
  properties::add_timeline_command(app, context);
  properties::add_list_command(app, context);
  app.footer("Example: kvcheck run --target onnxruntime --time 60");
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) std::cout << app.help();
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? properties::kHeld : properties::kBadUsage;
  } catch (const std::exception& error) {
    std::cerr << "kvcheck: " << error.what() << "\n";
    return properties::kOwnFault;
  }
  return context.exit_code;
}
