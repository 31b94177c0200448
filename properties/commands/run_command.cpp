// The run: targets in turn, one record, one page.
#include "properties/commands/run_command.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <fstream>
#include <random>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/registry.h"
#include "properties/machine.h"
#include "properties/progress.h"
#include "properties/run_folder.h"
#include "properties/search.h"

namespace kvcheck::properties {
namespace {

constexpr double kSecondsPerTarget = 20;
/// With --cases and no --time a run still ends.
constexpr double kMostSeconds = 3600;

/// Bad usage: one message, exit code 254.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::uint64_t parse_seed(const std::string& text) {
  if (text.empty()) {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32 | device()) % 1000000000000ull;
  }
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(fmt::format("--seed {}: must be an integer between 0 and 2^64 - 1", text));
  }
  return seed;
}

std::vector<const Property*> chosen_properties(const std::vector<std::string>& ids) {
  std::vector<const Property*> chosen;
  if (ids.empty()) {
    for (const Property& property : catalog()) chosen.push_back(&property);
    return chosen;
  }
  for (const std::string& id : ids) {
    const Property* property = find_property(id);
    if (!property) {
      throw UsageError(fmt::format(
          "--property {}: there is no such property; `kvcheck list properties` shows all", id));
    }
    chosen.push_back(property);
  }
  return chosen;
}

GeneratorFocus chosen_focus(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  GeneratorFocus focus{false, false, false, false};
  for (const std::string& name : names) {
    if (name == "gqa-block")
      focus.gqa_block = true;
    else if (name == "gqa-full")
      focus.gqa_full = true;
    else if (name == "attention")
      focus.attention_past = true;
    else if (name == "nonpad")
      focus.attention_nonpad = true;
    else {
      throw UsageError(
          fmt::format("--focus {}: must be gqa-block, gqa-full, attention or nonpad", name));
    }
  }
  return focus;
}

std::string arithmetic_text(const kernels::Arithmetic& a) {
  return fmt::format(
      "accumulator 2^{:.0f}, exp error {:.2g}{}{}{}, {}", std::log2(a.accumulator_roundoff),
      a.exp_error,
      a.logit_roundoff > 0 ? fmt::format(", logits 2^{:.0f}", std::log2(a.logit_roundoff)) : "",
      a.probability_roundoff > 0
          ? fmt::format(", weights 2^{:.0f}", std::log2(a.probability_roundoff))
          : "",
      a.scale_on_operands ? ", scale on both operands" : "",
      a.max_rescales > 0 ? fmt::format("online softmax, up to {} rescales", a.max_rescales)
                         : std::string("two-pass softmax"));
}

/// Targets that can run, made; the others are in the record with their reason.
std::vector<std::unique_ptr<kernels::Target>> make_targets(const RunOptions& options,
                                                           const kernels::RegistryOptions& registry,
                                                           RunRecord& record, std::ostream& err) {
  std::vector<std::string> names = options.targets;
  if (names.empty()) {
    for (const auto& info : kernels::list_targets(registry)) {
      if (info.name.find('@') == std::string::npos) names.push_back(info.name);
    }
  }
  std::vector<std::unique_ptr<kernels::Target>> targets;
  for (const std::string& name : names) {
    auto made = kernels::make_target(name, registry);
    if (auto* unavailable = std::get_if<kernels::Unavailable>(&made)) {
      if (unavailable->unknown) throw UsageError(unavailable->reason);
      err << "skipped: " << name << ": " << unavailable->reason << "\n";
      record.targets.push_back({name, "", false, unavailable->reason, ""});
      continue;
    }
    auto& target = std::get<std::unique_ptr<kernels::Target>>(made);
    const auto& capabilities = target->capabilities();
    record.targets.push_back({capabilities.name, capabilities.version, true, "",
                              arithmetic_text(capabilities.arithmetic)});
    targets.push_back(std::move(target));
  }
  return targets;
}

RunRecord new_record(const RunOptions& options, std::uint64_t seed) {
  RunRecord record;
  record.tool = fmt::format("kvcheck {}", KVCHECK_VERSION);
  record.compiler = __VERSION__;
  record.flags = KVCHECK_FLAGS;
  record.seed = seed;
  record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  record.machine = machine_text();
  record.arguments = "run";
  for (const auto& name : options.targets) {
    // A program given by path is named without its folder.
    const auto slash = name.rfind('/');
    record.arguments += " --target " + (slash == std::string::npos ? name : name.substr(slash + 1));
  }
  for (const auto& id : options.properties) record.arguments += " --property " + id;
  for (const auto& focus : options.focus) record.arguments += " --focus " + focus;
  if (options.cases > 0) record.arguments += fmt::format(" --cases {}", options.cases);
  if (options.seconds > 0) record.arguments += fmt::format(" --time {}", options.seconds);
  record.arguments += fmt::format(" --seed {}", seed);
  record.stop = "running";
  return record;
}

std::string run_name(const RunRecord& record) {
  std::string name;
  for (const char c : record.started) {
    if (c != ':' && c != '-' && c != 'Z') name += c == 'T' ? '-' : c;
  }
  return fmt::format("{}-{}", name, record.seed);
}

bool interrupted(const CommandContext& context) {
  return context.interrupted && *context.interrupted;
}

/// Everything that happens between the first and the last scenario.
void search_all(const RunOptions& options, CommandContext& context, const Store& store,
                const RunFolder& folder, std::vector<std::unique_ptr<kernels::Target>>& targets,
                RunRecord& record, SearchOptions search) {
  const auto run_start = Clock::now();
  const double total = options.seconds > 0 ? options.seconds
                       : options.cases > 0
                           ? kMostSeconds
                           : kSecondsPerTarget * static_cast<double>(targets.size());
  Progress progress(context.err, context.err_is_terminal, options.quiet);
  search.failing = store.failing();
  search.origin = store.origin();
  search.corpus = {regression_folder(), store.failing()};
  auto last_write = run_start;
  for (std::size_t i = 0; i < targets.size() && !interrupted(context); ++i) {
    kernels::Target& target = *targets[i];
    const double used = std::chrono::duration<double>(Clock::now() - run_start).count();
    const double share = std::max(0.0, total - used) / static_cast<double>(targets.size() - i);
    search.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(share));
    progress.start(target.capabilities().name, search.deadline, record);
    SearchObserver observer;
    observer.before_case = [&](const model::Scenario& scenario) {
      folder.write_current(target.capabilities().name, scenario);
    };
    observer.after_case = [&] {
      progress.tick();
      if (Clock::now() - last_write > std::chrono::seconds(2)) {
        record.seconds = std::chrono::duration<double>(Clock::now() - run_start).count();
        folder.write_record(record);
        last_write = Clock::now();
      }
    };
    observer.on_finding = [&](const FindingRecord& finding) {
      progress.finding(finding);
      folder.write_record(record);
    };
    observer.on_phase = [&](const std::string& name) { progress.phase(name); };
    Search(target, search, record, run_start, observer).run();
  }
  record.seconds = std::chrono::duration<double>(Clock::now() - run_start).count();
  record.stop = interrupted(context) ? "interrupted" : options.cases > 0 ? "cases" : "time";
}

int run(const RunOptions& options, CommandContext& context) {
  if (options.cases < 0) throw UsageError("--cases: must be at least 0");
  if (options.seconds < 0) throw UsageError("--time: must be at least 0");
  SearchOptions search;
  search.seed = parse_seed(options.seed);
  search.properties = chosen_properties(options.properties);
  search.focus = chosen_focus(options.focus);
  search.cases = options.cases;
  search.interrupted = context.interrupted;
  search.shrink.time =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.shrink_seconds * 1000));
  auto registry = kernels::RegistryOptions::from_environment();
  registry.time_limit =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.case_seconds * 1000));

  RunRecord record = new_record(options, search.seed);
  auto targets = make_targets(options, registry, record, context.err);
  const Store store = Store::at(options.out);
  const RunFolder folder(store, run_name(record));
  folder.write_record(record);
  if (!options.quiet) context.err << fmt::format("seed {}\n", record.seed);
  search_all(options, context, store, folder, targets, record, search);
  folder.clear_current();
  folder.write_record(record);
  std::ofstream(folder.page_file()) << context.renderers.html(record);
  if (options.json) {
    context.out << to_json(record).dump(1) << "\n";
  } else {
    context.out << context.renderers.text(record, context.out_is_terminal);
    context.out << "record: " << folder.record_file().string() << "\n"
                << "page:   " << folder.page_file().string() << "\n";
  }
  return exit_code_of(record);
}

}  // namespace

int exit_code_of(const RunRecord& record) {
  if (!record.findings.empty()) return kCounterexample;
  bool judged = false;
  for (const PropertyRecord& entry : record.properties) {
    if (entry.errored > 0) return kUndecided;
    if (entry.status == Verdict::blind) return kUndecided;
    judged = judged || entry.scenarios > 0;
  }
  if (record.stop == "interrupted") return kUndecided;
  return judged ? kHeld : kUndecided;
}

int run_command(const RunOptions& options, CommandContext& context) {
  try {
    return run(options, context);
  } catch (const UsageError& error) {
    context.err << "kvcheck run: " << error.what() << "\n";
    return kBadUsage;
  }
}

}  // namespace kvcheck::properties
