// One case, every property.
#include "properties/case_judge.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include "properties/mutate.h"
#include "properties/observations.h"

namespace kvcheck::properties {
namespace {

Judgement guarded(Case& c, const Property& property) {
  try {
    return judge(c, property);
  } catch (const std::exception& error) {
    return {Verdict::errored, Kind::over_bound, error.what(), {}, 0};
  }
}

/// Many scenarios are judged with few runs each; those that were chosen one by one with all.
Case::Mode mode_of(Phase phase) {
  return phase == Phase::random || phase == Phase::targeted ? Case::Mode::bundled
                                                            : Case::Mode::alone;
}

/// One case in its tally.
class CaseJudge {
 public:
  CaseJudge(kernels::Target& target, const model::Scenario& scenario, const Origin& origin,
            const JudgeOptions& options, Tally& tally)
      : scenario_(std::make_shared<const model::Scenario>(scenario)),
        origin_(origin),
        options_(options),
        tally_(tally),
        case_(target, *scenario_, mode_of(origin.phase)) {}

  void run() {
    const auto& properties = *options_.properties;
    tally_.properties.resize(properties.size());
    ++tally_.scenarios;
    note_coverage();
    auto& errors = tally_.errors[std::string(to_string(scenario_->element_type))];
    errors.histogram.resize(error_bin_edges().size(), 0);
    case_.ratio_sink = [&](std::span<const double> ratios) { note_ratios(errors, ratios); };
    for (std::size_t i = 0; i < properties.size(); ++i) {
      if (!properties[i]->inapplicable(*scenario_, case_.capabilities()).empty()) continue;
      note(i, guarded(case_, *properties[i]));
    }
    if (options_.candidates && cost_of(*scenario_, case_.timeline()) <= kMostTargetedCost) {
      tally_.candidates.push_back({blind_ ? -1 - score_ : score_, scenario_, origin_});
      keep_best(tally_.candidates, kCandidatesOfTally);
    }
    if (options_.observations) {
      tally_.observations +=
          observation_line(case_, origin_, worst_, worst_text_, options_.run_start);
    }
  }

 private:
  void note_coverage() {
    const auto& classes = coverage_classes();
    tally_.reached.resize(classes.size(), 0);
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (!options_.reachable[i]) continue;
      tally_.reached[i] += classes[i].reached(*scenario_, case_.timeline()) ? 1 : 0;
    }
  }

  void note_ratios(ErrorTally& errors, std::span<const double> ratios) {
    for (const double ratio : ratios) {
      if (std::isnan(ratio)) continue;
      ++errors.elements;
      ++errors.histogram[error_bin(ratio)];
      if (ratio > errors.max_ratio) {
        errors.max_ratio = ratio;
        errors.worst = scenario_;
      }
    }
  }

  void note(std::size_t index, Judgement judgement) {
    PropertyTally& entry = tally_.properties[index];
    ++tally_.verdicts;
    if (std::isfinite(judgement.max_ratio)) {
      entry.max_ratio = std::max(entry.max_ratio, judgement.max_ratio);
      if (judgement.max_ratio <= 1) score_ = std::max(score_, judgement.max_ratio);
    }
    std::string known;
    const Property& property = *(*options_.properties)[index];
    if (judgement.verdict == Verdict::failed && options_.known) {
      known = options_.known(case_, property, judgement);
    }
    count(entry, judgement.verdict, !known.empty());
    blind_ = blind_ || judgement.verdict == Verdict::blind;
    if (judgement.verdict != Verdict::passed && entry.reason.empty()) {
      entry.reason = judgement.text;
    }
    if (merge(worst_, judgement.verdict) != worst_) {
      worst_ = judgement.verdict;
      worst_text_ = property.id + ": " + judgement.text;
    }
    if (judgement.verdict == Verdict::failed) {
      tally_.failures.push_back(
          {index, std::move(judgement), scenario_, origin_, std::move(known)});
    }
  }

  static void count(PropertyTally& entry, Verdict verdict, bool known) {
    switch (verdict) {
      case Verdict::passed:
        ++entry.judged;
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
        ++entry.judged;
        ++(known ? entry.known : entry.failed);
        break;
    }
  }

  std::shared_ptr<const model::Scenario> scenario_;
  const Origin& origin_;
  const JudgeOptions& options_;
  Tally& tally_;
  Case case_;
  Verdict worst_ = Verdict::passed;
  std::string worst_text_;
  double score_ = 0;
  bool blind_ = false;
};

}  // namespace

void judge_case(kernels::Target& target, const model::Scenario& scenario, const Origin& origin,
                const JudgeOptions& options, Tally& tally) {
  CaseJudge(target, scenario, origin, options, tally).run();
}

Judgement judge_fresh(kernels::Target& target, const model::Scenario& scenario,
                      const Property& property) {
  try {
    Case c(target, scenario);
    return judge(c, property);
  } catch (const std::exception& error) {
    return {Verdict::errored, Kind::over_bound, error.what(), {}, 0};
  }
}

}  // namespace kvcheck::properties
