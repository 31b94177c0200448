// Choosing the subjects, showing the result.
#include "properties/commands/audit_command.h"

#include <algorithm>

#include <fmt/format.h>

#include "properties/audit/audit_text.h"
#include "properties/run_folder.h"

namespace kvcheck::properties {
namespace {

std::string target_of(const std::string& name) { return name.substr(0, name.find('+')); }

/// "cpu-naive+window_one_wide" under "window_one_wide", its own name, or without "@row".
bool is_named(const std::string& name, const std::string& asked) {
  const std::string whole = name.substr(0, name.find('@'));
  return name == asked || whole == asked || whole.substr(whole.find('+') + 1) == asked;
}

/// Subjects that the options leave; a name that matches none goes to `unknown`.
std::vector<Subject> chosen(std::vector<Subject> subjects, const AuditCommandOptions& options,
                            std::string& unknown) {
  const auto any = [&](auto matches) {
    return std::any_of(subjects.begin(), subjects.end(), matches);
  };
  for (const std::string& target : options.targets) {
    if (!any([&](const Subject& one) { return target_of(one.name) == target; })) {
      unknown = fmt::format(
          "--target {}: no fault is planted there; `kvcheck list faults` shows "
          "all, and \"model\" stands for the wrong models",
          target);
    }
  }
  for (const std::string& fault : options.faults) {
    if (!any([&](const Subject& one) { return is_named(one.name, fault); })) {
      unknown = fmt::format("--fault {}: there is no such fault{}; `kvcheck list faults` shows all",
                            fault, options.row ? " in a single row" : "");
    }
  }
  std::erase_if(subjects, [&](const Subject& one) {
    const auto& targets = options.targets;
    const bool wanted_target = targets.empty() || std::find(targets.begin(), targets.end(),
                                                            target_of(one.name)) != targets.end();
    const bool wanted_fault =
        options.faults.empty() ||
        std::any_of(options.faults.begin(), options.faults.end(),
                    [&](const std::string& fault) { return is_named(one.name, fault); });
    return !wanted_target || !wanted_fault;
  });
  return subjects;
}

/// Every own target, or those that are audited where the options name some.
std::vector<Subject> controls_of(const std::vector<Subject>& subjects,
                                 const AuditCommandOptions& options) {
  std::vector<Subject> controls = healthy_subjects();
  if (options.targets.empty() && options.faults.empty()) return controls;
  std::erase_if(controls, [&](const Subject& control) {
    return std::none_of(subjects.begin(), subjects.end(),
                        [&](const Subject& one) { return target_of(one.name) == control.name; });
  });
  return controls;
}

}  // namespace

int audit_command(const AuditCommandOptions& options, CommandContext& context) {
  std::string unknown;
  if (options.context < 0 || options.context > 65536) {
    unknown = fmt::format("--context {}: must be between 1 and 65536", options.context);
  }
  if (!(options.seconds > 0)) {
    unknown = fmt::format("--time {}: must be above 0", options.seconds);
  }
  const auto subjects = chosen(audit_subjects(options.row, options.context), options, unknown);
  if (unknown.empty() && subjects.empty()) {
    unknown = "--target and --fault together leave no fault; name one that the target has";
  }
  if (!unknown.empty()) {
    context.err << "kvcheck audit: " << unknown << "\n";
    return kBadUsage;
  }
  AuditOptions audit;
  audit.seed = options.seed;
  audit.seconds = options.seconds;
  audit.scenarios = options.scenarios;
  audit.context = options.context;
  audit.one_row = options.row;
  audit.random_only = options.random_only;
  audit.deepen = options.targets.empty() && options.faults.empty() && options.context == 0;
  // A scenario behind a context costs many times more; the matrix stays thinner there.
  if (options.context > 0) audit.further = 2;
  audit.workers = options.workers;
  audit.corpus = regression_folder();
  audit.interrupted = context.interrupted;
  std::size_t done = 0;
  const AuditResult result =
      run_audit(subjects, controls_of(subjects, options), audit, [&](const SubjectResult& fault) {
        ++done;
        if (options.quiet) return;
        context.err << fmt::format(
            "{:>4}/{}  {:<44} {}\n", done, subjects.size(), fault.name,
            fault.killed ? fmt::format("{} scenarios, {:.3f} s", fault.scenarios, fault.seconds)
                         : "survived");
      });
  context.out << (options.json ? audit_json(result) : audit_text(result));
  if (context.interrupted && *context.interrupted) return kUndecided;
  return result.held() ? kHeld : kCounterexample;
}

}  // namespace kvcheck::properties
