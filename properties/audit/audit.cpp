// The walk over subjects and scenarios.
#include "properties/audit/audit.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "properties/audit/right_kinds.h"
#include "properties/audit/scenario_source.h"
#include "properties/last_store.h"

namespace kvcheck::properties {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLeastControls = 500;

/// Faults that each property should have seen; those that saw fewer are asked alone, for so long on
/// each fault and in all.
constexpr std::int64_t kSeenByEach = 2;
constexpr double kDeepenSeconds = 1;
constexpr double kDeepenLimit = 90;

/// Faults are deepened this many places apart, so that every kind comes early; a prime.
constexpr std::size_t kStride = 101;

/// A control may take longer than a fault: it is judged to the end.
constexpr double kControlTime = 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Failure {
  const Property* property;
  Judgement judgement;
};

/// As a search judges it, where random draws bundle their ways to run a case; or by one property
/// alone.
std::vector<Failure> failures_on(kernels::Target& target, const model::Scenario& scenario,
                                 bool random, const Property* alone) {
  std::vector<Failure> failures;
  Case c(target, scenario, random && alone == nullptr ? Case::Mode::bundled : Case::Mode::alone);
  for (const Property& property : catalog()) {
    if (alone != nullptr && property.id != alone->id) continue;
    if (!property.inapplicable(scenario, target.capabilities()).empty()) continue;
    Judgement judgement;
    try {
      judgement = judge(c, property);
    } catch (const std::exception& error) {
      judgement = {Verdict::errored, Kind::nonsense, error.what(), {}, 0};
    }
    if (judgement.verdict == Verdict::failed || judgement.verdict == Verdict::errored) {
      failures.push_back({&property, std::move(judgement)});
    }
  }
  return failures;
}

/// Walks the scenarios of a target within a budget.
class Walk {
 public:
  Walk(kernels::Target& target, const AuditOptions& options, const Property* alone = nullptr)
      : target_(target),
        options_(options),
        alone_(alone),
        source_(target.capabilities(),
                {options.seed, options.context, options.corpus, options.random_only}) {}

  /// Judges the next scenario; false when the budget is used up or the run was interrupted.
  bool next(std::vector<Failure>& failures) {
    while (seconds() < options_.seconds && !(options_.interrupted && *options_.interrupted) &&
           (options_.scenarios == 0 || judged_ < options_.scenarios)) {
      const std::uint64_t index = index_++;
      const auto scenario = source_.at(index);
      if (!scenario) continue;
      ++judged_;
      failures = failures_on(target_, *scenario, source_.random(index), alone_);
      scenario_ = *scenario;
      return true;
    }
    return false;
  }

  std::int64_t judged() const { return judged_; }
  /// The one that was judged last.
  const model::Scenario& scenario() const { return scenario_; }
  double seconds() const { return seconds_since(start_); }

 private:
  kernels::Target& target_;
  const AuditOptions& options_;
  const Property* alone_;
  ScenarioSource source_;
  Clock::time_point start_ = Clock::now();
  std::uint64_t index_ = 0;
  std::int64_t judged_ = 0;
  model::Scenario scenario_;
};

void note(const std::vector<Failure>& failures, SubjectResult& result) {
  for (const Failure& failure : failures) {
    if (failure.judgement.verdict == Verdict::failed) result.seen_by.insert(failure.property->id);
  }
}

/// The first of the failures that names the right kind; takes it over. Null where none does.
const Judgement* kills(const std::vector<Failure>& failures, SubjectResult& result) {
  for (const Failure& failure : failures) {
    const std::string finding(to_string(failure.judgement.kind));
    if (failure.judgement.verdict == Verdict::failed &&
        names(result.kind, failure.property->id, failure.judgement.kind)) {
      result.killed = true;
      result.by = failure.property->id;
      result.finding = finding;
      return &failure.judgement;
    }
    if (result.first.empty()) {
      result.first = fmt::format("{} {}", failure.property->id,
                                 failure.judgement.verdict == Verdict::errored
                                     ? "errored: " + failure.judgement.text
                                     : finding);
    }
  }
  return nullptr;
}

/// Judges faults by one property alone until it has seen enough of them.
void deepen(const Property& property, const std::vector<Subject>& subjects,
            const AuditOptions& options, std::vector<SubjectResult>& faults) {
  const auto start = Clock::now();
  std::int64_t seen = std::count_if(faults.begin(), faults.end(), [&](const auto& fault) {
    return fault.seen_by.count(property.id) > 0;
  });
  AuditOptions limited = options;
  limited.seconds = std::min(options.seconds, kDeepenSeconds);
  const std::size_t stride = subjects.size() % kStride == 0 ? 1 : kStride;
  for (std::size_t turn = 0; turn < subjects.size() && seen < kSeenByEach; ++turn) {
    const std::size_t i = turn * stride % subjects.size();
    if (seconds_since(start) > kDeepenLimit || faults[i].seen_by.count(property.id) > 0) continue;
    const auto target = subjects[i].make();
    if (!unpromised(target->capabilities(), property.promise).empty()) continue;
    Walk walk(*target, limited, &property);
    std::vector<Failure> failures;
    while (failures.empty() && walk.next(failures)) note(failures, faults[i]);
    seen += failures.empty() ? 0 : 1;
  }
}

/// Properties of operator calls, where no subject takes any.
std::vector<std::string> unasked_properties(const std::vector<Subject>& subjects) {
  const bool calls = std::any_of(subjects.begin(), subjects.end(), [](const Subject& subject) {
    return subject.make()->capabilities().has("operator_calls");
  });
  std::vector<std::string> unasked;
  for (const Property& property : catalog()) {
    if (!calls && property.id.starts_with("calls.")) unasked.push_back(property.id);
  }
  return unasked;
}

/// Runs `work(i)` for i in [0, count) on the workers; the first exception is thrown on.
void on_workers(std::size_t count, int workers, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < workers; ++i) threads.emplace_back(loop);
  loop();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::int64_t AuditResult::killed() const {
  return std::count_if(faults.begin(), faults.end(), [](const auto& one) { return one.killed; });
}

std::int64_t AuditResult::false_alarms() const {
  std::int64_t count = 0;
  for (const ControlResult& control : controls) count += control.false_alarms;
  return count;
}

bool AuditResult::held() const {
  return killed() == static_cast<std::int64_t>(faults.size()) && false_alarms() == 0;
}

std::map<std::string, std::map<std::string, std::int64_t>> AuditResult::matrix() const {
  std::map<std::string, std::map<std::string, std::int64_t>> counts;
  for (const Property& property : catalog()) counts[property.id];
  for (const SubjectResult& fault : faults) {
    for (const std::string& property : fault.seen_by) ++counts[property][fault.kind];
  }
  return counts;
}

SubjectResult audit_subject(const Subject& subject, const AuditOptions& options) {
  SubjectResult result;
  result.name = subject.name;
  result.place = subject.place;
  result.kind = subject.kind;
  result.statement = subject.statement;
  const auto target = subject.make();
  Walk walk(*target, options);
  std::vector<Failure> failures;
  while (!result.killed && walk.next(failures)) {
    note(failures, result);
    if (const Judgement* const judgement = kills(failures, result)) {
      result.seconds = walk.seconds();
      result.sentence = with_last_store(*target, walk.scenario(), *judgement);
    }
  }
  result.scenarios = walk.judged();
  if (!result.killed) {
    result.seconds = walk.seconds();
    return result;
  }
  result.first.clear();
  for (std::int64_t i = 0; i < options.further && walk.next(failures); ++i) note(failures, result);
  return result;
}

ControlResult audit_control(const Subject& subject, std::int64_t scenarios,
                            const AuditOptions& options) {
  ControlResult result;
  result.name = subject.name;
  const auto target = subject.make();
  AuditOptions limited = options;
  limited.scenarios = scenarios;
  limited.seconds *= kControlTime;
  Walk walk(*target, limited);
  std::vector<Failure> failures;
  while (walk.next(failures)) {
    for (const Failure& failure : failures) {
      if (result.false_alarms++ == 0) {
        result.sentence = fmt::format("{}: {}", failure.property->id, failure.judgement.text);
      }
    }
  }
  result.scenarios = walk.judged();
  result.seconds = walk.seconds();
  return result;
}

AuditResult run_audit(const std::vector<Subject>& subjects, const std::vector<Subject>& controls,
                      const AuditOptions& options, const AuditObserver& observer) {
  const auto start = Clock::now();
  const int workers = options.workers > 0
                          ? options.workers
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  AuditResult result;
  result.options = options;
  result.faults.resize(subjects.size());
  result.unasked = unasked_properties(subjects);
  std::mutex mutex;
  on_workers(subjects.size(), workers, [&](std::size_t i) {
    result.faults[i] = audit_subject(subjects[i], options);
    const std::lock_guard lock(mutex);
    if (observer) observer(result.faults[i]);
  });
  if (options.deepen) {
    // One after the other: properties add to the same faults.
    for (const Property& property : catalog()) {
      if (std::find(result.unasked.begin(), result.unasked.end(), property.id) ==
          result.unasked.end()) {
        deepen(property, subjects, options, result.faults);
      }
    }
  }
  std::int64_t most = kLeastControls;
  for (const SubjectResult& fault : result.faults) {
    if (fault.killed) most = std::max(most, fault.scenarios);
  }
  result.controls.resize(controls.size());
  on_workers(controls.size(), workers, [&](std::size_t i) {
    result.controls[i] = audit_control(controls[i], most, options);
  });
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace kvcheck::properties
