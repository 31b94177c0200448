// target.repeat: two runs of one case are alike.
#include "properties/catalog.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "repeat_bits";

/// A second session, after whatever the target was asked since the first.
Judgement judge(Case& c) {
  Variant again = unchanged(c);
  again.words = "a second time";
  return judge_variants(c, {again}, {.kind = Kind::nondeterministic});
}

/// Every other run is a second session.
bool turn(Case&, std::vector<Variant>&, Draw&) { return true; }

std::string inapplicable(const model::Scenario&, const kernels::Capabilities& target) {
  return unpromised(target, kPromise);
}

}  // namespace

Property repeat_property() {
  return {"target.repeat",
          "Two runs of the same case in two sessions give the same bits, whatever the target did "
          "between them.",
          "state kept between sessions, uninitialised memory, order of arrival, alignment",
          inapplicable,
          judge,
          kPromise,
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
