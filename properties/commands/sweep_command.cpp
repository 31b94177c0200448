// The sweep: targets for every worker, progress, one saved scenario for each cause.
#include "properties/commands/sweep_command.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/registry.h"
#include "properties/commands/sweep_words.h"
#include "properties/run_folder.h"
#include "shrinkers/corpus.h"

namespace kvcheck::properties {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostWorkers = 256;
/// Causes whose first scenario is saved.
constexpr std::size_t kMostSaved = 16;

/// Bad usage: one message, exit code 254.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A target that is known and cannot run here: nothing is decided.
class NotAvailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

const Grid& chosen_grid(const std::string& name) {
  if (const Grid* grid = find_grid(name)) return *grid;
  std::string known;
  for (const Grid& grid : grids()) known += (known.empty() ? "" : ", ") + grid.name;
  throw UsageError(fmt::format("{}: there is no such grid; there are {}", name, known));
}

TargetPointer make(const std::string& name, const kernels::RegistryOptions& registry) {
  auto made = kernels::make_target(name, registry);
  if (const auto* unavailable = std::get_if<kernels::Unavailable>(&made)) {
    if (unavailable->unknown) throw UsageError(unavailable->reason);
    throw NotAvailable(fmt::format("{}: {}", name, unavailable->reason));
  }
  return std::get<TargetPointer>(std::move(made));
}

std::vector<WorkerTargets> make_targets(const SweepOptions& options) {
  if (options.workers < 0 || options.workers > kMostWorkers) {
    throw UsageError(
        fmt::format("--workers {}: must be between 1 and {}; leave it out for one "
                    "for each core",
                    options.workers, kMostWorkers));
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  auto registry = kernels::RegistryOptions::from_environment();
  registry.time_limit =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.case_seconds * 1000));
  std::vector<WorkerTargets> targets;
  for (int i = 0; i < (options.workers > 0 ? options.workers : cores); ++i) {
    targets.push_back({make(options.target, registry),
                       options.against.empty() ? nullptr : make(options.against, registry)});
  }
  return targets;
}

/// One line that is redrawn on a terminal, plain lines now and then elsewhere.
class SweepLine {
 public:
  SweepLine(CommandContext& context, bool quiet, std::string what)
      : context_(context), quiet_(quiet), what_(std::move(what)) {}

  void show(const SweepProgress& progress) {
    const double pause = context_.err_is_terminal ? 0.2 : 10;
    if (quiet_ || seconds_since(shown_) < pause) return;
    shown_ = Clock::now();
    if (phase_ != progress.phase) {
      phase_ = progress.phase;
      started_ = shown_;
      return;
    }
    const double rate =
        static_cast<double>(progress.done) / std::max(1e-3, seconds_since(started_));
    const double left = static_cast<double>(progress.of - progress.done) / std::max(rate, 1e-3);
    const std::string text =
        fmt::format("{}: {} {} of {}, {:.0f}/s, {} diverge, {:.0f} s left", what_, progress.phase,
                    with_commas(progress.done), with_commas(progress.of), rate,
                    with_commas(progress.diverge), left);
    if (context_.err_is_terminal) {
      context_.err << "\r\033[K" << text << std::flush;
      drawn_ = true;
    } else {
      context_.err << text << "\n" << std::flush;
    }
  }

  void erase() {
    if (drawn_) context_.err << "\r\033[K" << std::flush;
    drawn_ = false;
  }

 private:
  CommandContext& context_;
  bool quiet_;
  bool drawn_ = false;
  std::string what_, phase_ = "judging";
  Clock::time_point started_ = Clock::now(), shown_ = started_;
};

/// The first scenario of a cause, as `replay` takes it.
void save_first(const SweepOptions& options, const SweepGroup& group, SweepRecord& record) {
  record.files.emplace_back();
  record.commands.emplace_back();
  if (group.breaker == Breaker::neither || record.files.size() > kMostSaved) return;
  shrinkers::CorpusEntry entry;
  entry.scenario = record.grid.at(group.first).scenario;
  entry.property = group.property;
  entry.target = group.breaker == Breaker::against ? options.against : options.target;
  entry.kind = to_string(group.kind);
  entry.summary = group.text;
  entry.note = fmt::format("Configuration {} of the grid {}.", group.first, record.grid.name);
  const bool program = entry.target.starts_with("exec:");
  const std::string named = program ? " --target " + entry.target : "";
  // A file never names a program.
  if (program) entry.target.clear();
  const auto file = shrinkers::save(entry, Store::at(options.out).failing());
  record.files.back() = file.string();
  record.commands.back() = fmt::format("kvcheck replay {}{}{}", file.stem().string(), named,
                                       options.out.empty() ? "" : " --out " + options.out);
}

int exit_code_of(const SweepResult& result) {
  std::int64_t known = 0;
  for (const auto& [entry, count] : result.known) known += count;
  if (result.diverge > known) return kCounterexample;
  if (result.interrupted || result.errored > 0 || result.agree == 0) return kUndecided;
  return kHeld;
}

int run(const SweepOptions& options, CommandContext& context) {
  const Grid& grid = chosen_grid(options.grid);
  if (!(options.case_seconds > 0)) throw UsageError("--case-timeout: must be above 0");
  const std::vector<KnownFinding> known = load_known(known_folder());
  auto targets = make_targets(options);
  SweepRecord record{grid,
                     options.target,
                     targets[0].target->capabilities().version,
                     options.against,
                     "",
                     {},
                     0,
                     {},
                     {}};
  if (targets[0].against) record.against_version = targets[0].against->capabilities().version;
  Workers workers(std::move(targets), context.interrupted);
  if (!options.quiet) {
    context.err << fmt::format("{}: {} configurations, {} worker{}\n", grid.name,
                               with_commas(grid.count), workers.count(),
                               workers.count() == 1 ? "" : "s");
  }
  SweepLine line(context, options.quiet, fmt::format("{} on {}", grid.name, options.target));
  const auto start = Clock::now();
  record.result = sweep(
      grid, workers, !options.against.empty(),
      [&](const SweepProgress& progress) { line.show(progress); }, known);
  record.seconds = seconds_since(start);
  line.erase();
  for (const SweepGroup& group : record.result.groups) save_first(options, group, record);
  if (options.json) {
    context.out << sweep_json(record).dump(1) << "\n";
  } else {
    context.out << sweep_text(record);
  }
  return exit_code_of(record.result);
}

}  // namespace

int sweep_command(const SweepOptions& options, CommandContext& context) {
  try {
    return run(options, context);
  } catch (const UsageError& error) {
    context.err << "kvcheck sweep: " << error.what() << "\n";
    return kBadUsage;
  } catch (const NotAvailable& error) {
    context.err << "kvcheck sweep: " << error.what() << "\n";
    return kUndecided;
  }
}

}  // namespace kvcheck::properties
