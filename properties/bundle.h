// Bundle: few runs of a case that differ from the main one in many ways that must not matter.
//
// Two runs that agree bit for bit agree along every axis on which they differ, unless one axis
// undoes what another does to the same bits; choices change from scenario to scenario, so that no
// fault stays undone. Where they disagree, every property on the axes is judged alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "properties/catalog.h"
#include "properties/compare_runs.h"
#include "properties/draw.h"

namespace kvcheck::properties {

class Bundle {
 public:
  /// Makes the runs. \pre `c` outlives the bundle
  explicit Bundle(Case& c);

  /// Whether the property joined runs, all of which agree with the main one.
  bool settles(const Property& property) const;

  /// What the property says alone; judged once.
  const Judgement& judge_alone(const Property& property);

  /// Where runs differ although every property that joined them holds alone; empty where there is
  /// no such difference.
  std::optional<Difference> unexplained();

  /// Properties that joined runs.
  std::size_t joined() const { return joined_.size(); }

 private:
  /// Makes one run of those that can join it; returns the others.
  std::vector<const Property*> run(std::vector<const Property*> joining, bool bitwise);

  Case& c_;
  std::vector<std::pair<const Property*, bool>> joined_;  // Whether its runs agree.
  std::map<std::string, Judgement> alone_;
  std::optional<Difference> difference_;
};

/// The choices of one axis on one scenario.
Draw axis_draw(const model::Scenario& scenario, std::string_view property);

}  // namespace kvcheck::properties
