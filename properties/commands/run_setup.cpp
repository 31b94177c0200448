// Options and their checks.
#include "properties/commands/run_setup.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <random>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "model/scenario_json.h"
#include "properties/machine.h"

namespace kvcheck::properties {
namespace {

constexpr std::string_view kProgram = "exec:";

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

GeneratorFocus chosen_focus(const RunSettings& settings) {
  GeneratorFocus focus;
  if (!settings.focus.empty()) focus = {false, false, false, false, 0};
  for (const std::string& name : settings.focus) {
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
  focus.context_length = settings.context;
  return focus;
}

std::set<Phase> chosen_phases(const std::vector<std::string>& names) {
  std::set<Phase> phases;
  if (names.empty()) return {std::begin(kPhases), std::end(kPhases)};
  for (const std::string& name : names) {
    const auto phase = phase_from(name);
    if (!phase) {
      throw UsageError(
          fmt::format("--phases {}: must be named, corpus, lattice, random or targeted", name));
    }
    phases.insert(*phase);
  }
  // Targeted cases start from what the phases before came to.
  if (phases == std::set{Phase::targeted}) phases.insert(Phase::random);
  return phases;
}

void check(const RunOptions& options) {
  const auto at_least = [](const char* name, double value, double least) {
    if (!(value >= least)) throw UsageError(fmt::format("{}: must be at least {}", name, least));
  };
  at_least("--cases", static_cast<double>(options.cases), 0);
  at_least("--time", options.seconds, 0);
  at_least("--context", static_cast<double>(options.context), 0);
  at_least("--workers", static_cast<double>(options.workers), 0);
  at_least("--case-timeout", options.case_seconds, 0.001);
  at_least("--shrink-time", options.shrink_seconds, 0);
  at_least("--shrink-evals", static_cast<double>(options.shrink_evaluations), 0);
  if (options.context > 1 << 20) {
    throw UsageError(fmt::format("--context {}: must be at most {}", options.context, 1 << 20));
  }
}

RunSettings settings_of(const RunOptions& options) {
  RunSettings settings;
  for (const std::string& name : options.targets) {
    // A program is kept by its name, without its folder.
    const bool program = name.rfind(kProgram, 0) == 0;
    const auto slash = program ? name.rfind('/') : std::string::npos;
    settings.targets.push_back(
        slash == std::string::npos ? name : std::string(kProgram) + name.substr(slash + 1));
  }
  settings.properties = options.properties;
  settings.focus = options.focus;
  settings.phases = options.phases;
  settings.cases = options.cases;
  settings.context = options.context;
  settings.seconds = options.seconds;
  settings.case_seconds = options.case_seconds;
  settings.shrink_seconds = options.shrink_seconds;
  settings.shrink_evaluations = options.shrink_evaluations;
  settings.observations = options.observations;
  for (const std::string& file : options.files) {
    settings.named.push_back(shrinkers::load_file(file).entry.scenario);
  }
  return settings;
}

std::string arguments_text(const RunSettings& settings, std::uint64_t seed) {
  std::string text = "run";
  for (const auto& name : settings.targets) {
    const auto slash = name.rfind('/');
    text += " --target " + (slash == std::string::npos ? name : name.substr(slash + 1));
  }
  for (const auto& id : settings.properties) text += " --property " + id;
  for (const auto& focus : settings.focus) text += " --focus " + focus;
  if (!settings.phases.empty())
    text += fmt::format(" --phases {}", fmt::join(settings.phases, ","));
  if (settings.context > 0) text += fmt::format(" --context {}", settings.context);
  if (settings.cases > 0) text += fmt::format(" --cases {}", settings.cases);
  if (settings.seconds > 0) text += fmt::format(" --time {}", settings.seconds);
  return text + fmt::format(" --seed {}", seed);
}

RunRecord new_record(const RunSettings& settings, std::uint64_t seed) {
  RunRecord record;
  record.tool = fmt::format("kvcheck {}", KVCHECK_VERSION);
  record.compiler = __VERSION__;
  record.flags = KVCHECK_FLAGS;
  record.seed = seed;
  record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  record.machine = machine_text();
  record.arguments = arguments_text(settings, seed);
  record.settings = settings;
  return record;
}

std::string run_name(const RunRecord& record) {
  std::string name;
  for (const char c : record.started) {
    if (c != ':' && c != '-' && c != 'Z') name += c == 'T' ? '-' : c;
  }
  return fmt::format("{}-{}", name, record.seed);
}

/// The corpus; a run that goes on takes what it began with, as far as it is still there.
void load_corpus(const Store& store, bool resumed, RunPlan& plan) {
  auto& hashes = plan.record.settings.corpus;
  std::set<std::string> seen;
  for (const auto& folder : {regression_folder(), store.failing(), store.near()}) {
    const auto loaded = shrinkers::load_folder(folder);
    for (const auto& broken : loaded.broken) {
      const std::string note = fmt::format("corpus file {} was passed over: {}",
                                           broken.file.filename().string(), broken.message);
      auto& notes = plan.record.notes;
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
    for (const auto& stored : loaded.entries) {
      if (!seen.insert(stored.hash).second) continue;
      if (!resumed) hashes.push_back(stored.hash);
      const bool begun = std::find(hashes.begin(), hashes.end(), stored.hash) != hashes.end();
      if (begun) plan.search.corpus.push_back(stored.entry);
    }
  }
}

void resume_record(const RunOptions& options, const Store& store, RunPlan& plan) {
  std::filesystem::path folder = options.resume;
  if (options.resume == "last") {
    const auto last = store.last_run();
    if (!last) throw UsageError(fmt::format("--resume last: no run in {}", store.root.string()));
    folder = *last;
  }
  if (std::filesystem::is_regular_file(folder)) folder = folder.parent_path();
  plan.record = read_record(folder);
  plan.name = std::filesystem::weakly_canonical(folder).filename().string();
  if (store.runs() / plan.name != folder &&
      !std::filesystem::exists(store.runs() / plan.name / "run.json")) {
    throw UsageError(fmt::format("--resume {}: is no run of {}; name its folder with --out",
                                 options.resume, store.root.string()));
  }
  if (!options.seed.empty() || options.cases > 0 || !options.properties.empty() ||
      !options.focus.empty() || !options.phases.empty() || !options.files.empty()) {
    throw UsageError(
        "--resume: the run goes on with the seed, cases, properties, focus, phases and files that "
        "it began with; leave them out");
  }
}

}  // namespace

RunPlan plan_run(const RunOptions& options, const Store& store,
                 const std::atomic<bool>* interrupted) {
  check(options);
  RunPlan plan;
  const bool resumed = !options.resume.empty();
  if (resumed) {
    resume_record(options, store, plan);
  } else {
    plan.record = new_record(settings_of(options), parse_seed(options.seed));
    plan.name = run_name(plan.record);
  }
  const RunSettings& settings = plan.record.settings;
  plan.targets = options.targets.empty() ? settings.targets : options.targets;
  for (const auto& name : plan.targets) {
    if (resumed && options.targets.empty() && name.rfind(kProgram, 0) == 0) {
      throw UsageError(
          fmt::format("--resume: the run judged the program {}; name it again with --target",
                      name.substr(kProgram.size())));
    }
  }
  plan.seconds = options.seconds;
  if (resumed && options.seconds == 0 && settings.seconds > 0) {
    plan.seconds = std::max(1.0, settings.seconds - plan.record.seconds);
  }
  plan.search.seed = plan.record.seed;
  plan.search.properties = chosen_properties(settings.properties);
  plan.search.focus = chosen_focus(settings);
  plan.search.phases = chosen_phases(settings.phases);
  plan.search.cases = settings.cases;
  plan.search.named = settings.named;
  plan.search.observations = settings.observations;
  plan.search.interrupted = interrupted;
  plan.search.shrink.evaluations = settings.shrink_evaluations;
  plan.search.shrink.time =
      std::chrono::milliseconds(static_cast<std::int64_t>(settings.shrink_seconds * 1000));
  plan.search.workers = options.workers > 0 ? static_cast<std::size_t>(options.workers)
                                            : std::max(1u, std::thread::hardware_concurrency());
  plan.search.failing = store.failing();
  plan.search.origin = store.origin();
  plan.search.near = store.near();
  plan.record.workers = static_cast<std::int64_t>(plan.search.workers);
  plan.record.stop = "running";
  plan.registry = kernels::RegistryOptions::from_environment();
  plan.registry.time_limit =
      std::chrono::milliseconds(static_cast<std::int64_t>(settings.case_seconds * 1000));
  plan.known = load_known(known_folder());
  load_corpus(store, resumed, plan);
  return plan;
}

}  // namespace kvcheck::properties
