// kvcheck report: pages, JUnit XML and terminal text from stored records alone.
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "model/scenario_json.h"
#include "properties/commands/command.h"
#include "properties/run_folder.h"

namespace kvcheck::properties {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string html, junit, out;
};

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

}  // namespace

void add_report_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Make the page from stored runs alone");
  command->add_option("runs", options->runs, "Run folders, run.json files, or last")->required();
  command->add_option("--html", options->html, "Write the page to this file");
  command->add_option("--junit", options->junit, "Write JUnit XML to this file");
  command->add_option("--out", options->out, "Folder of runs (default: .kvcheck)");
  command->footer(
      "Example: kvcheck report last --html page.html --junit results.xml\n"
      "Without --html and --junit the report is printed as text.");
  command->callback([options, &context] { context.exit_code = report_command(*options, context); });
}

}  // namespace kvcheck::properties
