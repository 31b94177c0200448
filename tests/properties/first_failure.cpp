// The walk.
#include "tests/properties/first_failure.h"

#include <rapidcheck/Random.h>
#include <rapidcheck/Shrinkable.h>

#include "properties/convert.h"
#include "properties/generator.h"
#include "properties/search.h"

namespace kvcheck::properties {

std::optional<FirstFailure> first_failure(kernels::Target& target, const Property& property,
                                          std::uint64_t seed, std::int64_t draws, Walk walk) {
  return first_failure(target, std::vector<const Property*>{&property}, seed, draws, walk);
}

std::optional<FirstFailure> first_failure(kernels::Target& target,
                                          const std::vector<const Property*>& properties,
                                          std::uint64_t seed, std::int64_t draws, Walk walk) {
  std::int64_t judged = 0;
  const auto judge = [&](const model::Scenario& scenario) -> std::optional<FirstFailure> {
    Case c(target, scenario);
    ++judged;
    for (const Property* property : properties) {
      if (!property->inapplicable(scenario, target.capabilities()).empty()) continue;
      const Judgement judgement = property->judge(c);
      if (judgement.verdict == Verdict::failed) return FirstFailure{scenario, judgement, judged};
    }
    return std::nullopt;
  };
  const bool with_lattice = walk == Walk::lattice_and_random;
  const auto grid = with_lattice ? lattice(target.capabilities()) : std::vector<model::Scenario>{};
  for (const auto& scenario : grid) {
    if (auto failure = judge(scenario)) return failure;
  }
  const auto generator = scenario_generator(target.capabilities());
  for (std::int64_t i = 0; i < draws; ++i) {
    const auto scenario = generator(rc::Random(seed * 1000003 + static_cast<std::uint64_t>(i)),
                                    static_cast<int>(i % 101))
                              .value();
    if (!model::validate(scenario).empty() ||
        !unsupported_reason(target.capabilities(), scenario).empty()) {
      continue;
    }
    if (auto failure = judge(scenario)) return failure;
  }
  return std::nullopt;
}

}  // namespace kvcheck::properties
