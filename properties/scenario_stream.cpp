// The addresses of scenarios.
#include "properties/scenario_stream.h"

#include <limits>
#include <utility>

#include <rapidcheck/Random.h>
#include <rapidcheck/Shrinkable.h>

#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

constexpr std::uint64_t kSizes = 101;  // RapidCheck sizes run from 0 to 100.
constexpr std::uint64_t kTries = 12;   // Draws at one address until one is taken.

/// Which of the lattice a focus leaves.
bool wanted(const GeneratorFocus& focus, const model::Scenario& s) {
  if (s.op == model::Operator::attention) {
    return s.nonpad_kv_seqlen ? focus.attention_nonpad : focus.attention_past;
  }
  return s.cache.layout != model::LayoutKind::full ? focus.gqa_block : focus.gqa_full;
}

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

std::vector<model::Scenario> taken(const kernels::Capabilities& target,
                                   const std::vector<model::Scenario>& scenarios) {
  std::vector<model::Scenario> result;
  for (const auto& scenario : scenarios) {
    if (model::validate(scenario).empty() && unsupported_reason(target, scenario).empty()) {
      result.push_back(scenario);
    }
  }
  return result;
}

}  // namespace

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::named:
      return "named";
    case Phase::corpus:
      return "corpus";
    case Phase::lattice:
      return "lattice";
    case Phase::random:
      return "random";
    case Phase::targeted:
      return "targeted";
  }
  return "";
}

std::optional<Phase> phase_from(std::string_view name) {
  for (const Phase phase : kPhases) {
    if (name == to_string(phase)) return phase;
  }
  return std::nullopt;
}

rc::Random case_random(std::uint64_t seed, std::uint64_t index, std::uint64_t salt) {
  return rc::Random(mixed(mixed(seed + 0x9e3779b97f4a7c15ull * (index + 1)) + salt));
}

ScenarioStream::ScenarioStream(const kernels::Capabilities& target, const StreamOptions& options)
    : target_(target),
      seed_(options.seed),
      drawable_(options.phases.count(Phase::random) > 0 && can_draw(target, options.focus)),
      generator_(scenario_generator(target, options.focus)) {
  if (options.phases.count(Phase::named)) named_ = taken(target, options.named);
  if (options.phases.count(Phase::corpus)) corpus_ = taken(target, options.corpus);
  // The lattice is of short contexts.
  if (options.phases.count(Phase::lattice) && options.focus.context_length == 0) {
    for (auto& scenario : lattice(target)) {
      if (wanted(options.focus, scenario)) lattice_.push_back(std::move(scenario));
    }
  }
}

const std::vector<model::Scenario>* ScenarioStream::list(Phase phase) const {
  switch (phase) {
    case Phase::named:
      return &named_;
    case Phase::corpus:
      return &corpus_;
    case Phase::lattice:
      return &lattice_;
    default:
      return nullptr;
  }
}

std::uint64_t ScenarioStream::count(Phase phase) const {
  if (const auto* scenarios = list(phase)) return scenarios->size();
  return phase == Phase::random && drawable_ ? std::numeric_limits<std::uint64_t>::max() : 0;
}

std::uint64_t ScenarioStream::listed() const {
  return named_.size() + corpus_.size() + lattice_.size();
}

std::optional<model::Scenario> ScenarioStream::at(Phase phase, std::uint64_t index) const {
  if (index >= count(phase)) return std::nullopt;
  const auto* scenarios = list(phase);
  return scenarios ? std::optional(scenarios->at(index)) : random(index);
}

std::optional<StreamedScenario> ScenarioStream::at(std::uint64_t position) const {
  for (const Phase phase : {Phase::named, Phase::corpus, Phase::lattice, Phase::random}) {
    if (position < count(phase)) {
      auto scenario = at(phase, position);
      if (!scenario) return std::nullopt;
      return StreamedScenario{phase, position, std::move(*scenario)};
    }
    position -= count(phase);
  }
  return std::nullopt;
}

std::optional<model::Scenario> ScenarioStream::random(std::uint64_t index) const {
  const int size = static_cast<int>(index % kSizes);
  for (std::uint64_t salt = 0; salt < kTries; ++salt) {
    auto scenario = generator_(case_random(seed_, index, salt), size).value();
    // A draw that the target does not claim (an entry with no token, say) is drawn again.
    if (model::validate(scenario).empty() && unsupported_reason(target_, scenario).empty()) {
      return scenario;
    }
  }
  return std::nullopt;
}

}  // namespace kvcheck::properties
