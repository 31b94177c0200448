// What a search does with a failure: kept by its signature, investigated, stored.
#include <algorithm>

#include <fmt/format.h>

#include "model/scenario_json.h"
#include "properties/finding.h"
#include "properties/search.h"

namespace kvcheck::properties {

std::string Search::signature_of(const Failure& failure) const {
  return signature(options_.properties[failure.property]->id, target_.capabilities().name,
                   failure.judgement.kind, failure.judgement.rule) +
         "|" + failure.known;
}

std::optional<std::size_t> Search::note_failure(const Failure& failure) {
  for (KnownRecord& known : record_.known) {
    const bool meant = known.file == failure.known && known.target == target_.capabilities().name;
    if (meant) ++known.hits;
  }
  const std::string key = signature_of(failure);
  if (const auto found = findings_.find(key); found != findings_.end()) {
    FindingRecord& finding = record_.findings[found->second];
    ++finding.occurrences;
    if (failure.judgement.max_ratio > finding.worst_ratio) {
      finding.worst_ratio = failure.judgement.max_ratio;
      finding.worst = *failure.scenario;
    }
    return std::nullopt;
  }
  FindingRecord finding;
  finding.property = options_.properties[failure.property]->id;
  finding.target = target_.capabilities().name;
  finding.target_version = target_.capabilities().version;
  finding.kind = failure.judgement.kind;
  finding.rule = failure.judgement.rule;
  finding.summary = failure.judgement.text;
  finding.minimal = finding.first = finding.worst = *failure.scenario;
  finding.worst_ratio = failure.judgement.max_ratio;
  finding.hash = model::content_hash(finding.minimal);
  finding.phase = to_string(failure.origin.phase);
  finding.case_index = failure.origin.index;
  finding.seconds = std::chrono::duration<double>(Clock::now() - run_start_).count();
  finding.is_minimal = finding.investigated = false;
  finding.known = failure.known;
  findings_[key] = record_.findings.size();
  record_.findings.push_back(std::move(finding));
  return record_.findings.size() - 1;
}

void Search::investigate_at(std::size_t index, const Judgement& judgement) {
  const FindingRecord before = record_.findings[index];
  const Property* property = find_property(before.property);
  for (const Property* candidate : options_.properties) {
    if (candidate->id == before.property) property = candidate;
  }
  FindingOptions options{options_.shrink, true, 3};
  options.interrupted = options_.interrupted;
  options.before_run = observer_.before_again;
  options.explains = options_.known;
  options.known = before.known;
  FindingRecord finding = investigate(target_, *property, judgement, before.first, options);
  finding.case_index = before.case_index;
  finding.phase = before.phase;
  finding.seconds = before.seconds;
  finding.known = before.known;
  finding.occurrences = before.occurrences;
  if (judgement.max_ratio < before.worst_ratio) {
    finding.worst_ratio = before.worst_ratio;
    finding.worst = before.worst;
  }
  store(finding, judgement);
  drop_unshrunk(before.file, finding.file, index);
  const bool differs = finding.bits_differ;
  record_.findings[index] = std::move(finding);
  if (observer_.on_finding) observer_.on_finding(record_.findings[index]);
  if (differs) note_nondeterminism(index);
}

void Search::drop_unshrunk(const std::string& file, const std::string& kept,
                           std::size_t index) const {
  if (options_.failing.empty() || file.empty() || file == kept) return;
  for (std::size_t i = 0; i < record_.findings.size(); ++i) {
    if (i != index && record_.findings[i].file == file) return;
  }
  std::error_code ignored;
  std::filesystem::remove(options_.failing / file, ignored);
}

/// Outputs of a promised repeat that differ in their bits are a finding whatever failed first.
void Search::note_nondeterminism(std::size_t index) {
  const FindingRecord source = record_.findings[index];
  if (!target_.capabilities().has("repeat_bits")) return;
  const std::string key = signature("target.repeat", source.target, Kind::nondeterministic) + "|";
  if (findings_.count(key) > 0) return;
  FindingRecord finding;
  finding.property = "target.repeat";
  finding.target = source.target;
  finding.target_version = source.target_version;
  finding.kind = Kind::nondeterministic;
  finding.summary = "the outputs of one scenario differ in their bits between runs, met where " +
                    source.property + " failed";
  finding.minimal = finding.first = finding.worst = source.first;
  finding.hash = model::content_hash(finding.minimal);
  finding.phase = source.phase;
  finding.case_index = source.case_index;
  finding.seconds = source.seconds;
  finding.is_minimal = finding.deterministic = false;
  store(finding, Judgement::failed(finding.kind, finding.summary));
  findings_[key] = record_.findings.size();
  record_.findings.push_back(std::move(finding));
  if (observer_.on_finding) observer_.on_finding(record_.findings.back());
}

void Search::store(FindingRecord& finding, const Judgement& judgement) const {
  if (options_.failing.empty()) return;
  shrinkers::CorpusEntry entry = corpus_entry(finding);
  entry.seed = options_.seed;
  entry.case_index = finding.phase == "random" ? static_cast<std::int64_t>(finding.case_index) : -1;
  finding.file = shrinkers::save(entry, options_.failing).filename().string();
  entry.scenario = finding.first;
  entry.summary = judgement.text;
  if (!options_.origin.empty()) shrinkers::save(entry, options_.origin);
}

void Search::store_near() const {
  constexpr std::size_t kStored = 8;
  if (options_.near.empty() || candidates_.empty()) return;
  const std::string& name = target_.capabilities().name;
  std::set<std::filesystem::path> kept;
  for (const Candidate& candidate : candidates_) {
    if (candidate.score <= 0 || kept.size() == kStored) break;
    shrinkers::CorpusEntry entry;
    entry.scenario = *candidate.scenario;
    entry.target = name;
    entry.summary = fmt::format("largest bound ratio {:.3g}", candidate.score);
    entry.seed = options_.seed;
    kept.insert(shrinkers::save(entry, options_.near));
  }
  for (const auto& stored : shrinkers::load_folder(options_.near).entries) {
    std::error_code ignored;
    if (stored.entry.target == name && kept.count(stored.file) == 0) {
      std::filesystem::remove(stored.file, ignored);
    }
  }
}

}  // namespace kvcheck::properties
