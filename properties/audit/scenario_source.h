// The scenarios of an audit: those of a run in the same order, or the same behind a long past.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <rapidcheck/Gen.h>

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

struct SourceOptions {
  std::uint64_t seed = 1;
  std::int64_t context = 0;  ///< Absolute length of the past, about; 0 = as a run draws it.
  std::filesystem::path corpus;
};

class ScenarioSource {
 public:
  ScenarioSource(const kernels::Capabilities& target, const SourceOptions& options);

  /// The scenario at `index`: corpus, lattice, then random draws without end. Empty where the draw
  /// is nothing that the target takes. A pure function of the index.
  std::optional<model::Scenario> at(std::uint64_t index) const;

  /// Whether `index` is a random draw, which costly properties judge now and then.
  bool random(std::uint64_t index) const { return index >= listed_.size(); }

 private:
  kernels::Capabilities target_;
  SourceOptions options_;
  std::vector<model::Scenario> listed_;  // Corpus and lattice.
  rc::Gen<model::Scenario> generator_;
};

}  // namespace kvcheck::properties
