// The command line: every command and option in one place.
#include "properties/commands/command_line.h"

#include <exception>
#include <memory>

#include <CLI/CLI.hpp>

#include "properties/commands/audit_command.h"
#include "properties/commands/bench_command.h"
#include "properties/commands/expect_command.h"
#include "properties/commands/list_command.h"
#include "properties/commands/replay_command.h"
#include "properties/commands/report_command.h"
#include "properties/commands/run_command.h"
#include "properties/commands/serve_command.h"
#include "properties/commands/sweep_command.h"
#include "properties/commands/timeline_command.h"

namespace kvcheck::properties {
namespace {

void add_run(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run the property suite and write a page");
  command->add_option("--target", options->targets,
                      "Target to judge, may be repeated (default: every one that can run here)");
  command->add_option("--property", options->properties, "Property to judge, may be repeated");
  command->add_option("--focus", options->focus,
                      "Draw only gqa-block, gqa-full, attention or nonpad scenarios");
  command->add_option("--context", options->context,
                      "Length that the judged queries have about (default: any, mostly short)");
  command
      ->add_option("--phases", options->phases,
                   "named, corpus, lattice, random, targeted (default: all)")
      ->delimiter(',');
  command->add_option("--case", options->files, "Scenario file to judge first, may be repeated");
  command->add_option("--cases", options->cases, "Random scenarios for each target");
  command->add_option("--time", options->seconds, "Seconds in all (default: 20 for each target)");
  command->add_option("--case-timeout", options->case_seconds,
                      "Seconds that a target may take for one request (default: 10)");
  command->add_option("--shrink-time", options->shrink_seconds,
                      "Seconds for shrinking one finding (default: 60)");
  command->add_option("--shrink-evals", options->shrink_evaluations,
                      "Scenarios tried to shrink one finding (default: 2000)");
  command->add_option("--workers", options->workers,
                      "Scenarios at the same time (default: as many as there are cores)");
  command->add_option("--seed", options->seed, "Seed of the run (default: a new one, printed)");
  command->add_option("--resume", options->resume,
                      "Go on with a run that was killed: its folder, or last");
  command->add_option("--out", options->out, "Folder of runs and corpus (default: .kvcheck)");
  command->add_flag("--observations", options->observations,
                    "Write a line of JSON for each scenario to observations.jsonl");
  command->add_flag("--json", options->json, "The run record on standard output");
  command->add_flag("--quiet", options->quiet, "No progress");
  command->footer(
      "Example: kvcheck run --target onnxruntime --time 60 --seed 1\n"
      "Exit code: 0 held, 1 counterexample, 2 undecided, 254 bad usage, 255 own fault");
  command->callback([options, &context] { context.exit_code = run_command(*options, context); });
}

void add_replay(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand("replay", "Run one stored scenario again");
  command->add_option("what", options->what, "A scenario file, the beginning of a hash, or last")
      ->required();
  command->add_option("--target", options->targets, "Target (default: the one in the file)");
  command->add_option("--out", options->out, "Folder of runs and corpus (default: .kvcheck)");
  command->add_option("--emit", options->emit, "Print it instead: scenario")
      ->check(CLI::IsMember({"scenario"}));
  command->add_flag("--shrink", options->shrink, "Shrink it further");
  command->add_flag("--explain", options->explain, "Say which fields matter, and why it fails");
  command->add_flag("--json", options->json, "outcome, property, target, kind, summary as JSON");
  command->footer(
      "Example: kvcheck replay last --explain\n"
      "Says: reproduced, fails differently, passes now, or not valid.\n"
      "Exit code: 1 reproduced or fails differently, 0 passes now, 2 not judged, "
      "254 not valid or not found");
  command->callback([options, &context] { context.exit_code = replay_command(*options, context); });
}

void add_report(CLI::App& app, CommandContext& context) {
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

void add_expect(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ExpectOptions>();
  CLI::App* command =
      app.add_subcommand("expect", "Print the exact model's answer to one scenario");
  command->add_option("file", options->file, "A scenario file")->required();
  command->add_option("--step", options->step, "Only this step, from 0");
  command->add_flag("--inputs", options->inputs,
                    "Also what a target is given: q, k, v as [batch][token][head][lane]");
  command->add_flag("--readings", options->readings,
                    "Also which wrong readings of the contract the scenario would see");
  command->add_flag("--json", options->json, "As JSON; outputs as strings of 30 digits");
  command->footer(
      "Example: kvcheck expect scenario.json --json --inputs\n"
      "A FILE that ends in .jsonl holds a scenario by the line; with --json each is answered.");
  command->callback([options, &context] {
    context.exit_code = expect_command(*options, context.out, context.err);
  });
}

void add_timeline(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<TimelineOptions>();
  CLI::App* command = app.add_subcommand("timeline", "Print the layout table of a cache");
  command->add_option("--capacity", options->capacity,
                      "Rows of the buffer (full: may be left out)");
  command->add_option("--window", options->window,
                      "Keys that a query sees, itself included (full and paged: may be left out)");
  command->add_option("--layout", options->layout,
                      "full, block, min_overflow, ring, sinks or paged (default: block)");
  command->add_option("--sinks", options->sinks, "Layout sinks: first positions that stay");
  command->add_option("--page-size", options->page_size, "Layout paged: rows of one page");
  command->add_option("--steps", options->steps,
                      "Appends and rollbacks, for example 8,4,-2,1 (default: single tokens)");
  command->add_option("--until", options->until, "Last length of the table");
  command->add_flag("--json", options->json, "As JSON");
  command->footer(
      "Example: kvcheck timeline --capacity 6 --window 4\n"
      "Example: kvcheck timeline --layout ring --capacity 8 --window 4 --steps 10,-3,5");
  command->callback([options, &context] {
    context.exit_code = timeline_command(*options, context.out, context.err);
  });
}

void add_sweep(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command =
      app.add_subcommand("sweep", "Judge every configuration of an exhaustive grid");
  command->add_option("grid", options->grid, "A grid; `kvcheck list grids` shows all")->required();
  command->add_option("--target", options->target, "Target to judge")->required();
  command->add_option("--against", options->against,
                      "Compare with this target bit for bit, say another release");
  command->add_option("--workers", options->workers,
                      "Threads, each with a target of its own (default: one for each core)");
  command->add_option("--case-timeout", options->case_seconds,
                      "Seconds that a foreign target may take for one request (default: 10)");
  command->add_option("--out", options->out, "Folder of runs and corpus (default: .kvcheck)");
  command->add_flag("--json", options->json, "The counts and cells as JSON");
  command->add_flag("--quiet", options->quiet, "No progress");
  command->footer(
      "Example: kvcheck sweep causal-past --target onnxruntime\n"
      "Example: kvcheck sweep windowed-small --target onnxruntime --against onnxruntime@1.31.1\n"
      "Exit code: 0 all agree, 1 some diverge, 2 undecided, 254 bad usage, 255 own fault");
  command->callback([options, &context] { context.exit_code = sweep_command(*options, context); });
}

void add_bench(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "Time the own kernels against their peers, as paired ratios");
  command->add_option("--target", options->target,
                      "Own target to time (default: cpu-flash, without it cpu-naive)");
  command
      ->add_option("--peer,--peers", options->peers,
                   "onnxruntime, openvino, jax or none; may be repeated (default: all)")
      ->delimiter(',');
  command
      ->add_option("--rows", options->rows,
                   "Rows whose id matches, with * and ?; may be repeated (default: all)")
      ->delimiter(',');
  command->add_flag("--quick", options->quick, "A few rows, and less time for each");
  command->add_option("--time", options->seconds,
                      "Seconds of timing in all (default: 2 for each row and peer)");
  command->add_flag("--list", options->list, "Only the ids of the rows");
  command->add_flag("--json", options->json, "The record on standard output");
  command->add_option("--html", options->html, "Write the page to this file");
  command->add_option("--from", options->from, "Show a stored record instead of measuring");
  command->footer(
      "Example: kvcheck bench --rows 'decode.f32.*' --peer onnxruntime --html bench.html\n"
      "Example: kvcheck bench --from bench.json --html bench.html\n"
      "One thread against one thread, in turns; a missed goal is shown and is no failure.\n"
      "Exit code: 0 measured, 1 a timed output was wrong, 2 nothing could be measured");
  command->callback([options, &context] { context.exit_code = bench_command(*options, context); });
}

void add_audit(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<AuditCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "audit", "Measure the power of the suite on planted faults and wrong models");
  command->add_option("--target", options->targets,
                      "Faults of this target alone, model = wrong models; may be repeated");
  command->add_option("--fault", options->faults, "This fault alone; may be repeated");
  command->add_option("--context", options->context,
                      "Judge behind a past of about so many tokens (default: as a run draws it)");
  command->add_flag("--row", options->row, "Faults made in single rows of a single head");
  command->add_flag("--random", options->random_only, "Random draws alone: no corpus, no lattice");
  command->add_option("--seed", options->seed, "Seed of the scenarios (default: 1)");
  command->add_option("--time", options->seconds, "Seconds for each fault (default: 20)");
  command->add_option("--cases", options->scenarios, "Scenarios for each fault at most");
  command->add_option("--workers", options->workers, "Faults at a time (default: one per core)");
  command->add_flag("--json", options->json, "As JSON");
  command->add_flag("--quiet", options->quiet, "No progress");
  command->footer(
      "Example: kvcheck audit --context 4096 --json\n"
      "A fault is killed by a property that names its kind; targets without a fault must pass.\n"
      "Exit code: 0 all killed and no false alarm, 1 a survivor or a false alarm, 2 interrupted");
  command->callback([options, &context] { context.exit_code = audit_command(*options, context); });
}

void add_list(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command =
      app.add_subcommand("list", "Show targets, properties, grids or planted faults");
  command->add_option("what", options->what, "targets, properties, grids or faults")
      ->required()
      ->check(CLI::IsMember({"targets", "properties", "grids", "faults"}));
  command->add_flag("--json", options->json, "As JSON");
  command->footer("Example: kvcheck list targets");
  command->callback([options, &context] { context.exit_code = list_command(*options, context); });
}

void add_serve(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand(
      "serve", "Let another program ask an own target, on standard input and output");
  command
      ->add_option("target", options->target,
                   "An own target, with or without a planted fault; `kvcheck list targets` shows "
                   "all")
      ->required();
  command->footer(
      "Example: kvcheck serve cpu-flash\n"
      "A script with the lines `#!/bin/sh` and `exec kvcheck serve cpu-flash` is judged by\n"
      "`kvcheck run --target exec:./script`, as any program that speaks the protocol.\n"
      "Frames alone go to standard output; kernels/adapters/README.md describes them.\n"
      "Exit code: 0 the requests have ended, 1 the target or a request broke, 2 it cannot run "
      "here,\n"
      "254 there is no such target, or a terminal where frames should be");
  command->callback([options, &context] { context.exit_code = serve_command(*options, context); });
}

}  // namespace

int run_command_line(int argc, const char* const* argv, CommandContext& context) {
  CLI::App app("Proves on scenarios that attention kernels keep their KV-cache contract.",
               "kvcheck");
  app.set_version_flag("--version", KVCHECK_VERSION);
  app.require_subcommand(0, 1);
  add_run(app, context);
  add_replay(app, context);
  add_report(app, context);
  add_expect(app, context);
  add_timeline(app, context);
  add_sweep(app, context);
  add_bench(app, context);
  add_audit(app, context);
  add_list(app, context);
  add_serve(app, context);
  app.footer(
      "Example: kvcheck run --target onnxruntime --time 60\n"
      "`./kvcheck test` of the launcher builds and runs all tests.");
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) context.out << app.help();
  } catch (const CLI::ParseError& error) {
    return app.exit(error, context.out, context.err) == 0 ? kHeld : kBadUsage;
  } catch (const std::exception& error) {
    context.err << "kvcheck: " << error.what() << "\n";
    return kOwnFault;
  }
  return context.exit_code;
}

}  // namespace kvcheck::properties
