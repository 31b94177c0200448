// Parts of sample records.
#include "tests/reports/sample_parts.h"

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "model/timeline.h"

namespace kvcheck::reports::samples {

using namespace properties;
using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

constexpr const char* kTarget = "onnxruntime-cpu";

RunRecord run_of(std::string started) {
  RunRecord run;
  run.tool = "kvcheck 0.1.0";
  run.compiler = "GCC 12.2.0";
  run.flags = "-O2 -g -DNDEBUG -ffp-contract=off";
  run.seed = 17446744073709551615u;
  run.workers = 4;
  run.started = std::move(started);
  run.machine = "Model 9 processor, 8 cores";
  run.arguments = "run --target onnxruntime-cpu --time 30";
  run.stop = "time";
  run.scenarios = 1733;
  run.verdicts = 9204;
  run.seconds = 30.25;
  run.targets = {{kTarget, "1.32.0", true, "", "f32 sums in any order"},
                 {"cpu-plain", "0.1.0", true, "", "f32, one order, no fused steps"},
                 {"cuda-decode", "0.1.0", false, "no CUDA device on this machine", ""}};
  run.properties = {
      {"attention.visible_set", "Every query sees exactly the keys that the contract names.",
       kTarget, Verdict::passed, 1204, 12, 0, 0, 0, "", 0},
      {"attention.values", "Every output is as close to the exact result as rounding allows.",
       kTarget, Verdict::passed, 1733, 0, 0, 0, 0, "", 0.4375},
      {"cache.resident_range", "Rows hold the newest tokens, in order, as the layout says.",
       "cpu-plain", Verdict::passed, 1611, 0, 0, 0, 0, "", 0},
      {"cache.rollback_exact", "A rolled back cache is the cache that was never extended.", kTarget,
       Verdict::skipped, 0, 1733, 0, 0, 0, "the target keeps no cache of its own", 0}};
  run.coverage = {{"one query, several new keys", kTarget, 214, 1733},
                  {"buffer wrapped many times", "cpu-plain", 1730, 1733},
                  {"rollback across an eviction", "cpu-plain", 3, 1733},
                  {"prompt longer than the capacity", kTarget, 0, 1733}};
  run.errors = {
      {kTarget,
       "f32",
       186112,
       {9012, 80000, 40000, 20000, 15000, 9000, 6000, 4000, 2000, 800, 280, 20, 0, 0, 0, 0},
       0.4375,
       "c2d1f00d5eed0001"},
      {"cpu-plain",
       "bf16",
       90210,
       {70000, 0, 0, 0, 10, 200, 3000, 9000, 6000, 1900, 90, 10, 0, 0, 0, 0},
       0.875,
       "c2d1f00d5eed0002"}};
  return run;
}

PropertyRecord& fail(RunRecord& run, std::size_t row, Verdict verdict) {
  run.properties[row].status = verdict;
  (verdict == Verdict::failed ? run.properties[row].failed : run.properties[row].errored) = 41;
  return run.properties[row];
}

FindingRecord finding_of(const RunRecord& run, std::size_t row, Kind kind, std::string hash) {
  FindingRecord finding;
  finding.property = run.properties[row].property;
  finding.target = run.properties[row].target;
  finding.target_version = finding.target == kTarget ? "1.32.0" : "0.1.0";
  finding.kind = kind;
  finding.hash = std::move(hash);
  finding.file = "failing/" + finding.hash + ".json";
  finding.case_index = 12;
  finding.evaluations = 57;
  finding.seconds = 0.8125;
  finding.occurrences = 41;
  finding.trail = {{"drop_steps", "7 steps -> 2", 9},
                   {"batch", "batch 3 -> 1", 14},
                   {"heads", "query_heads 8 -> 1, kv_heads 2 -> 1", 21},
                   {"lower", "steps[1].tokens 9 -> 2", 40}};
  finding.explain = {"head_size: any value tried fails (8, 16)",
                     "steps[1].tokens: 1 passes; 3 and 4 fail", "steps[1].queries: 2 passes"};
  finding.nearest_passing = "steps[1].tokens 2 -> 1";
  return finding;
}

EntryEvidence entry(std::int64_t length, std::int64_t resident, std::int64_t evicted,
                    std::int64_t queries, bool staged) {
  return {length, resident, length - resident, evicted, queries, staged};
}

StepEvidence step(std::string what, EntryEvidence around) {
  StepEvidence evidence;
  evidence.what = std::move(what);
  evidence.entries = {around};
  return evidence;
}

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = begin; i < end; ++i) out.push_back(i);
  return out;
}

VisibilityEvidence seen(std::int64_t position, std::vector<std::int64_t> expected,
                        std::vector<std::int64_t> observed) {
  VisibilityEvidence query;
  query.query_position = position;
  query.expected = std::move(expected);
  query.weights.assign(observed.size(), 1 / static_cast<double>(observed.size()));
  query.observed = std::move(observed);
  query.measured = true;
  return query;
}

Scenario attention_scenario() {
  Scenario scenario;
  scenario.op = model::Operator::attention;
  scenario.opset = 23;
  scenario.fill = {model::FillKind::position_code, 7, 0};
  return scenario;
}

Scenario windowed_scenario() {
  Scenario scenario;
  scenario.cache = {model::LayoutKind::block, 6, 4};
  scenario.fill = {model::FillKind::random, 11, 0};
  return scenario;
}

/// Attention with a past: one query after two new keys sees the later key as well.

}  // namespace kvcheck::reports::samples
