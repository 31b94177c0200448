// Finding the first scenario on which a property fails, for tests of the suite's power.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/target.h"
#include "properties/catalog.h"

namespace kvcheck::properties {

struct FirstFailure {
  model::Scenario scenario;
  Judgement judgement;
  std::int64_t scenarios = 0;  ///< Judged up to it, itself included.
};

enum class Walk { lattice_and_random, random_only };

/// Walks the lattice, then `draws` random scenarios of `seed`; empty when the properties held on
/// all of them.
std::optional<FirstFailure> first_failure(kernels::Target& target,
                                          const std::vector<const Property*>& properties,
                                          std::uint64_t seed, std::int64_t draws,
                                          Walk walk = Walk::lattice_and_random);
std::optional<FirstFailure> first_failure(kernels::Target& target, const Property& property,
                                          std::uint64_t seed, std::int64_t draws,
                                          Walk walk = Walk::lattice_and_random);

}  // namespace kvcheck::properties
