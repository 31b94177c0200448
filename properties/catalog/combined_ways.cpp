// target.combined_ways: ways to run a case that hold one by one hold together.
#include <cmath>

#include "properties/bundle.h"
#include "properties/catalog.h"

namespace kvcheck::properties {
namespace {

/// out(a and b and c ...) = out, where out(a) = out, out(b) = out, ...
Judgement judge(Case& c) {
  if (!c.execution().complete) return Judgement::skipped(broke_off(c.scenario(), c.execution()));
  Bundle& bundle = c.bundle();
  if (bundle.joined() < 2) return Judgement::skipped("there are no two ways to combine");
  const auto difference = bundle.unexplained();
  if (!difference) return {};
  Judgement judgement = Judgement::failed(
      std::isinf(difference->ratio) ? Kind::bits_difference : Kind::influence,
      difference->sentence + "; each of these properties holds alone", difference->hint);
  judgement.max_ratio = difference->ratio;
  return judgement;
}

}  // namespace

Property combined_ways_property() {
  return {"target.combined_ways",
          "Ways to run a case that change nothing one by one change nothing together, compared as "
          "closely as the target promises for each.",
          "paths taken only where two conditions meet, such as a capacity, a split and a number of "
          "threads",
          [](const model::Scenario&, const kernels::Capabilities&) { return std::string(); },
          judge};
}

}  // namespace kvcheck::properties
