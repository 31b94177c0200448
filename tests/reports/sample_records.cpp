// Run records made by hand.
#include "tests/reports/sample_records.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "model/timeline.h"
#include "tests/reports/sample_parts.h"

namespace kvcheck::reports::samples {
namespace {

using namespace properties;
using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

RunRecord leak() {
  RunRecord run = run_of("2026-11-14T09:30:00Z");
  fail(run, 0);
  FindingRecord finding = finding_of(run, 0, Kind::leak, "3f9a0c55d2e81b47");
  finding.minimal = attention_scenario();
  finding.minimal.steps = {Past{{1}}, Append{{2}, {1}, 0}};
  finding.first = finding.worst = finding.minimal;
  finding.summary = "Step 1: the query at position 1 sees {0, 1, 2}, must see {0, 1}.";
  Evidence& evidence = finding.evidence;
  evidence.failing_step = 1;
  evidence.words = {
      "The cache holds 1 token. Step 1 appends 2 more (positions 1 and 2) and asks 1 query.",
      "The query stands at position 1: its origin is the number of past tokens.",
      "Causal attention lets it see the keys j with j <= 1, so {0, 1}.",
      "The target's answer is the mean of the values at {0, 1, 2}, each with weight 1/3.",
      "Key 2 comes after the query: the causal mask was not applied."};
  evidence.steps = {step("past 1", entry(1, 1, 0, 0)),
                    step("append 2 (1 query)", entry(3, 3, 0, 1))};
  evidence.steps[1].visibility = {seen(1, {0, 1}, {0, 1, 2})};
  evidence.steps[1].elements_compared = 8;
  evidence.steps[1].max_ratio = 699050.625;
  ElementEvidence element;
  element.query_position = 1;
  element.lane = 2;
  element.observed = 1.0 / 3;
  element.bound = 4.76837158203125e-07;
  element.ratio = 699050.625;
  element.term_weights = 2.86102294921875e-07;
  element.term_sums = 1.19209289550781e-07;
  element.term_store = 7.15255737304688e-08;
  evidence.steps[1].elements = {element};
  run.findings = {finding};
  return run;
}

/// A windowed cache: after an eviction late queries lose the oldest keys of their window.
RunRecord missing_key() {
  RunRecord run = run_of("2026-11-14T09:31:00Z");
  fail(run, 0).target = "cpu-plain";
  FindingRecord finding = finding_of(run, 0, Kind::missing_key, "81c4be20a7f3d96e");
  finding.minimal = windowed_scenario();
  finding.minimal.steps = {Append{{5}, {5}, 0}, Append{{4}, {4}, 0}};
  finding.first = finding.worst = finding.minimal;
  finding.summary = "Step 1: the query at position 5 does not see keys 2 and 3.";
  Evidence& evidence = finding.evidence;
  evidence.failing_step = 1;
  evidence.words = {"Step 1 appends 4 tokens to 5 in a buffer of 6 rows with a window of 4.",
                    "It evicts positions that its first query still reads, so it must be staged.",
                    "The query at position 5 must see {2, 3, 4, 5}; it sees {4, 5}.",
                    "The rows were evicted before the query read them."};
  evidence.steps = {step("append 5", entry(5, 5, 0, 5)), step("append 4", entry(9, 6, 3, 4, true))};
  evidence.steps[1].visibility = {seen(5, range(2, 6), {4, 5}), seen(6, range(3, 7), range(4, 7)),
                                  seen(7, range(4, 8), range(4, 8)),
                                  seen(8, range(5, 9), range(5, 9))};
  VisibilityEvidence unread = seen(8, range(5, 9), {});
  unread.head = 1;
  unread.measured = false;
  evidence.steps[1].visibility.push_back(unread);
  run.findings = {finding};
  return run;
}

/// After a rollback a row still holds the rejected draft.
RunRecord rows_after_rollback() {
  RunRecord run = run_of("2026-11-14T09:32:00Z");
  fail(run, 2);
  FindingRecord finding = finding_of(run, 2, Kind::stale_row, "b07e19d35c6a42f8");
  finding.minimal = windowed_scenario();
  finding.minimal.steps = {Append{{4}, {4}, 0}, Append{{2}, {2}, 0}, Rollback{{2}},
                           Append{{1}, {1}, 1}, Append{{3}, {3}, 1}};
  finding.first = finding.worst = finding.minimal;
  finding.summary = "Step 3: row 4 holds position 4 of generation 0, must hold generation 1.";
  finding.deterministic = false;
  finding.is_minimal = false;
  Evidence& evidence = finding.evidence;
  evidence.failing_step = 3;
  evidence.words = {"Steps 0 and 1 fill 6 rows; step 2 rolls 2 tokens back.",
                    "Step 3 writes position 4 again, with other content.",
                    "Row 4 still holds the first content: the write was skipped."};
  evidence.steps = {step("append 4", entry(4, 4, 0, 4)), step("append 2", entry(6, 6, 0, 2)),
                    step("rollback 2", entry(4, 4, 0, 0)), step("append 1", entry(5, 5, 0, 1)),
                    step("append 3", entry(8, 5, 3, 3, true))};
  evidence.steps[3].rows = {{0, 4, 4, 4, 0}};
  evidence.steps[4].rows = {{0, 1, 4, 4, 0}, {0, 4, 7, -1, 0}};
  run.findings = {finding};
  return run;
}

RunRecord over_bound() {
  RunRecord run = run_of("2026-11-14T09:33:00Z");
  fail(run, 1).max_bound_ratio = 9.5625;
  run.errors[0].histogram = {9012, 80000, 40000, 20000, 15000, 9000, 6000, 4000,
                             2000, 800,   280,   20,    0,     3,    2,    0};
  run.errors[0].max_ratio = 9.5625;
  FindingRecord finding = finding_of(run, 1, Kind::over_bound, "5ad2703c9e4f6b18");
  finding.minimal = attention_scenario();
  finding.minimal.batch = 2;
  finding.minimal.fill = {model::FillKind::random, 3, 0};
  finding.minimal.steps = {Append{{40, 40}, {2, 2}, 0}};
  finding.first = finding.worst = finding.minimal;
  finding.worst_ratio = 9.5625;
  finding.summary =
      "Step 0: query at position 1, head 0, lane 3: error 3.82e-06, bound 4e-07 (9.56 times).";
  Evidence& evidence = finding.evidence;
  evidence.failing_step = 0;
  evidence.words = {"One step of 40 keys, 2 queries in each of 2 entries.",
                    "Lane 3 differs from the exact result by 3.82e-06.",
                    "Rounding explains at most 4e-07 for this element."};
  evidence.notes = {"Visibility was not read back: the data is random."};
  evidence.steps = {step("append 40 (2 queries)", entry(40, 40, 0, 2))};
  evidence.steps[0].entries.push_back(entry(40, 40, 0, 2));
  for (int i = 0; i < 14; ++i) {
    ElementEvidence element;
    element.entry = 1;
    element.query_position = 1;
    element.query = 1;
    element.lane = 3 + i % 4;
    element.expected = 0.12345678901234567 * (i + 1);
    element.bound = 4e-07;
    element.ratio = 9.5625 / (1 + i);
    element.observed = element.expected + element.ratio * element.bound;
    element.term_weights = 2.4e-07, element.term_sums = 1e-07, element.term_underflow = 1e-12;
    element.term_store = 6e-08;
    evidence.steps[0].elements.push_back(element);
  }
  evidence.steps[0].elements_compared = 32;
  evidence.steps[0].max_ratio = 9.5625;
  run.findings = {finding};
  return run;
}

RunRecord not_finite() {
  RunRecord run = run_of("2026-11-14T09:34:00Z");
  fail(run, 1).max_bound_ratio = std::numeric_limits<double>::infinity();
  run.errors[0].histogram.back() = 4;
  run.errors[0].max_ratio = std::numeric_limits<double>::infinity();
  FindingRecord finding = finding_of(run, 1, Kind::not_finite, "e6604f8b1d27c93a");
  finding.minimal = attention_scenario();
  finding.minimal.mask = {model::MaskKind::boolean, 2, 100, 5, true};
  finding.minimal.steps = {Append{{3}, {2}, 0}};
  finding.first = finding.worst = finding.minimal;
  finding.trail.clear();
  finding.explain.clear();
  finding.nearest_passing.clear();
  finding.summary = "Step 0: the output of query 0 is NaN; every key is hidden, so it must be 0.";
  finding.evidence.failing_step = 0;
  finding.evidence.steps = {step("append 3 (2 queries)", entry(3, 3, 0, 2))};
  ElementEvidence element;
  element.observed = std::numeric_limits<double>::quiet_NaN();
  element.bound = 1e-45;
  element.ratio = std::numeric_limits<double>::infinity();
  finding.evidence.steps[0].elements = {element};
  finding.evidence.steps[0].elements_compared = 16;
  finding.evidence.steps[0].max_ratio = element.ratio;
  run.findings = {finding};
  return run;
}

RunRecord blind() {
  RunRecord run = run_of("2026-11-14T09:35:00Z");
  PropertyRecord& property = run.properties[1];
  property.status = Verdict::blind;
  property.blind = 1733;
  property.scenarios = 0;
  property.max_bound_ratio = 0;
  property.reason = "no planted fault would have been visible on this data";
  run.errors.clear();
  return run;
}

RunRecord errored() {
  RunRecord run = run_of("2026-11-14T09:36:00Z");
  fail(run, 2, Verdict::errored).reason = "writing the scenario failed: no space left on device";
  run.stop = "interrupted";
  run.notes = {"regression/0a1b.json is broken: steps = 3: must be a list of steps"};
  fail(run, 0);
  FindingRecord finding = finding_of(run, 0, Kind::crash, "0d93e5a8f2617cb4");
  finding.minimal = attention_scenario();
  finding.minimal.steps = {Append{{3}, {2}, 0}};
  finding.first = finding.worst = finding.minimal;
  finding.summary = "Step 0: the target died with signal 11 and was started again.";
  finding.evidence.failing_step = 0;
  finding.evidence.steps = {step("append 3 (2 queries)", entry(3, 3, 0, 2))};
  finding.evidence.steps[0].answer = "crash: signal 11 (segmentation fault)";
  // The contract refuses this one, so there is no timeline to draw.
  FindingRecord accepted = finding_of(run, 0, Kind::wrongly_accepted, "77aa120be45f9d03");
  accepted.minimal = windowed_scenario();
  accepted.minimal.cache.capacity = 3;
  accepted.minimal.steps = {Append{{3}, {3}, 0}};
  accepted.first = accepted.worst = accepted.minimal;
  accepted.summary = "Step 0: capacity 3 is below the window of 4, and the target answered.";
  accepted.evidence.failing_step = 0;
  accepted.evidence.steps = {step("append 3", entry(3, 3, 0, 3))};
  run.findings = {finding, accepted};
  return run;
}

/// 4,096 steps of decode in a block layout; the divergence is at step 2,000.
RunRecord large() {
  constexpr std::int64_t kSteps = 4096, kFailing = 2000;
  RunRecord run = run_of("2026-11-14T09:37:00Z");
  fail(run, 0).target = "cpu-plain";
  FindingRecord finding = finding_of(run, 0, Kind::leak, "4b5e8f1026d7c3a9");
  finding.minimal = windowed_scenario();
  finding.minimal.cache = {model::LayoutKind::block, 600, 512};
  finding.summary = "Step 2000: the query at position 2511 sees key 1999, which was evicted.";
  finding.minimal.steps.emplace_back(Append{{512}, {512}, 0});
  for (std::int64_t i = 1; i < kSteps; ++i) finding.minimal.steps.emplace_back(Append{{1}, {1}, 0});
  finding.evidence.failing_step = kFailing;
  const model::Timeline timeline(finding.minimal);
  for (const model::TimelineStep& around : timeline.steps()) {
    const model::EntryStep& e = around.entries[0];
    finding.evidence.steps.push_back(
        step(e.queries == 1 ? "append 1" : "append 512",
             entry(e.length, e.resident, e.evicted, e.queries, e.staged)));
  }
  std::vector<std::int64_t> observed = range(2000, 2512);
  observed.insert(observed.begin(), 1999);
  finding.evidence.steps[kFailing].visibility = {seen(2511, range(2000, 2512), observed)};
  finding.evidence.steps[kFailing].rows = {{0, 70, 2069, 1999, 0}};
  finding.evidence.notes = {"Answers of steps after the failing one were not judged."};
  run.findings = {finding};
  return run;
}

RunRecord hostile_record() {
  RunRecord run = leak();
  run.tool = hostile("tool"), run.compiler = hostile("compiler"), run.flags = hostile("flags");
  run.started = hostile("started"), run.machine = hostile("machine");
  run.arguments = hostile("arguments"), run.stop = hostile("stop");
  run.notes = {hostile("notes")};
  for (auto& t : run.targets) {
    t.name = hostile("target"), t.version = hostile("version"), t.reason = hostile("reason");
    t.arithmetic = hostile("arithmetic");
  }
  for (auto& p : run.properties) {
    p.property = hostile("property"), p.statement = hostile("statement");
    p.target = hostile("target"), p.reason = hostile("reason");
  }
  for (auto& c : run.coverage) c.name = hostile("situation"), c.target = hostile("target");
  for (auto& e : run.errors) {
    e.target = hostile("target"), e.element_type = hostile("type");
    e.worst_hash = hostile("worst_hash");
  }
  FindingRecord& f = run.findings[0];
  f.property = hostile("property"), f.target = hostile("target");
  f.target_version = hostile("target_version"), f.summary = hostile("summary");
  f.hash = hostile("hash"), f.file = hostile("file");
  f.nearest_passing = hostile("nearest_passing");
  for (auto& t : f.trail) t.pass = hostile("pass"), t.change = hostile("change");
  for (auto& text : f.explain) text = hostile("explain");
  for (auto& text : f.evidence.words) text = hostile("words");
  f.evidence.notes = {hostile("evidence_notes")};
  for (auto& s : f.evidence.steps) s.what = hostile("what"), s.answer = hostile("answer");
  run.findings.push_back(f);
  return run;
}

}  // namespace

std::string hostile(std::string_view where) {
  return fmt::format(
      "{}</script></style></title></textarea><!--<img src=x onerror=alert(1)>\"'`&lt;&amp;"
      "{{{{{{x}}}}}}{{{{#y}}}}]]>\x1b[31m\x07\u202Erev\u2066\xFF\xC3(\u00e9\u4e2d\n\tend",
      where);
}

std::vector<std::string_view> names() {
  return {"passed",     "leak",       "missing_key", "rows_after_rollback",
          "over_bound", "not_finite", "blind",       "errored",
          "large",      "hostile"};
}

properties::RunRecord record(std::string_view name) {
  if (name == "passed") return run_of("2026-11-14T09:29:00Z");
  if (name == "leak") return leak();
  if (name == "missing_key") return missing_key();
  if (name == "rows_after_rollback") return rows_after_rollback();
  if (name == "over_bound") return over_bound();
  if (name == "not_finite") return not_finite();
  if (name == "blind") return blind();
  if (name == "errored") return errored();
  if (name == "large") return large();
  if (name == "hostile") return hostile_record();
  throw std::invalid_argument(fmt::format("no sample record is called {}", name));
}

properties::RunRecord overfull() {
  RunRecord run = large();
  const auto multiply = [](auto& list, std::size_t count) {
    const auto original = list;
    while (list.size() < count) list.push_back(original[list.size() % original.size()]);
  };
  FindingRecord first = run.findings[0];
  for (auto& evidence : first.evidence.steps) multiply(evidence.entries, 8);
  first.minimal.batch = 8;
  for (auto& any : first.minimal.steps) {
    auto& append = std::get<Append>(any);
    append.tokens.assign(8, append.tokens[0]);
    append.queries.assign(8, append.queries[0]);
  }
  auto& failing = first.evidence.steps[2000];
  multiply(failing.rows, 64);
  for (std::size_t i = 0; i < failing.rows.size(); ++i) {
    failing.rows[i].entry = static_cast<std::int64_t>(i % 8);
    failing.rows[i].row = static_cast<std::int64_t>(i);
  }
  failing.elements.resize(64);
  first.evidence.words.assign(500, std::string(9000, 'w'));
  multiply(first.trail, 500);
  multiply(first.explain, 500);
  run.findings.assign(4, first);
  FindingRecord listed = first;  // Only named on the page, so its case may be short.
  listed.minimal.steps.resize(1);
  listed.evidence = {};
  run.findings.resize(60, listed);
  multiply(run.properties, 400);
  multiply(run.coverage, 400);
  multiply(run.errors, 40);
  multiply(run.targets, 200);
  return run;
}

}  // namespace kvcheck::reports::samples
