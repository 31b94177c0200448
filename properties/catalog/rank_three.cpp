// input.rank_three: inputs of rank 3 and of rank 4 give the same.
#include "properties/catalog.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "format_bits";

void flip(model::Scenario& s) { s.input_rank = s.input_rank == 4 ? 3 : 4; }

/// out((B,S,N*H)) = out((B,N,S,H)).
Judgement judge(Case& c) {
  Variant other = unchanged(c);
  flip(other.scenario);
  other.words = c.scenario().input_rank == 4 ? "with inputs of rank 3" : "with inputs of rank 4";
  VariantJudging judging;
  judging.bitwise = c.capabilities().has(kPromise);
  judging.rows_suffice = true;
  if (!judging.bitwise) judging.kind = Kind::influence;
  return judge_variants(c, {other}, judging);
}

bool turn(Case& c, std::vector<Variant>& ways, Draw&) {
  model::Scenario other = c.scenario();
  flip(other);
  if (!cannot_run(c.target(), other).empty()) return false;
  for (Variant& way : ways) flip(way.scenario);
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (scenario.op != model::Operator::attention) return "the operator has inputs of one rank";
  return unpromised(target, "input_rank_3");
}

}  // namespace

Property rank_three_property() {
  return {
      "input.rank_three",
      "Inputs of rank 3 and of rank 4 give the same rows and outputs: equal bits where the target "
      "promises them, else within twice the bound.",
      "transposes left out or done twice, head sizes derived from the wrong extent",
      inapplicable,
      judge,
      "",
      {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
