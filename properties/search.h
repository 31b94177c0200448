// Search: the phases of a run on one target, from the corpus to explained findings.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "properties/catalog.h"
#include "properties/generator.h"
#include "properties/run_record.h"
#include "shrinkers/corpus.h"
#include "shrinkers/shrink.h"

namespace kvcheck::properties {

using Clock = std::chrono::steady_clock;

struct SearchOptions {
  std::vector<const Property*> properties;  ///< Which to judge, in catalog order.
  std::uint64_t seed = 0;
  std::int64_t cases = 0;  ///< Random cases at most; 0 = until the deadline.
  Clock::time_point deadline;
  shrinkers::Budget shrink;
  GeneratorFocus focus;
  std::vector<std::filesystem::path> corpus;  ///< Folders replayed first.
  std::filesystem::path failing, origin;      ///< Where findings are stored.
  const std::atomic<bool>* interrupted = nullptr;
};

/// Called often; decides itself when to write or to show something.
struct SearchObserver {
  std::function<void(const model::Scenario&)> before_case;
  std::function<void()> after_case;
  std::function<void(const FindingRecord&)> on_finding;
  std::function<void(const std::string&)> on_phase;
};

class Search {
 public:
  Search(kernels::Target& target, const SearchOptions& options, RunRecord& record,
         Clock::time_point run_start, SearchObserver observer);

  /// All phases: corpus, lattice, random. Findings are shrunk as they appear.
  void run();

 private:
  struct Origin {
    std::uint64_t case_index = 0;
    bool random = false;
  };

  void replay_corpus();
  void walk_lattice();
  void draw_random();

  void examine(const model::Scenario& scenario, const Origin& origin,
               const std::vector<const Property*>& properties);
  void note_coverage(const Case& c);
  void note_judgement(const Property& property, const Judgement& judgement, const Case& c,
                      const Origin& origin);
  void record_finding(const Property& property, const Judgement& judgement,
                      const model::Scenario& scenario, const Origin& origin);
  bool stop() const;
  PropertyRecord& property_record(const Property& property);

  kernels::Target& target_;
  const SearchOptions& options_;
  RunRecord& record_;
  Clock::time_point run_start_;
  SearchObserver observer_;
  std::map<std::string, std::size_t> findings_;  // Signature to index in record_.findings.
  std::vector<std::size_t> coverage_;            // Index in record_.coverage by class.
};

/// The judgement of one property on a fresh case; an exception becomes `errored`.
Judgement judge_fresh(kernels::Target& target, const model::Scenario& scenario,
                      const Property& property);

}  // namespace kvcheck::properties
