// The scenarios of an audit: those of a run in the same order, or the same behind a long past.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/scenario_stream.h"

namespace kvcheck::properties {

struct SourceOptions {
  std::uint64_t seed = 1;
  std::int64_t context = 0;  ///< Absolute length at the queries, about; 0 = as a run draws it.
  std::filesystem::path corpus;
  bool random_only = false;  ///< Without corpus and lattice, as behind a context.
};

class ScenarioSource {
 public:
  ScenarioSource(const kernels::Capabilities& target, const SourceOptions& options);

  /// The scenario at `index`: corpus and lattice, then random draws without end. Behind a context
  /// every second draw is a short one that was stretched (stretch.h), the others were drawn long.
  /// Empty where the draw is nothing that the target takes. A pure function of the index.
  std::optional<model::Scenario> at(std::uint64_t index) const;

  /// Whether `index` is a random draw, which costly properties judge now and then.
  bool random(std::uint64_t index) const;

 private:
  kernels::Capabilities target_;
  std::int64_t context_;
  ScenarioStream stream_;  // As a run has it; with a context, drawn long.
  ScenarioStream short_;   // What is stretched.
};

}  // namespace kvcheck::properties
