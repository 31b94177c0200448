// Replays: reproduced, fails differently, passes now, not valid.
#include "properties/commands/replay_command.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/registry.h"
#include "model/scenario_json.h"
#include "properties/convert.h"
#include "properties/finding.h"
#include "properties/last_store.h"
#include "properties/run_folder.h"
#include "properties/search.h"
#include "shrinkers/corpus.h"

namespace kvcheck::properties {
namespace {

namespace fs = std::filesystem;

/// What cannot be replayed at all; exit code 254.
class NotReplayable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How one replay ended, worst last.
enum class Outcome { not_judged, passes_now, fails_differently, reproduced };

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::not_judged:
      return "not judged";
    case Outcome::passes_now:
      return "passes now";
    case Outcome::fails_differently:
      return "fails differently";
    case Outcome::reproduced:
      return "reproduced";
  }
  return "";
}

struct Replay {
  Outcome outcome = Outcome::not_judged;
  std::string target, target_version;
  const Property* property = nullptr;
  Judgement judgement;
  std::string reason;  ///< Why nothing was judged.
};

/// The first finding of the newest run.
shrinkers::CorpusEntry last_finding(const Store& store) {
  const auto run = store.last_run();
  if (!run) {
    throw NotReplayable(
        fmt::format("there is no run in {}; `kvcheck run` makes one", store.root.string()));
  }
  const RunRecord record = read_record(*run);
  if (record.findings.empty()) {
    throw NotReplayable(
        fmt::format("the newest run ({}) has no finding to replay", run->filename().string()));
  }
  return corpus_entry(record.findings.front());
}

shrinkers::CorpusEntry find_entry(const std::string& what, const Store& store) {
  if (what == "last") return last_finding(store);
  if (fs::exists(what)) {
    if (fs::is_directory(what)) {
      throw NotReplayable(fmt::format("{} is a folder; give a scenario file in it", what));
    }
    return shrinkers::load_file(what).entry;
  }
  const auto found =
      shrinkers::find_by_hash({store.failing(), store.origin(), regression_folder()}, what);
  if (!found) {
    throw NotReplayable(
        fmt::format("{}: no such file, and no (or more than one) stored scenario whose hash begins "
                    "so; give a file, the beginning of a hash, or last",
                    what));
  }
  return found->entry;
}

Outcome outcome_of(const shrinkers::CorpusEntry& entry, const Property& property,
                   const Judgement& judgement) {
  if (judgement.verdict == Verdict::passed) return Outcome::passes_now;
  if (judgement.verdict != Verdict::failed) return Outcome::not_judged;
  const bool same = (entry.property.empty() || entry.property == property.id) &&
                    (entry.kind.empty() || entry.kind == to_string(judgement.kind)) &&
                    (entry.rule.empty() || entry.rule == judgement.rule);
  return same ? Outcome::reproduced : Outcome::fails_differently;
}

/// Judges the entry on one target: the recorded property first, then the others, which can only
/// show that it fails differently.
Replay replay_on(kernels::Target& target, const shrinkers::CorpusEntry& entry) {
  Replay replay;
  replay.target = target.capabilities().name;
  replay.target_version = target.capabilities().version;
  replay.reason = unsupported_reason(target.capabilities(), entry.scenario);
  if (!replay.reason.empty()) {
    replay.reason = "the target does not claim " + replay.reason;
    return replay;
  }
  std::vector<const Property*> order;
  if (const Property* recorded = find_property(entry.property)) order.push_back(recorded);
  for (const Property& property : catalog()) {
    if (property.id != entry.property) order.push_back(&property);
  }
  Case c(target, entry.scenario);
  for (const Property* property : order) {
    const std::string why = property->inapplicable(entry.scenario, target.capabilities());
    if (!why.empty()) {
      if (replay.reason.empty()) replay.reason = why;
      continue;
    }
    const Judgement judgement = property->judge(c);
    const Outcome outcome = outcome_of(entry, *property, judgement);
    if (outcome == Outcome::not_judged && replay.reason.empty()) replay.reason = judgement.text;
    if (outcome > replay.outcome) {
      replay.outcome = outcome;
      replay.property = property;
      replay.judgement = judgement;
    }
    if (replay.outcome == Outcome::reproduced) break;
  }
  replay.judgement.text = with_last_store(target, entry.scenario, replay.judgement);
  return replay;
}

nlohmann::ordered_json replay_json(const Replay& replay) {
  nlohmann::ordered_json json;
  json["outcome"] = to_string(replay.outcome);
  json["property"] = replay.property ? replay.property->id : "";
  json["target"] = replay.target;
  json["target_version"] = replay.target_version;
  const bool failed = replay.judgement.verdict == Verdict::failed;
  json["kind"] = failed ? to_string(replay.judgement.kind) : "";
  json["summary"] = failed ? replay.judgement.text : replay.reason;
  return json;
}

void show(const Replay& replay, CommandContext& context) {
  context.out << fmt::format("{} on {} {}", to_string(replay.outcome), replay.target,
                             replay.target_version);
  if (replay.judgement.verdict == Verdict::failed) {
    context.out << fmt::format("\n{} ({}): {}\n", replay.property->id,
                               to_string(replay.judgement.kind), replay.judgement.text);
  } else if (replay.outcome == Outcome::not_judged) {
    context.out << ": " << replay.reason << "\n";
  } else {
    context.out << "\n";
  }
}

/// Goes on from a failing replay: a smaller scenario, and which of its fields matter.
void go_on(const ReplayOptions& options, kernels::Target& target, const Replay& replay,
           const model::Scenario& scenario, CommandContext& context) {
  if (!(options.shrink || options.explain) || replay.judgement.verdict != Verdict::failed) return;
  FindingOptions investigate_options;
  investigate_options.explain = options.explain;
  if (!options.shrink) investigate_options.shrink.evaluations = 0;
  const FindingRecord finding =
      investigate(target, *replay.property, replay.judgement, scenario, investigate_options);
  auto& stream = options.json ? context.err : context.out;
  if (options.shrink) {
    shrinkers::CorpusEntry entry = corpus_entry(finding);
    const auto file = shrinkers::save(entry, Store::at(options.out).failing());
    stream << fmt::format("shrunk with {} evaluations to {}\n  {}\n", finding.evaluations,
                          file.string(), model::canonical_text(finding.minimal));
  }
  for (const auto& line : finding.explain) stream << "  " << line << "\n";
  if (options.explain && !finding.nearest_passing.empty()) {
    stream << "  nearest passing: " << finding.nearest_passing << "\n";
  }
  for (const auto& sentence : finding.evidence.words) stream << "  " << sentence << "\n";
}

std::vector<std::string> target_names(const ReplayOptions& options,
                                      const shrinkers::CorpusEntry& entry,
                                      const kernels::RegistryOptions& registry) {
  if (!options.targets.empty()) return options.targets;
  // A file never names a program: only names that the registry lists are taken from it.
  if (!entry.target.empty() && entry.target.find('/') == std::string::npos &&
      entry.target.rfind("exec:", 0) != 0) {
    return {entry.target};
  }
  std::vector<std::string> names;
  for (const auto& info : kernels::list_targets(registry)) {
    if (info.available) names.push_back(info.name);
  }
  return names;
}

int replay_all(const ReplayOptions& options, CommandContext& context) {
  const Store store = Store::at(options.out);
  const shrinkers::CorpusEntry entry = find_entry(options.what, store);
  if (options.emit == "scenario") {
    context.out << model::to_json(entry.scenario).dump(1) << "\n";
    return kHeld;
  }
  const auto registry = kernels::RegistryOptions::from_environment();
  Outcome worst = Outcome::not_judged;
  auto results = nlohmann::ordered_json::array();
  for (const std::string& name : target_names(options, entry, registry)) {
    auto made = kernels::make_target(name, registry);
    if (const auto* unavailable = std::get_if<kernels::Unavailable>(&made)) {
      if (unavailable->unknown) throw NotReplayable(unavailable->reason);
      context.err << "skipped: " << name << ": " << unavailable->reason << "\n";
      continue;
    }
    auto& target = *std::get<std::unique_ptr<kernels::Target>>(made);
    const Replay replay = replay_on(target, entry);
    worst = std::max(worst, replay.outcome);
    results.push_back(replay_json(replay));
    if (!options.json) show(replay, context);
    go_on(options, target, replay, entry.scenario, context);
  }
  if (options.json) {
    // One target is the usual case and what scripts ask for; several are a list.
    context.out << (results.size() == 1 ? results[0] : results).dump(1) << "\n";
  }
  if (worst >= Outcome::fails_differently) return kCounterexample;
  return worst == Outcome::passes_now ? kHeld : kUndecided;
}

}  // namespace

int replay_command(const ReplayOptions& options, CommandContext& context) {
  try {
    return replay_all(options, context);
  } catch (const model::ScenarioError& error) {
    if (options.json) {
      nlohmann::ordered_json json;
      json["outcome"] = "not valid";
      json["summary"] = error.what();
      context.out << json.dump(1) << "\n";
    }
    context.err << "kvcheck replay: not valid: " << error.what() << "\n";
    return kBadUsage;
  } catch (const NotReplayable& error) {
    context.err << "kvcheck replay: " << error.what() << "\n";
    return kBadUsage;
  } catch (const fs::filesystem_error& error) {
    context.err << "kvcheck replay: " << error.what() << "\n";
    return kBadUsage;
  }
}

}  // namespace kvcheck::properties
