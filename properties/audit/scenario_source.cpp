// Streams of a search.
#include "properties/audit/scenario_source.h"

#include <iterator>

#include "properties/audit/stretch.h"
#include "properties/convert.h"
#include "shrinkers/corpus.h"

namespace kvcheck::properties {
namespace {

StreamOptions stream_options(const kernels::Capabilities& target, const SourceOptions& options,
                             std::int64_t context) {
  StreamOptions stream;
  stream.seed = options.seed;
  stream.focus.context_length = context;
  if (options.context > 0 || options.random_only) {
    stream.phases = {Phase::random};
    return stream;
  }
  for (const auto& stored : shrinkers::load_folder(options.corpus).entries) {
    if (unsupported_reason(target, stored.entry.scenario).empty()) {
      stream.corpus.push_back(stored.entry.scenario);
    }
  }
  return stream;
}

constexpr Stretch kWays[] = {Stretch::past, Stretch::wide, Stretch::last_entry,
                             Stretch::first_append};

}  // namespace

ScenarioSource::ScenarioSource(const kernels::Capabilities& target, const SourceOptions& options)
    : target_(target),
      context_(options.context),
      stream_(target, stream_options(target, options, options.context)),
      short_(target, stream_options(target, options, 0)) {}

bool ScenarioSource::random(std::uint64_t index) const {
  return context_ > 0 || index >= stream_.listed();
}

std::optional<model::Scenario> ScenarioSource::at(std::uint64_t index) const {
  if (context_ == 0) {
    auto found = stream_.at(index);
    if (!found) return {};
    return std::move(found->scenario);
  }
  const std::uint64_t draw = index / 2;
  if (index % 2 == 0) return stream_.at(Phase::random, draw);
  const auto scenario = short_.at(Phase::random, draw);
  if (!scenario) return {};
  return stretched(target_, *scenario, context_, kWays[draw % std::size(kWays)]);
}

}  // namespace kvcheck::properties
