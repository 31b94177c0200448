// Adding tallies to a record.
#include "properties/tally.h"

#include <algorithm>
#include <cmath>

#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

ErrorRecord& error_record(RunRecord& record, const std::string& target, const std::string& type) {
  for (auto& errors : record.errors) {
    if (errors.target == target && errors.element_type == type) return errors;
  }
  record.errors.push_back(
      {target, type, 0, std::vector<std::int64_t>(error_bin_edges().size(), 0), 0, ""});
  return record.errors.back();
}

}  // namespace

PhaseRecord& phase_entry(RunRecord& record, const std::string& target, Phase phase) {
  for (auto& entry : record.phases) {
    if (entry.target == target && entry.phase == to_string(phase)) return entry;
  }
  record.phases.push_back({std::string(to_string(phase)), target, 0, 0, 0, 0, 0, "running"});
  return record.phases.back();
}

namespace {

/// Index of the entry of that property and target; it is added where a resumed record has none.
std::size_t property_entry(RunRecord& record, const kernels::Capabilities& target,
                           const Property& property) {
  for (std::size_t i = 0; i < record.properties.size(); ++i) {
    const auto& entry = record.properties[i];
    if (entry.property == property.id && entry.target == target.name) return i;
  }
  PropertyRecord entry;
  entry.property = property.id;
  entry.statement = property.statement;
  entry.target = target.name;
  entry.reason = unpromised(target, property.promise);
  record.properties.push_back(std::move(entry));
  return record.properties.size() - 1;
}

std::size_t coverage_entry(RunRecord& record, const kernels::Capabilities& target,
                           const CoverageClass& item) {
  if (!item.reachable(target)) return kNone;
  for (std::size_t i = 0; i < record.coverage.size(); ++i) {
    if (record.coverage[i].name == item.name && record.coverage[i].target == target.name) return i;
  }
  CoverageRecord entry;
  entry.name = item.name;
  entry.target = target.name;
  record.coverage.push_back(std::move(entry));
  return record.coverage.size() - 1;
}

}  // namespace

void keep_best(std::vector<Candidate>& candidates, std::size_t most) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  const auto same = [](const Candidate& a, const Candidate& b) { return a.score == b.score; };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), same), candidates.end());
  const auto blind = std::find_if(candidates.begin(), candidates.end(),
                                  [](const Candidate& c) { return c.score < 0; });
  const auto blind_most = static_cast<std::ptrdiff_t>(most / 4);
  const auto sighted_most = static_cast<std::ptrdiff_t>(most) - blind_most;
  const auto blind_kept = std::min(candidates.end() - blind, blind_most);
  const auto sighted_kept = std::min(blind - candidates.begin(), sighted_most);
  std::rotate(candidates.begin() + sighted_kept, blind, blind + blind_kept);
  candidates.resize(static_cast<std::size_t>(sighted_kept + blind_kept));
}

RecordTotals::RecordTotals(RunRecord& record, const kernels::Capabilities& target,
                           const std::vector<const Property*>& properties)
    : record_(record), target_(target.name) {
  for (const Property* property : properties) {
    properties_.push_back(property_entry(record, target, *property));
  }
  for (const CoverageClass& item : coverage_classes()) {
    coverage_.push_back(coverage_entry(record, target, item));
  }
}

void RecordTotals::add(const Tally& tally, Phase phase) {
  record_.scenarios += tally.scenarios;
  record_.verdicts += tally.verdicts;
  PhaseRecord& entry = phase_entry(record_, target_, phase);
  entry.cases += tally.scenarios;
  entry.rejected += tally.rejected;
  entry.draw_seconds += tally.draw_seconds;
  entry.judge_seconds += tally.judge_seconds;
  entry.next = tally.end;
  add_properties(tally);
  add_coverage(tally, phase);
  add_errors(tally);
}

void RecordTotals::add_properties(const Tally& tally) {
  for (std::size_t i = 0; i < tally.properties.size(); ++i) {
    const PropertyTally& more = tally.properties[i];
    PropertyRecord& entry = record_.properties[properties_[i]];
    entry.scenarios += more.judged;
    entry.skipped += more.skipped;
    entry.blind += more.blind;
    entry.failed += more.failed;
    entry.known += more.known;
    entry.errored += more.errored;
    entry.max_bound_ratio = std::max(entry.max_bound_ratio, more.max_ratio);
    if (entry.reason.empty()) entry.reason = more.reason;
    entry.status = status_of(entry);
  }
}

void RecordTotals::add_coverage(const Tally& tally, Phase phase) {
  for (std::size_t i = 0; i < tally.reached.size(); ++i) {
    if (coverage_[i] == kNone) continue;
    CoverageRecord& entry = record_.coverage[coverage_[i]];
    entry.cases += tally.scenarios;
    entry.hits += tally.reached[i];
    if (phase == Phase::random) {
      entry.drawn += tally.scenarios;
      entry.drawn_hits += tally.reached[i];
    }
  }
}

void RecordTotals::add_errors(const Tally& tally) {
  for (const auto& [type, more] : tally.errors) {
    ErrorRecord& entry = error_record(record_, target_, type);
    entry.elements += more.elements;
    for (std::size_t i = 0; i < more.histogram.size(); ++i) entry.histogram[i] += more.histogram[i];
    if (more.max_ratio > entry.max_ratio) {
      entry.max_ratio = more.max_ratio;
      entry.worst_hash = model::content_hash(*more.worst);
    }
  }
}

Verdict status_of(const PropertyRecord& entry) {
  if (entry.errored > 0) return Verdict::errored;
  if (entry.failed > 0) return Verdict::failed;
  if (entry.scenarios > 0) return Verdict::passed;
  return entry.blind > 0 ? Verdict::blind : Verdict::skipped;
}

}  // namespace kvcheck::properties
