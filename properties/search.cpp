// The phases.
#include "properties/search.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "properties/finding.h"
#include "properties/mutate.h"
#include "properties/ordered_work.h"

namespace kvcheck::properties {
namespace {

/// Cases that a worker judges in one go, and the grain at which a killed run goes on.
constexpr std::uint64_t kChunk = 32;

/// Share of the random cases, or of the time left for them, that the targeted phase gets.
constexpr std::uint64_t kTargetedPercent = 15;

/// Targeted cases between two looks at what came nearest to its bound.
constexpr std::uint64_t kRound = 256;

constexpr std::size_t kPool = 16;

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

StreamOptions stream_options(const SearchOptions& options, const std::string& target) {
  StreamOptions stream;
  stream.seed = options.seed;
  stream.focus = options.focus;
  stream.phases = options.phases;
  stream.named = options.named;
  for (const auto& entry : options.corpus) {
    if (entry.target.empty() || entry.target == target) stream.corpus.push_back(entry.scenario);
  }
  return stream;
}

/// How a phase ends that has come to its end.
const char* at_end(Phase phase) {
  return phase == Phase::random || phase == Phase::targeted ? "cases" : "done";
}

}  // namespace

/// The targets of the workers; made when first asked for.
class Search::Workers {
 public:
  Workers(kernels::Target& first, const SearchOptions& options)
      : first_(first), options_(options), made_(options.make_target ? options.workers : 1) {}

  std::size_t count() const { return std::max<std::size_t>(1, made_.size()); }

  kernels::Target& target(std::size_t worker) {
    if (count() == 1) return first_;
    const std::scoped_lock lock(mutex_);
    if (!made_[worker]) made_[worker] = options_.make_target();
    return *made_[worker];
  }

 private:
  kernels::Target& first_;
  const SearchOptions& options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<kernels::Target>> made_;
};

Search::Search(kernels::Target& target, const SearchOptions& options, RunRecord& record,
               Clock::time_point run_start, SearchObserver observer)
    : target_(target),
      options_(options),
      record_(record),
      run_start_(run_start),
      observer_(std::move(observer)),
      stream_(target.capabilities(), stream_options(options, target.capabilities().name)),
      totals_(record, target.capabilities(), options.properties),
      workers_(std::make_unique<Workers>(target, options)) {}

Search::~Search() = default;

bool Search::stop(Clock::time_point until) const {
  return Clock::now() >= until || (options_.interrupted && *options_.interrupted);
}

PhaseRecord& Search::phase_record(Phase phase) {
  return phase_entry(record_, target_.capabilities().name, phase);
}

void Search::run() {
  resume();
  for (const Phase phase : {Phase::named, Phase::corpus, Phase::lattice}) {
    run_streamed(phase, stream_.count(phase), options_.deadline);
  }
  const bool targeted = options_.phases.count(Phase::targeted) > 0;
  const auto cases = static_cast<std::uint64_t>(options_.cases);
  const std::uint64_t aimed = targeted ? cases * kTargetedPercent / 100 : 0;
  auto until = options_.deadline;
  if (targeted && cases == 0) {
    const auto left = std::max(options_.deadline - Clock::now(), Clock::duration::zero());
    until -= left * kTargetedPercent / 100;
  }
  run_streamed(Phase::random,
               std::min(stream_.count(Phase::random), cases > 0 ? cases - aimed : kNoEnd), until);
  if (targeted) run_targeted(cases > 0 ? aimed : kNoEnd);
  record_candidates();
  store_near();
}

void Search::run_streamed(Phase phase, std::uint64_t end, Clock::time_point until) {
  if (options_.phases.count(phase) == 0 || stop(options_.deadline)) return;
  run_cases(phase, phase_record(phase).next, end, until,
            [&](std::uint64_t index) { return stream_.at(phase, index); });
}

void Search::run_targeted(std::uint64_t end) {
  std::uint64_t next = phase_record(Phase::targeted).next;
  if (next >= end && next > 0) phase_record(Phase::targeted).stop = at_end(Phase::targeted);
  while (next < end && !cut_ && !stop(options_.deadline)) {
    if (next % kRound == 0) pool_ = candidates_;
    if (pool_.empty()) return;
    record_candidates();
    const std::uint64_t round_end = std::min(end, next - next % kRound + kRound);
    run_cases(Phase::targeted, next, round_end, options_.deadline, [&](std::uint64_t index) {
      Draw draw(case_random(~options_.seed, index, 0));
      return mutate(*pool_[index % pool_.size()].scenario, target_.capabilities(), draw);
    });
    next = phase_record(Phase::targeted).next;
  }
}

void Search::run_cases(Phase phase, std::uint64_t first, std::uint64_t end, Clock::time_point until,
                       const ScenarioAt& at) {
  if (cut_) return;
  if (first >= end) {
    if (first > 0) phase_record(phase).stop = at_end(phase);
    return;
  }
  if (observer_.on_phase) observer_.on_phase(std::string(to_string(phase)));
  const std::uint64_t chunks = end == kNoEnd ? kNoEnd : (end - first - 1) / kChunk + 1;
  const auto chunk_end = [&](std::uint64_t chunk) {
    return std::min(end, first + (chunk + 1) * kChunk);
  };
  in_order(
      workers_->count(), 0, chunks,
      [&](std::size_t worker, std::uint64_t chunk) {
        return run_chunk(worker, phase, first + chunk * kChunk, chunk_end(chunk), until, at);
      },
      [&](std::uint64_t chunk, Tally&& tally) {
        consume(phase, chunk_end(chunk), std::move(tally));
      },
      [&] { return stop(until); },
      [&] {
        if (observer_.tick) observer_.tick();
      });
  PhaseRecord& entry = phase_record(phase);
  const bool interrupted = options_.interrupted && *options_.interrupted;
  entry.stop = entry.next >= end
                   ? (phase == Phase::random || phase == Phase::targeted ? "cases" : "done")
               : interrupted ? "interrupted"
                             : "time";
  // The targeted phase goes on where the time of the random one ends.
  if (phase == Phase::random && !interrupted) cut_ = false;
}

Tally Search::run_chunk(std::size_t worker, Phase phase, std::uint64_t first, std::uint64_t end,
                        Clock::time_point until, const ScenarioAt& at) {
  Tally tally;
  kernels::Target& target = workers_->target(worker);
  JudgeOptions options;
  options.properties = &options_.properties;
  options.known = options_.known;
  options.observations = options_.observations;
  options.run_start = record_.started;
  options.reachable = reachable_classes(target.capabilities());
  options.candidates = options_.phases.count(Phase::targeted) > 0;
  for (tally.end = first; tally.end < end && !stop(until); ++tally.end) {
    const auto start = Clock::now();
    const auto scenario = at(tally.end);
    const auto drawn = Clock::now();
    tally.draw_seconds += std::chrono::duration<double>(drawn - start).count();
    if (!scenario) {
      ++tally.rejected;
      continue;
    }
    const Origin origin{phase, tally.end};
    if (observer_.before_case) observer_.before_case(worker, origin, *scenario);
    judge_case(target, *scenario, origin, options, tally);
    tally.judge_seconds += seconds_since(drawn);
  }
  return tally;
}

void Search::consume(Phase phase, std::uint64_t end, Tally&& tally) {
  const bool counted = !cut_;
  cut_ = cut_ || tally.end < end;
  // The record is whole before anything is written or run again: whatever moment a kill comes at,
  // it says where to go on.
  std::vector<std::pair<std::size_t, const Failure*>> fresh;
  for (const Failure& failure : tally.failures) {
    // What comes after a gap will be met again by a resumed run; only what is new is kept now.
    if (!counted && findings_.count(signature_of(failure)) > 0) continue;
    if (const auto index = note_failure(failure)) fresh.emplace_back(*index, &failure);
  }
  if (counted) {
    totals_.add(tally, phase);
    note_candidates(tally);
    if (observer_.on_observations && !tally.observations.empty()) {
      observer_.on_observations(tally.observations);
    }
  }
  // On disk before the target is run again: it may break, hang or be killed there.
  for (const auto& [index, failure] : fresh) store(record_.findings[index], failure->judgement);
  if (!fresh.empty() && observer_.on_failure) observer_.on_failure();
  for (const auto& [index, failure] : fresh) investigate_at(index, failure->judgement);
}

void Search::note_candidates(const Tally& tally) {
  if (tally.candidates.empty()) return;
  const auto before = candidates_;
  candidates_.insert(candidates_.end(), tally.candidates.begin(), tally.candidates.end());
  keep_best(candidates_, kPool);
  const auto same = [](const Candidate& a, const Candidate& b) { return a.scenario == b.scenario; };
  if (!std::equal(before.begin(), before.end(), candidates_.begin(), candidates_.end(), same)) {
    record_candidates();
  }
}

void Search::record_candidates() {
  const std::string& name = target_.capabilities().name;
  std::erase_if(record_.candidates, [&](const auto& entry) { return entry.target == name; });
  for (const bool in_use : {true, false}) {
    for (const Candidate& candidate : in_use ? pool_ : candidates_) {
      record_.candidates.push_back({name, std::string(to_string(candidate.origin.phase)),
                                    candidate.origin.index, candidate.score, in_use,
                                    *candidate.scenario});
    }
  }
}

void Search::resume() {
  const std::string& name = target_.capabilities().name;
  for (const auto& entry : record_.candidates) {
    if (entry.target != name) continue;
    (entry.in_use ? pool_ : candidates_)
        .push_back({entry.score,
                    std::make_shared<const model::Scenario>(entry.scenario),
                    {phase_from(entry.phase).value_or(Phase::random), entry.index}});
  }
  for (std::size_t i = 0; i < record_.findings.size(); ++i) {
    const FindingRecord& finding = record_.findings[i];
    if (finding.target != name) continue;
    const std::string key = signature(finding.property, name, finding.kind, finding.rule);
    findings_[key + "|" + finding.known] = i;
  }
  for (std::size_t i = 0; i < record_.findings.size(); ++i) {
    const FindingRecord& finding = record_.findings[i];
    if (finding.target != name || finding.investigated || stop(options_.deadline)) continue;
    const Property* property = find_property(finding.property);
    if (!property) continue;
    Judgement judgement = judge_fresh(target_, finding.first, *property);
    if (judgement.verdict != Verdict::failed) {
      judgement = Judgement::failed(finding.kind, finding.summary);
      judgement.rule = finding.rule;
    }
    investigate_at(i, judgement);
  }
}

}  // namespace kvcheck::properties
