// Tally: what a stretch of cases adds to a run record. Made by a worker, added in order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "properties/case.h"
#include "properties/catalog.h"
#include "properties/coverage.h"
#include "properties/run_record.h"
#include "properties/scenario_stream.h"

namespace kvcheck::properties {

/// Where a scenario of a search came from.
struct Origin {
  Phase phase = Phase::random;
  std::uint64_t index = 0;  ///< Within the phase.
};

/// One failed judgement.
struct Failure {
  std::size_t property = 0;  ///< In the search's list.
  Judgement judgement;
  std::shared_ptr<const model::Scenario> scenario;
  Origin origin;
  std::string known;  ///< The entry of the ledger that explains it; empty = none.
};

/// A scenario that the targeted phase may start from.
struct Candidate {
  double score = 0;  ///< Largest bound ratio; below 0: blind in a property.
  std::shared_ptr<const model::Scenario> scenario;
  Origin origin;
};

struct PropertyTally {
  std::int64_t judged = 0, skipped = 0, blind = 0, failed = 0, known = 0, errored = 0;
  std::string reason;  ///< Of the first judgement that did not pass.
  double max_ratio = 0;
};

struct ErrorTally {
  std::int64_t elements = 0;
  std::vector<std::int64_t> histogram;
  double max_ratio = 0;
  std::shared_ptr<const model::Scenario> worst;
};

struct Tally {
  std::int64_t scenarios = 0, verdicts = 0, rejected = 0;
  double draw_seconds = 0, judge_seconds = 0;
  std::vector<PropertyTally> properties;     ///< By property of the search.
  std::vector<std::int64_t> reached;         ///< By coverage class.
  std::map<std::string, ErrorTally> errors;  ///< By element type.
  std::vector<Failure> failures;             ///< In the order of the cases.
  std::vector<Candidate> candidates;         ///< Best first, few.
  std::string observations;                  ///< Lines of JSON.
  std::uint64_t end = 0;                     ///< Index after the last case.
};

/// Keeps at most `most`, each with a score of its own: three quarters those with the highest
/// scores, one quarter blind ones. First come first.
void keep_best(std::vector<Candidate>& candidates, std::size_t most);

/// Adds what one target's cases counted to its entries in the record. Failures, candidates and
/// observations are the caller's.
class RecordTotals {
 public:
  RecordTotals(RunRecord& record, const kernels::Capabilities& target,
               const std::vector<const Property*>& properties);

  void add(const Tally& tally, Phase phase);

 private:
  void add_properties(const Tally& tally);
  void add_coverage(const Tally& tally, Phase phase);
  void add_errors(const Tally& tally);

  RunRecord& record_;
  std::string target_;
  std::vector<std::size_t> properties_;  // Index in record_.properties.
  std::vector<std::size_t> coverage_;    // Index in record_.coverage by class, or none.
};

/// The entry of a phase on a target; it is added where there is none.
PhaseRecord& phase_entry(RunRecord& record, const std::string& target, Phase phase);

/// Status of an entry by its counts.
Verdict status_of(const PropertyRecord& entry);

}  // namespace kvcheck::properties
