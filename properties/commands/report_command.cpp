// Reading, joining and writing.
#include "properties/commands/report_command.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "model/scenario_json.h"
#include "properties/run_folder.h"

namespace kvcheck::properties {
namespace {

/// Several records as one: counts side by side, one list of findings.
RunRecord joined(std::vector<RunRecord> records) {
  RunRecord all = std::move(records.front());
  for (std::size_t i = 1; i < records.size(); ++i) {
    RunRecord& more = records[i];
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()),
                std::make_move_iterator(from.end()));
    };
    append(all.targets, more.targets);
    append(all.properties, more.properties);
    append(all.coverage, more.coverage);
    append(all.errors, more.errors);
    append(all.findings, more.findings);
    append(all.notes, more.notes);
    all.notes.push_back(
        fmt::format("joined with the run of {} (seed {})", more.started, more.seed));
    all.scenarios += more.scenarios;
    all.verdicts += more.verdicts;
    all.seconds += more.seconds;
  }
  return all;
}

bool write(const std::string& file, const std::string& text, CommandContext& context) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) context.err << "kvcheck report: cannot write " << file << "\n";
  return static_cast<bool>(out);
}

}  // namespace

int report_command(const ReportOptions& options, CommandContext& context) {
  std::vector<RunRecord> records;
  try {
    for (const std::string& run : options.runs) {
      const auto last = run == "last" ? Store::at(options.out).last_run() : std::nullopt;
      if (run == "last" && !last) {
        context.err << "kvcheck report: there is no last run; `kvcheck run` makes one\n";
        return kBadUsage;
      }
      records.push_back(read_record(last ? *last : std::filesystem::path(run)));
    }
  } catch (const model::ScenarioError& error) {
    context.err << "kvcheck report: " << error.what() << "\n";
    return kBadUsage;
  }
  const RunRecord record = joined(std::move(records));
  bool written = true;
  if (!options.html.empty())
    written &= write(options.html, context.renderers.html(record), context);
  if (!options.junit.empty()) {
    written &= write(options.junit, context.renderers.junit(record), context);
  }
  if (options.html.empty() && options.junit.empty()) {
    context.out << context.renderers.text(record, context.out_is_terminal);
  }
  return written ? kHeld : kOwnFault;
}

}  // namespace kvcheck::properties
