// The phases.
#include "properties/search.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <string>

#include <fmt/format.h>
#include <rapidcheck/Random.h>

#include "model/scenario_json.h"
#include "properties/convert.h"
#include "properties/coverage.h"
#include "properties/finding.h"

namespace kvcheck::properties {
namespace {

constexpr int kSizes = 101;  // RapidCheck sizes run from 0 to 100.

ErrorRecord& error_record(RunRecord& record, const std::string& target, const std::string& type) {
  for (auto& errors : record.errors) {
    if (errors.target == target && errors.element_type == type) return errors;
  }
  record.errors.push_back(
      {target, type, 0, std::vector<std::int64_t>(error_bin_edges().size(), 0), 0, ""});
  return record.errors.back();
}

std::size_t error_bin(double ratio) {
  const auto& edges = error_bin_edges();
  return static_cast<std::size_t>(std::lower_bound(edges.begin(), edges.end(), ratio) -
                                  edges.begin());
}

/// Mixes run seed and case index, so that a case is reached without drawing earlier ones.
rc::Random case_random(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15ull * (index + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return rc::Random(x ^ (x >> 31));
}

}  // namespace

Judgement judge_fresh(kernels::Target& target, const model::Scenario& scenario,
                      const Property& property) {
  try {
    Case c(target, scenario);
    return property.judge(c);
  } catch (const std::exception& error) {
    return {Verdict::errored, Kind::over_bound, error.what(), {}, 0};
  }
}

Search::Search(kernels::Target& target, const SearchOptions& options, RunRecord& record,
               Clock::time_point run_start, SearchObserver observer)
    : target_(target),
      options_(options),
      record_(record),
      run_start_(run_start),
      observer_(std::move(observer)) {
  const auto& capabilities = target.capabilities();
  for (const Property* property : options.properties) {
    PropertyRecord entry;
    entry.property = property->id;
    entry.statement = property->statement;
    entry.target = capabilities.name;
    entry.reason = unpromised(capabilities, property->promise);
    record_.properties.push_back(entry);
  }
  for (const CoverageClass& item : coverage_classes()) {
    coverage_.push_back(record_.coverage.size());
    if (item.reachable(capabilities)) {
      record_.coverage.push_back({item.name, capabilities.name, 0, 0});
    } else {
      coverage_.back() = SIZE_MAX;
    }
  }
}

bool Search::stop() const {
  return Clock::now() >= options_.deadline || (options_.interrupted && *options_.interrupted);
}

PropertyRecord& Search::property_record(const Property& property) {
  const auto it = std::find_if(
      record_.properties.begin(), record_.properties.end(), [&](const PropertyRecord& entry) {
        return entry.property == property.id && entry.target == target_.capabilities().name;
      });
  return *it;
}

void Search::run() {
  observer_.on_phase("corpus");
  replay_corpus();
  observer_.on_phase("lattice");
  walk_lattice();
  observer_.on_phase("random");
  draw_random();
}

void Search::replay_corpus() {
  for (const auto& folder : options_.corpus) {
    const auto loaded = shrinkers::load_folder(folder);
    for (const auto& broken : loaded.broken) {
      const std::string note = fmt::format("corpus file {} was passed over: {}",
                                           broken.file.filename().string(), broken.message);
      if (std::find(record_.notes.begin(), record_.notes.end(), note) == record_.notes.end()) {
        record_.notes.push_back(note);
      }
    }
    for (const auto& stored : loaded.entries) {
      if (stop()) return;
      const auto& entry = stored.entry;
      if (!entry.target.empty() && entry.target != target_.capabilities().name) continue;
      if (!unsupported_reason(target_.capabilities(), entry.scenario).empty()) continue;
      examine(entry.scenario, {}, options_.properties);
    }
  }
}

void Search::walk_lattice() {
  for (const auto& scenario : lattice(target_.capabilities())) {
    if (stop()) return;
    const bool wanted =
        scenario.op == model::Operator::attention
            ? (scenario.nonpad_kv_seqlen ? options_.focus.attention_nonpad
                                         : options_.focus.attention_past)
            : (scenario.cache.layout != model::LayoutKind::full ? options_.focus.gqa_block
                                                                : options_.focus.gqa_full);
    if (wanted) examine(scenario, {}, options_.properties);
  }
}

void Search::draw_random() {
  const auto generator = scenario_generator(target_.capabilities(), options_.focus);
  std::int64_t drawn = 0;
  for (std::uint64_t index = 0; !stop(); ++index) {
    if (options_.cases > 0 && drawn >= options_.cases) return;
    const int size = static_cast<int>(index % kSizes);
    const auto scenario = generator(case_random(options_.seed, index), size).value();
    // A draw that the target does not claim (an entry with no token, say) costs nothing.
    if (!model::validate(scenario).empty() ||
        !unsupported_reason(target_.capabilities(), scenario).empty()) {
      continue;
    }
    ++drawn;
    examine(scenario, {index, true}, options_.properties);
  }
}

void Search::examine(const model::Scenario& scenario, const Origin& origin,
                     const std::vector<const Property*>& properties) {
  observer_.before_case(scenario);
  using enum Case::Mode;
  Case c(target_, scenario, origin.random ? bundled : alone);
  auto& errors = error_record(record_, target_.capabilities().name,
                              std::string(to_string(scenario.element_type)));
  c.ratio_sink = [&errors, &scenario](double ratio) {
    if (std::isnan(ratio)) return;
    ++errors.elements;
    ++errors.histogram[error_bin(ratio)];
    if (ratio > errors.max_ratio) {
      errors.max_ratio = ratio;
      errors.worst_hash = model::content_hash(scenario);
    }
  };
  ++record_.scenarios;
  note_coverage(c);
  for (const Property* property : properties) {
    if (!property->inapplicable(scenario, target_.capabilities()).empty()) continue;
    Judgement judgement;
    try {
      judgement = judge(c, *property);
    } catch (const std::exception& error) {
      judgement = {Verdict::errored, Kind::over_bound, error.what(), {}, 0};
    }
    note_judgement(*property, judgement, c, origin);
  }
  observer_.after_case();
}

void Search::note_coverage(const Case& c) {
  const auto& classes = coverage_classes();
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (coverage_[i] == SIZE_MAX) continue;
    auto& entry = record_.coverage[coverage_[i]];
    ++entry.cases;
    entry.hits += classes[i].reached(c.scenario(), c.timeline()) ? 1 : 0;
  }
}

void Search::note_judgement(const Property& property, const Judgement& judgement, const Case& c,
                            const Origin& origin) {
  PropertyRecord& entry = property_record(property);
  ++record_.verdicts;
  if (std::isfinite(judgement.max_ratio)) {
    entry.max_bound_ratio = std::max(entry.max_bound_ratio, judgement.max_ratio);
  }
  switch (judgement.verdict) {
    case Verdict::passed:
      ++entry.scenarios;
      break;
    case Verdict::skipped:
      ++entry.skipped;
      break;
    case Verdict::blind:
      ++entry.blind;
      break;
    case Verdict::errored:
      ++entry.errored;
      break;
    case Verdict::failed:
      ++entry.scenarios;
      ++entry.failed;
      break;
  }
  if (judgement.verdict != Verdict::passed && entry.reason.empty()) entry.reason = judgement.text;
  entry.status = entry.errored > 0     ? Verdict::errored
                 : entry.failed > 0    ? Verdict::failed
                 : entry.scenarios > 0 ? Verdict::passed
                 : entry.blind > 0     ? Verdict::blind
                                       : Verdict::skipped;
  if (judgement.verdict == Verdict::failed) {
    record_finding(property, judgement, c.scenario(), origin);
  }
}

void Search::record_finding(const Property& property, const Judgement& judgement,
                            const model::Scenario& scenario, const Origin& origin) {
  const std::string key = signature(property.id, target_.capabilities().name, judgement.kind);
  if (const auto known = findings_.find(key); known != findings_.end()) {
    FindingRecord& finding = record_.findings[known->second];
    ++finding.occurrences;
    if (judgement.max_ratio > finding.worst_ratio) {
      finding.worst_ratio = judgement.max_ratio;
      finding.worst = scenario;
    }
    return;
  }
  const double found_after = std::chrono::duration<double>(Clock::now() - run_start_).count();
  FindingRecord finding =
      investigate(target_, property, judgement, scenario, {options_.shrink, true, 3});
  finding.case_index = origin.case_index;
  finding.seconds = found_after;
  shrinkers::CorpusEntry stored;
  stored.scenario = finding.minimal;
  stored.property = property.id;
  stored.target = finding.target;
  stored.kind = to_string(judgement.kind);
  stored.summary = finding.summary;
  stored.seed = options_.seed;
  stored.case_index = origin.random ? static_cast<std::int64_t>(origin.case_index) : -1;
  finding.file = shrinkers::save(stored, options_.failing).filename().string();
  stored.scenario = scenario;
  stored.summary = judgement.text;
  shrinkers::save(stored, options_.origin);
  findings_[key] = record_.findings.size();
  record_.findings.push_back(std::move(finding));
  observer_.on_finding(record_.findings.back());
}

}  // namespace kvcheck::properties
