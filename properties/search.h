// Search: the phases of a run on one target, from named scenarios to explained findings.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "properties/case_judge.h"
#include "properties/catalog.h"
#include "properties/run_record.h"
#include "properties/scenario_stream.h"
#include "properties/tally.h"
#include "shrinkers/corpus.h"
#include "shrinkers/shrink.h"

namespace kvcheck::properties {

using Clock = std::chrono::steady_clock;

struct SearchOptions {
  std::vector<const Property*> properties;  ///< Which to judge, in catalog order.
  std::uint64_t seed = 0;
  std::int64_t cases = 0;  ///< Random and targeted cases at most; 0 = until the deadline.
  Clock::time_point deadline;
  shrinkers::Budget shrink;
  GeneratorFocus focus;
  std::set<Phase> phases{std::begin(kPhases), std::end(kPhases)};
  std::vector<model::Scenario> named;           ///< Judged first.
  std::vector<shrinkers::CorpusEntry> corpus;   ///< Judged next, on the target they name.
  std::filesystem::path failing, origin, near;  ///< Where findings and candidates are stored.
  /// Cases at the same time, each worker on a target of its own. More than 1 needs make_target.
  std::size_t workers = 1;
  std::function<std::unique_ptr<kernels::Target>()> make_target;
  Explains known;
  bool observations = false;
  const std::atomic<bool>* interrupted = nullptr;
};

/// What a search tells while it goes on; every member may be empty. Called on the thread of run()
/// but for before_case.
struct SearchObserver {
  /// On the thread of the worker, before each case.
  std::function<void(std::size_t worker, const Origin&, const model::Scenario&)> before_case{};
  /// On the thread of run(), before a case is run again, to shrink or to explain it.
  std::function<void(const model::Scenario&)> before_again{};
  /// Often; decides itself when to write or to show something.
  std::function<void()> tick{};
  /// A failure of a new signature, before it is investigated; it is in the record already.
  std::function<void()> on_failure{};
  std::function<void(const FindingRecord&)> on_finding{};
  std::function<void(const std::string&)> on_phase{};
  std::function<void(const std::string& lines)> on_observations{};
};

/// A search is a function of its seed and options: whatever the number of workers, the same
/// findings, counts and record, unless time ends it.
class Search {
 public:
  /// `record` may hold what an earlier search of the target came to: the search goes on there.
  Search(kernels::Target& target, const SearchOptions& options, RunRecord& record,
         Clock::time_point run_start, SearchObserver observer);
  ~Search();

  /// All phases. Findings are investigated as they appear.
  void run();

 private:
  class Workers;
  using ScenarioAt = std::function<std::optional<model::Scenario>(std::uint64_t)>;

  void run_streamed(Phase phase, std::uint64_t end, Clock::time_point until);
  void run_targeted(std::uint64_t end);
  /// Judges [first, end) in chunks on all workers; `at` gives the scenarios.
  void run_cases(Phase phase, std::uint64_t first, std::uint64_t end, Clock::time_point until,
                 const ScenarioAt& at);
  Tally run_chunk(std::size_t worker, Phase phase, std::uint64_t first, std::uint64_t end,
                  Clock::time_point until, const ScenarioAt& at);
  void consume(Phase phase, std::uint64_t end, Tally&& tally);

  void resume();
  std::string signature_of(const Failure& failure) const;
  /// Index of the finding where the signature is a new one.
  std::optional<std::size_t> note_failure(const Failure& failure);
  void note_nondeterminism(std::size_t index);
  void investigate_at(std::size_t index, const Judgement& judgement);
  void store(FindingRecord& finding, const Judgement& judgement) const;
  void drop_unshrunk(const std::string& file, const std::string& kept, std::size_t index) const;
  void note_candidates(const Tally& tally);
  void record_candidates();
  void store_near() const;
  bool stop(Clock::time_point until) const;
  PhaseRecord& phase_record(Phase phase);

  kernels::Target& target_;
  const SearchOptions& options_;
  RunRecord& record_;
  Clock::time_point run_start_;
  SearchObserver observer_;
  ScenarioStream stream_;
  RecordTotals totals_;
  std::unique_ptr<Workers> workers_;
  std::map<std::string, std::size_t> findings_;  // Signature to index in record_.findings.
  std::vector<Candidate> pool_;                  // What the targeted phase starts from now.
  std::vector<Candidate> candidates_;            // What it will start from next.
  bool cut_ = false;  // A chunk was not run to its end: later ones are not counted.
};

}  // namespace kvcheck::properties
