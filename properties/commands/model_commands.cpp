// The sub-commands that ask the model alone: expect and timeline.
#include <CLI/CLI.hpp>

#include "properties/commands/command.h"
#include "properties/commands/expect_command.h"
#include "properties/commands/timeline_command.h"

namespace kvcheck::properties {

void add_timeline_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<TimelineOptions>();
  CLI::App* command = app.add_subcommand("timeline", "Print the layout table of a windowed cache");
  command->add_option("--capacity", options->capacity, "Rows of the buffer")->required();
  command->add_option("--window", options->window, "Keys that a query sees, itself included")
      ->required();
  command->add_option("--layout", options->layout, "full or block (default: block)");
  command->add_option("--steps", options->steps,
                      "Appends and rollbacks, for example 8,4,-2,1 (default: single tokens)");
  command->add_option("--until", options->until, "Last length of the table");
  command->add_flag("--json", options->json, "As JSON");
  command->footer("Example: kvcheck timeline --capacity 6 --window 4");
  command->callback([options, &context] {
    context.exit_code = timeline_command(*options, context.out, context.err);
  });
}

void add_expect_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ExpectOptions>();
  CLI::App* command =
      app.add_subcommand("expect", "Print the exact model's answer to one scenario");
  command->add_option("file", options->file, "A scenario file")->required();
  command->add_option("--step", options->step, "Only this step, from 0");
  command->add_flag("--inputs", options->inputs,
                    "Also what a target is given: q, k, v as [batch][token][head][lane]");
  command->add_flag("--json", options->json, "As JSON; outputs as strings of 30 digits");
  command->footer("Example: kvcheck expect scenario.json --json --inputs");
  command->callback([options, &context] {
    context.exit_code = expect_command(*options, context.out, context.err);
  });
}

}  // namespace kvcheck::properties
