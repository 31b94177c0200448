// Scenario stream: the scenarios of a search in their order, each reached by its address alone.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/generator.h"

namespace kvcheck::properties {

/// Phases of a search in their order. Targeted scenarios come from what a search has seen, so the
/// stream has none.
enum class Phase { named, corpus, lattice, random, targeted };

/// "named", "corpus", ...
std::string_view to_string(Phase phase);
std::optional<Phase> phase_from(std::string_view name);

inline constexpr Phase kPhases[] = {Phase::named, Phase::corpus, Phase::lattice, Phase::random,
                                    Phase::targeted};

struct StreamOptions {
  std::uint64_t seed = 0;
  GeneratorFocus focus;
  std::set<Phase> phases{std::begin(kPhases), std::end(kPhases)};
  std::vector<model::Scenario> named;   ///< Given by the user, one by one.
  std::vector<model::Scenario> corpus;  ///< Stored ones.
};

/// A scenario and where it stands.
struct StreamedScenario {
  Phase phase = Phase::random;
  std::uint64_t index = 0;  ///< Within the phase. Of the random phase: the case index of the seed.
  model::Scenario scenario;
};

/// A pure source: what stands at an address depends on the capabilities and the options alone.
/// Any thread may ask at any time.
class ScenarioStream {
 public:
  ScenarioStream(const kernels::Capabilities& target, const StreamOptions& options);

  /// Scenarios of the phase; those of the random phase have no end (UINT64_MAX), or there are none
  /// where the target takes nothing within the focus.
  std::uint64_t count(Phase phase) const;

  /// Empty: there is none, or nothing valid was drawn there.
  std::optional<model::Scenario> at(Phase phase, std::uint64_t index) const;

  /// The stream from its first scenario on: named, corpus, lattice, random. Empty as above.
  std::optional<StreamedScenario> at(std::uint64_t position) const;

  /// Scenarios of the phases before the random one.
  std::uint64_t listed() const;

 private:
  std::optional<model::Scenario> random(std::uint64_t index) const;
  const std::vector<model::Scenario>* list(Phase phase) const;

  kernels::Capabilities target_;
  std::uint64_t seed_;
  bool drawable_;
  rc::Gen<model::Scenario> generator_;
  std::vector<model::Scenario> named_, corpus_, lattice_;
};

/// Independent random sources for the cases of a seed; `salt` tells the tries of one case apart.
rc::Random case_random(std::uint64_t seed, std::uint64_t index, std::uint64_t salt);

}  // namespace kvcheck::properties
