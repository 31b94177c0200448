// Corpus, lattice, random.
#include "properties/audit/scenario_source.h"

#include <iterator>

#include <rapidcheck/Random.h>
#include <rapidcheck/Shrinkable.h>

#include "properties/audit/stretch.h"
#include "properties/convert.h"
#include "properties/generator.h"
#include "shrinkers/corpus.h"

namespace kvcheck::properties {
namespace {

constexpr std::uint64_t kSizes = 101;  // RapidCheck sizes run from 0 to 100.

/// Mixes seed and index, so that a draw is reached without drawing earlier ones.
rc::Random random_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15ull * (index + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return rc::Random(x ^ (x >> 31));
}

}  // namespace

ScenarioSource::ScenarioSource(const kernels::Capabilities& target, const SourceOptions& options)
    : target_(target), options_(options), generator_(scenario_generator(target)) {
  if (options.context > 0) return;
  for (const auto& stored : shrinkers::load_folder(options.corpus).entries) {
    if (unsupported_reason(target, stored.entry.scenario).empty()) {
      listed_.push_back(stored.entry.scenario);
    }
  }
  for (auto& scenario : lattice(target)) listed_.push_back(std::move(scenario));
}

std::optional<model::Scenario> ScenarioSource::at(std::uint64_t index) const {
  if (!random(index)) return listed_[static_cast<std::size_t>(index)];
  const std::uint64_t draw = index - listed_.size();
  auto scenario =
      generator_(random_at(options_.seed, draw), static_cast<int>(draw % kSizes)).value();
  if (options_.context > 0) {
    constexpr Stretch kWays[] = {Stretch::past, Stretch::wide, Stretch::last_entry,
                                 Stretch::first_append};
    return stretched(target_, scenario, options_.context, kWays[draw % std::size(kWays)]);
  }
  if (!model::validate(scenario).empty() || !unsupported_reason(target_, scenario).empty()) {
    return {};
  }
  return scenario;
}

}  // namespace kvcheck::properties
