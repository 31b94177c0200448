// Rows to measure, the record of the run, and what is shown of it.
#include "properties/commands/bench_command.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/bench/peer.h"
#include "kernels/bench/rows.h"
#include "kernels/registry.h"
#include "model/scenario_json.h"
#include "properties/bench/bench_run.h"
#include "properties/machine.h"

namespace kvcheck::properties {
namespace {

using kernels::bench::Row;

constexpr double kRowSeconds = 2, kQuickRowSeconds = .5, kLeastRowSeconds = .02;

/// Bad usage: one message, exit code 254.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::vector<Row> chosen_rows(const BenchOptions& options) {
  std::vector<Row> chosen;
  std::vector<bool> used(options.rows.size());
  for (Row& row : kernels::bench::all_rows()) {
    bool wanted = options.rows.empty();
    for (std::size_t i = 0; i < options.rows.size(); ++i) {
      if (!kernels::bench::matches(options.rows[i], row.id)) continue;
      used[i] = true;
      wanted = true;
    }
    if (wanted && (row.quick || !options.quick || !options.rows.empty())) {
      chosen.push_back(std::move(row));
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    throw UsageError(
        fmt::format("--rows {}: matches no row; --list shows them all", options.rows[i]));
  }
  return chosen;
}

std::vector<std::string> chosen_peers(const BenchOptions& options) {
  const auto& known = kernels::bench::peer_names();
  if (options.peers.empty()) return known;
  if (options.peers == std::vector<std::string>{"none"}) return {};
  for (const std::string& name : options.peers) {
    if (name.starts_with("exec:")) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UsageError(fmt::format("--peer {}: is none of {}, exec:PROGRAM; none measures alone",
                                 name, fmt::join(known, ", ")));
  }
  return options.peers;
}

/// The widest own target that this build has.
std::string chosen_target(const BenchOptions& options) {
  if (!options.target.empty()) return options.target;
  for (const auto& info : kernels::list_targets(kernels::RegistryOptions::from_environment())) {
    if (info.name == "cpu-flash" && info.available) return info.name;
  }
  return "cpu-naive";
}

/// Rows times peers: what the time is shared by.
std::size_t measurements(const std::vector<Row>& rows, const std::vector<std::string>& peers) {
  std::size_t count = 0;
  for (const Row& row : rows) {
    const auto asked = std::count_if(row.peers.begin(), row.peers.end(), [&](const auto& peer) {
      return std::find(peers.begin(), peers.end(), peer.peer) != peers.end();
    });
    count += std::max<std::size_t>(1, static_cast<std::size_t>(asked));
  }
  return count;
}

double row_seconds(const BenchOptions& options, std::size_t count) {
  if (!options.seconds) return options.quick ? kQuickRowSeconds : kRowSeconds;
  if (!(*options.seconds > 0) || !std::isfinite(*options.seconds)) {
    throw UsageError(
        fmt::format("--time {}: must be a number of seconds above 0", *options.seconds));
  }
  return std::max(kLeastRowSeconds, *options.seconds / static_cast<double>(count));
}

std::string progress_line(const BenchRow& row, std::size_t at, std::size_t all) {
  std::string text = fmt::format("kvcheck bench: {}/{} {}", at, all, row.id);
  if (!std::isnan(row.ours_ms)) text += fmt::format("  {:.4g} ms", row.ours_ms);
  if (!row.peer.empty()) text += fmt::format("  against {}", row.peer);
  if (!std::isnan(row.ratio)) text += fmt::format(": {:.2f}x", row.ratio);
  if (row.noisy) text += " (noisy)";
  if (!row.why.empty()) text += fmt::format(": {}", row.why);
  return text + "\n";
}

BenchRecord measured(const BenchOptions& options, CommandContext& context) {
  const std::vector<Row> rows = chosen_rows(options);
  BenchSettings settings;
  settings.target = chosen_target(options);
  settings.peers = chosen_peers(options);
  settings.row_seconds = row_seconds(options, measurements(rows, settings.peers));
  settings.stop = [&context] { return context.interrupted && *context.interrupted; };
  auto registry = kernels::RegistryOptions::from_environment();
  registry.program.clear();  // Kernels are timed, not the pipes to another process.
  BenchRun run(settings, registry);

  BenchRecord record;
  record.tool = "kvcheck " KVCHECK_VERSION;
  record.machine = machine_text();
  record.compiler = __VERSION__;
  record.flags = KVCHECK_FLAGS;
  record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  record.load = {load_average()};
  try {
    record.target = run.target_text();
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("--target {}: {}", settings.target, error.what()));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (context.interrupted && *context.interrupted) {
      record.notes.push_back(fmt::format("interrupted after {} of {} rows", i, rows.size()));
      break;
    }
    for (BenchRow& row : run.measure(rows[i])) {
      context.err << progress_line(row, i + 1, rows.size()) << std::flush;
      record.rows.push_back(std::move(row));
    }
  }
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  record.load.push_back(load_average());
  record.growth = growth_of(record.rows);
  return record;
}

BenchRecord stored(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw UsageError(fmt::format("--from {}: cannot be read", file));
  return bench_record_from_json(text.str());
}

int exit_code(const BenchRecord& record) {
  if (record.wrong_output()) return kCounterexample;
  const bool any = std::any_of(record.rows.begin(), record.rows.end(),
                               [](const BenchRow& row) { return !std::isnan(row.ours_ms); });
  return any ? kHeld : kUndecided;
}

}  // namespace

int bench_command(const BenchOptions& options, CommandContext& context) {
  try {
    if (options.list) {
      for (const Row& row : chosen_rows(options)) context.out << row.id << "\n";
      return kHeld;
    }
    const BenchRecord record =
        options.from.empty() ? measured(options, context) : stored(options.from);
    if (options.json) {
      context.out << to_json(record);
    } else {
      context.out << context.renderers.bench_text(record, context.out_is_terminal);
    }
    if (!options.html.empty()) {
      std::ofstream page(options.html, std::ios::binary);
      page << context.renderers.bench_html(record);
      page.close();
      if (!page) {
        context.err << "kvcheck bench: cannot write " << options.html << "\n";
        return kOwnFault;
      }
    }
    return exit_code(record);
  } catch (const UsageError& error) {
    context.err << "kvcheck bench: " << error.what() << "\n";
  } catch (const model::ScenarioError& error) {
    context.err << "kvcheck bench: " << options.from << ": " << error.what() << "\n";
  }
  return kBadUsage;
}

}  // namespace kvcheck::properties
