// The run: targets in turn, one record, one page.
#include "properties/commands/run_command.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "properties/case_places.h"
#include "properties/commands/run_setup.h"
#include "properties/progress.h"
#include "properties/watch.h"

namespace kvcheck::properties {
namespace {

constexpr double kSecondsPerTarget = 20;
/// With --cases and no --time a run still ends.
constexpr double kMostSeconds = 3600;

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

/// One run while it goes on.
class Run {
 public:
  Run(const RunOptions& options, CommandContext& context, const Store& store, RunPlan plan)
      : options_(options),
        context_(context),
        plan_(std::move(plan)),
        folder_(store, plan_.name),
        progress_(context.err, context.err_is_terminal, options.quiet),
        before_(plan_.record.seconds),
        watchdog_(plan_.registry.time_limit, [this](const WatchSlot& slot) { end_hung(slot); }) {
    write_scenario_on_crash(folder_.current_file());
  }

  int run() {
    const auto names = target_names();
    std::vector<std::pair<std::string, std::unique_ptr<kernels::Target>>> targets;
    for (const auto& name : names) {
      if (auto target = first_target(name)) targets.emplace_back(name, std::move(target));
    }
    write();
    if (!options_.quiet) context_.err << fmt::format("seed {}\n", record().seed);
    if (!options_.resume.empty()) folder_.trim_observations(record().scenarios);
    search_all(targets);
    return finish();
  }

 private:
  RunRecord& record() { return plan_.record; }
  bool interrupted() const { return context_.interrupted && *context_.interrupted; }

  std::vector<std::string> target_names() const {
    if (!plan_.targets.empty()) return plan_.targets;
    std::vector<std::string> names;
    for (const auto& info : kernels::list_targets(plan_.registry)) {
      if (info.name.find('@') == std::string::npos) names.push_back(info.name);
    }
    return names;
  }

  /// What runs in another process has a time limit of its own.
  std::unique_ptr<kernels::Target> watched(const std::string& name,
                                           std::unique_ptr<kernels::Target> target) {
    return kernels::runs_in_this_process(name, plan_.registry) ? watchdog_.watch(std::move(target))
                                                               : std::move(target);
  }

  /// Null where it cannot run; the record then says why.
  std::unique_ptr<kernels::Target> first_target(const std::string& name) {
    auto made = kernels::make_target(name, plan_.registry);
    TargetRecord entry;
    entry.name = name;
    std::unique_ptr<kernels::Target> target;
    if (auto* unavailable = std::get_if<kernels::Unavailable>(&made)) {
      if (unavailable->unknown) throw UsageError(unavailable->reason);
      context_.err << "skipped: " << name << ": " << unavailable->reason << "\n";
      entry.reason = unavailable->reason;
    } else {
      target = std::move(std::get<std::unique_ptr<kernels::Target>>(made));
      const auto& capabilities = target->capabilities();
      entry = {capabilities.name, capabilities.version, true, "",
               arithmetic_text(capabilities.arithmetic)};
      target = watched(name, std::move(target));
    }
    auto& targets = record().targets;
    const auto same = std::find_if(targets.begin(), targets.end(),
                                   [&](const auto& old) { return old.name == entry.name; });
    if (same == targets.end()) {
      targets.push_back(entry);
    } else {
      if (same->version != entry.version) {
        throw UsageError(fmt::format("--resume: the run judged {} {}; here it is {}", entry.name,
                                     same->version, entry.version));
      }
      *same = entry;
    }
    return target;
  }

  void search_all(std::vector<std::pair<std::string, std::unique_ptr<kernels::Target>>>& targets) {
    const double total = plan_.seconds > 0 ? plan_.seconds
                         : plan_.search.cases > 0
                             ? kMostSeconds
                             : kSecondsPerTarget * static_cast<double>(targets.size());
    for (std::size_t i = 0; i < targets.size() && !interrupted(); ++i) {
      const double share =
          std::max(0.0, total - elapsed()) / static_cast<double>(targets.size() - i);
      search(targets[i].first, *targets[i].second,
             Clock::now() +
                 std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(share)));
      targets[i].second.reset();
    }
  }

  void search(const std::string& name, kernels::Target& target, Clock::time_point deadline) {
    const std::string& shown = target.capabilities().name;
    SearchOptions options = plan_.search;
    options.deadline = deadline;
    options.make_target = [&] {
      auto made = kernels::make_target(name, plan_.registry);
      if (const auto* unavailable = std::get_if<kernels::Unavailable>(&made)) {
        throw std::runtime_error(fmt::format("{}: {}", name, unavailable->reason));
      }
      return watched(name, std::move(std::get<std::unique_ptr<kernels::Target>>(made)));
    };
    try_known(target);
    if (!plan_.known.empty()) {
      options.known = [this](Case& c, const Property& property, const Judgement& judgement) {
        const KnownFinding* known = explaining_entry(plan_.known, c, property, judgement);
        return known ? known->file : std::string();
      };
    }
    CasePlaces places(folder_.places_file(), shown, record().seed, options.workers);
    progress_.start(shown, deadline, record());
    SearchObserver observer;
    observer.before_case = [&](std::size_t worker, const Origin& origin,
                               const model::Scenario& scenario) {
      places.note(worker, origin);
      Watchdog::note(scenario);
    };
    observer.before_again = [&](const model::Scenario& scenario) {
      folder_.write_current(shown, scenario);
      Watchdog::note(scenario);
    };
    observer.tick = [&] { tick(); };
    observer.on_failure = [&] { write(); };
    observer.on_finding = [&](const FindingRecord& finding) {
      folder_.clear_current();
      progress_.finding(finding);
      write();
    };
    observer.on_phase = [&](const std::string& phase) { progress_.phase(phase); };
    observer.on_observations = [&](const std::string& lines) { observations_ += lines; };
    Search(target, options, record(), run_start_, observer).run();
  }

  /// Runs the cases of the ledger's entries that hold for the target: what passes is fixed.
  void try_known(kernels::Target& target) {
    for (const KnownFinding& known : plan_.known) {
      if (!holds_for(known, target.capabilities())) continue;
      const auto listed =
          std::find_if(record().known.begin(), record().known.end(), [&](const KnownRecord& entry) {
            return entry.file == known.file && entry.target == target.capabilities().name;
          });
      if (listed != record().known.end()) continue;
      KnownRecord entry{known.file, target.capabilities().name, known.title, known.reference()};
      if (known.scenario && cannot_run(target, *known.scenario).empty()) {
        bool failed = false;
        for (const auto& [id, kinds] : known.failures) {
          const Property& property = *find_property(id);
          if (!property.inapplicable(*known.scenario, target.capabilities()).empty()) continue;
          entry.tried = true;
          const Judgement judgement = judge_fresh(target, *known.scenario, property);
          failed = failed || judgement.verdict == Verdict::failed;
        }
        entry.fixed = entry.tried && !failed;
      }
      if (entry.fixed) {
        progress_.line(fmt::format("FIXED: {} on {} passes now; take {} out of the ledger ({})",
                                   known.title, entry.target, known.file, entry.reference));
      }
      record().known.push_back(std::move(entry));
    }
  }

  double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - run_start_).count();
  }

  void tick() {
    progress_.tick();
    if (Clock::now() - last_write_ > std::chrono::seconds(2)) write();
  }

  void write() {
    const std::scoped_lock lock(writing_);
    record().seconds = before_ + elapsed();
    folder_.append_observations(observations_);
    observations_.clear();
    folder_.write_record(record());
    last_write_ = Clock::now();
  }

  /// On the thread of the watchdog: an own kernel does not return, and nothing can end it but the
  /// end of this process. What was written last and the case are all there is to say.
  [[noreturn]] void end_hung(const WatchSlot& slot) {
    writing_.lock();
    RunRecord last = read_record(folder_.record_file());
    FindingRecord finding;
    finding.property = "target.answers";
    finding.target = slot.target;
    finding.kind = Kind::hang;
    finding.summary = fmt::format("a request did not return within {} s; the run ends here",
                                  plan_.registry.time_limit.count() / 1000.0);
    if (const model::Scenario* scenario = slot.scenario) {
      finding.minimal = finding.first = finding.worst = *scenario;
      folder_.write_current(slot.target, *scenario);
    }
    finding.hash = model::content_hash(finding.minimal);
    finding.is_minimal = finding.investigated = false;
    finding.seconds = last.seconds;
    last.findings.push_back(finding);
    for (auto& entry : last.properties) {
      if (entry.property != finding.property || entry.target != finding.target) continue;
      ++entry.scenarios, ++entry.failed;
      entry.status = status_of(entry);
    }
    last.stop = "hang";
    last.notes.push_back("The run ended at a case that did not return: " +
                         model::canonical_text(finding.minimal));
    folder_.write_record(last);
    std::ofstream(folder_.page_file()) << context_.renderers.html(last);
    context_.err << fmt::format("\nkvcheck run: {} hung: {}\nrecord: {}\n", slot.target,
                                model::canonical_text(finding.minimal),
                                folder_.record_file().string())
                 << std::flush;
    if (options_.json) context_.out << to_json(last).dump(1) << "\n" << std::flush;
    std::_Exit(kCounterexample);
  }

  int finish() {
    judge_coverage(record(), !(plan_.search.focus == GeneratorFocus{}));
    record().stop = interrupted() ? "interrupted" : plan_.search.cases > 0 ? "cases" : "time";
    folder_.clear_current();
    folder_.clear_places();
    write();
    std::ofstream(folder_.page_file()) << context_.renderers.html(record());
    if (options_.json) {
      context_.out << to_json(record()).dump(1) << "\n";
    } else {
      context_.out << context_.renderers.text(record(), context_.out_is_terminal);
      context_.out << "record: " << folder_.record_file().string() << "\n"
                   << "page:   " << folder_.page_file().string() << "\n";
    }
    return exit_code_of(record());
  }

  const RunOptions& options_;
  CommandContext& context_;
  RunPlan plan_;
  RunFolder folder_;
  Progress progress_;
  double before_;  ///< Seconds of the run that goes on.
  Clock::time_point run_start_ = Clock::now(), last_write_ = run_start_;
  std::string observations_;
  std::mutex writing_;
  Watchdog watchdog_;
};

}  // namespace

int exit_code_of(const RunRecord& record) {
  for (const FindingRecord& finding : record.findings) {
    if (finding.known.empty()) return kCounterexample;
  }
  bool judged = false;
  for (const PropertyRecord& entry : record.properties) {
    if (entry.errored > 0) return kUndecided;
    if (entry.status == Verdict::blind) return kUndecided;
    judged = judged || entry.scenarios > 0;
  }
  for (const CoverageRecord& entry : record.coverage) {
    if (entry.status == "unmet") return kUndecided;
  }
  if (record.stop == "interrupted") return kUndecided;
  return judged ? kHeld : kUndecided;
}

int run_command(const RunOptions& options, CommandContext& context) {
  try {
    const Store store = Store::at(options.out);
    return Run(options, context, store, plan_run(options, store, context.interrupted)).run();
  } catch (const UsageError& error) {
    context.err << "kvcheck run: " << error.what() << "\n";
    return kBadUsage;
  } catch (const model::ScenarioError& error) {
    context.err << "kvcheck run: " << error.what() << "\n";
    return kBadUsage;
  } catch (const std::filesystem::filesystem_error& error) {
    context.err << "kvcheck run: " << error.what() << "\n";
    return kBadUsage;
  }
}

}  // namespace kvcheck::properties
