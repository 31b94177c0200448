// Run record: all that a run found, as plain data; run.json on disk.
//
// Reports are made from this alone. Evidence is stored for the minimal scenario of a finding, so
// that a page can be built on a machine that has not got the target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/scenario.h"
#include "properties/verdict.h"

namespace kvcheck::properties {

inline constexpr int kRunSchema = 1;

/// A target of the run; not available ones are listed with the reason.
struct TargetRecord {
  std::string name, version;
  bool available = false;
  std::string reason;
  std::string arithmetic;  ///< The declared profile in words.
};

/// One property on one target.
struct PropertyRecord {
  std::string property, statement, target;
  Verdict status = Verdict::skipped;
  std::int64_t scenarios = 0;  ///< Judged (passed or failed).
  std::int64_t skipped = 0, blind = 0, failed = 0, errored = 0;
  std::string reason;          ///< Why nothing was judged, or the first error.
  double max_bound_ratio = 0;  ///< Largest |error| / bound seen; 0 where no values are compared.
  std::int64_t known = 0;      ///< Failures that an entry of the ledger explains; not in `failed`.
};

/// How often a class of situation was reached.
struct CoverageRecord {
  std::string name;  ///< "buffer wrapped many times", "one query, several new keys", ...
  std::string target;
  std::int64_t hits = 0, cases = 0;  ///< Of all phases.
  /// Of the random phase, by which the class is judged.
  std::int64_t drawn_hits = 0, drawn = 0;
  double required = 0;   ///< Least share of the random scenarios; 0 = none is asked for.
  std::string status{};  ///< "met", "unmet", or "open": too few scenarios to tell.
};

/// One phase of the search on one target.
struct PhaseRecord {
  std::string phase, target;
  std::int64_t cases = 0;
  std::int64_t rejected = 0;                   ///< Addresses where nothing valid was drawn.
  double draw_seconds = 0, judge_seconds = 0;  ///< Summed over the workers.
  std::uint64_t next = 0;                      ///< Index with which a resumed run goes on.
  std::string stop;  ///< "running", "done", "cases", "time", "interrupted".
};

/// A scenario near its bound, from which the targeted phase starts.
struct CandidateRecord {
  std::string target, phase;
  std::uint64_t index = 0;
  double score = 0;     ///< Largest bound ratio; below 0: blind.
  bool in_use = false;  ///< False: for the next round.
  model::Scenario scenario;
};

/// An entry of the ledger of known findings that holds for a target of the run.
struct KnownRecord {
  std::string file, target, title;
  std::string reference;  ///< Public issue, or the sentence of the contract that is broken.
  std::int64_t hits = 0;  ///< Failures that it explains.
  bool tried = false;     ///< Its own case was run.
  bool fixed = false;     ///< Its own case passed.
};

/// What a run was asked for; with it a killed run goes on.
struct RunSettings {
  std::vector<std::string> targets, properties, focus, phases;
  std::int64_t cases = 0;
  double seconds = 0;
  double case_seconds = 0, shrink_seconds = 0;
  std::int64_t shrink_evaluations = 0;
  std::int64_t context = 0;
  bool observations = false;
  std::vector<model::Scenario> named;  ///< Scenarios given one by one.
  std::vector<std::string> corpus;     ///< Hashes of the corpus as the run found it.
};

/// Distribution of bound ratios of one target and element type, over all elements compared.
struct ErrorRecord {
  std::string target, element_type;
  std::int64_t elements = 0;
  /// Counts of ratios in (bins[i-1], bins[i]]; edges 0, 2^-10, 2^-9, ... 1, 2, 4, 8, above.
  std::vector<std::int64_t> histogram;
  double max_ratio = 0;
  std::string worst_hash;  ///< content_hash of the scenario with the largest ratio.
};
/// Upper edges of ErrorRecord::histogram, the last one infinite.
const std::vector<double>& error_bin_edges();
/// Index of the count that a ratio belongs to. \pre ratio >= 0
std::size_t error_bin(double ratio);

/// Visibility of one query: what the contract says and what was measured. Empty observed with
/// measured = false: the target's outputs could not be read back.
struct VisibilityEvidence {
  std::int64_t entry = 0, head = 0;
  std::int64_t query_position = 0;
  std::vector<std::int64_t> expected;  ///< Key positions, ascending.
  std::vector<std::int64_t> observed;  ///< Key positions with weight, ascending.
  std::vector<double> weights;         ///< Of observed, same order.
  bool measured = false;
};

/// One row of the cache after a step. token = -1: not the content of any token; -2: unspecified.
struct RowEvidence {
  std::int64_t entry = 0, row = 0;
  std::int64_t expected_position = -1;  ///< -2 in rows [L, C).
  std::int64_t observed_position = -1;
  std::int64_t observed_generation = 0;
};

/// One output element.
struct ElementEvidence {
  std::int64_t entry = 0, head = 0, query = 0, query_position = 0, lane = 0;
  double observed = 0, expected = 0, bound = 0, ratio = 0;
  double term_weights = 0, term_sums = 0, term_underflow = 0, term_store = 0;
  double term_operands = 0;  ///< Operands that the target may hold otherwise.
};

/// One entry of the batch after one step.
struct EntryEvidence {
  std::int64_t length = 0, resident = 0, first_position = 0, evicted = 0, queries = 0;
  bool staged = false;
};

struct StepEvidence {
  std::string what;  ///< "append 2 (1 query)".
  std::vector<EntryEvidence> entries;
  std::string answer = "ok";  ///< "ok", "refused: ...", "crash: ...".
  std::vector<VisibilityEvidence> visibility;
  std::vector<RowEvidence> rows;          ///< Only rows that differ, at most 64.
  std::vector<ElementEvidence> elements;  ///< Largest ratios first, at most 64.
  std::int64_t elements_compared = 0;
  double max_ratio = 0;
};

/// What the minimal scenario did on the target.
struct Evidence {
  std::vector<StepEvidence> steps;
  std::int64_t failing_step = -1;
  std::vector<std::string> words;  ///< The argument, sentence by sentence, fact before conclusion.
  std::vector<std::string> notes;  ///< What was left out, and by which rule.
};

struct ShrinkStep {
  std::string pass, change;
  std::int64_t evaluation = 0;
};

struct FindingRecord {
  std::string property, target, target_version;
  Kind kind = Kind::over_bound;
  std::string rule;     ///< That was broken, where findings differ by it; else empty.
  std::string summary;  ///< One sentence with the numbers.
  std::string hash;     ///< Of the minimal scenario.
  std::string file;     ///< Name in the corpus folder of failing scenarios.
  std::uint64_t case_index = 0;
  model::Scenario minimal, first, worst;
  double worst_ratio = 0;
  std::int64_t evaluations = 0;
  double seconds = 0;            ///< From the start of the run to the discovery.
  bool is_minimal = true;        ///< False: shrinking ran out of budget.
  bool deterministic = true;     ///< Failed in every one of three further runs.
  double failure_rate = 1;       ///< Share of further runs that failed, where not all did.
  bool bits_differ = false;      ///< Outputs of further runs differed in their bits.
  bool investigated = true;      ///< False: the run ended before it was shrunk.
  std::string phase;             ///< Of `first`; case_index is the index there.
  std::string known;             ///< What explains it in the ledger; empty = it is new.
  std::int64_t occurrences = 1;  ///< Scenarios of this signature in the run.
  std::vector<ShrinkStep> trail;
  std::vector<std::string> explain;  ///< "head_size: any value tried fails (8, 16)".
  std::string nearest_passing;       ///< Words; empty when none was found.
  Evidence evidence;
};

struct RunRecord {
  int schema = kRunSchema;
  std::string tool;  ///< "kvcheck 0.1.0".
  std::string compiler, flags;
  std::uint64_t seed = 0;
  std::int64_t workers = 1;
  std::string started;    ///< UTC, ISO 8601.
  std::string machine;    ///< Processor model and core count; no host name.
  std::string arguments;  ///< As given, without paths.
  std::string stop;       ///< "time", "cases", "interrupted", "running".
  std::int64_t scenarios = 0, verdicts = 0;
  double seconds = 0;
  std::vector<TargetRecord> targets;
  std::vector<PropertyRecord> properties;
  std::vector<CoverageRecord> coverage;
  std::vector<ErrorRecord> errors;
  std::vector<PhaseRecord> phases;
  std::vector<CandidateRecord> candidates;
  std::vector<KnownRecord> known;
  std::vector<FindingRecord> findings;
  RunSettings settings;
  std::vector<std::string> notes;  ///< Broken corpus files, skipped phases, restarts.

  Verdict verdict() const;  ///< All properties merged.
};

nlohmann::ordered_json to_json(const RunRecord& record);
/// \throws model::ScenarioError naming the field
RunRecord run_record_from_json(const nlohmann::ordered_json& json);

}  // namespace kvcheck::properties
