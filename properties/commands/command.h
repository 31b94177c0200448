// What every command shares: exit codes, streams, and how a record is shown.
#pragma once

#include <atomic>
#include <functional>
#include <ostream>
#include <string>

#include "properties/bench_record.h"
#include "properties/run_record.h"

namespace kvcheck::properties {

/// Exit codes of the tool.
enum ExitCode : int {
  kHeld = 0,
  kCounterexample = 1,
  kUndecided = 2,
  kBadUsage = 254,
  kOwnFault = 255
};

/// How a record becomes something to look at; given by the front door, since reports are built on
/// records and not the other way round.
struct Renderers {
  std::function<std::string(const RunRecord&)> html;
  std::function<std::string(const RunRecord&)> junit;
  std::function<std::string(const RunRecord&, bool colour)> text;
  std::function<std::string(const BenchRecord&)> bench_html{};
  std::function<std::string(const BenchRecord&, bool colour)> bench_text{};
};

/// Results go to `out`, everything else to `err`.
struct CommandContext {
  std::ostream& out;
  std::ostream& err;
  Renderers renderers;
  bool err_is_terminal = false;
  bool out_is_terminal = false;
  /// Set by Ctrl-C; long commands end at the next case.
  const std::atomic<bool>* interrupted = nullptr;
  int exit_code = kHeld;
};

}  // namespace kvcheck::properties
