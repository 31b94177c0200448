// input.packed: query, key and value in one tensor or in three give the same.
#include "properties/catalog.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "format_bits";

void flip(model::Scenario& s) { s.packed_qkv = !s.packed_qkv; }

/// out([Q|K|V] as one tensor) = out(Q, K, V).
Judgement judge(Case& c) {
  Variant other = unchanged(c);
  flip(other.scenario);
  other.words = c.scenario().packed_qkv ? "with query, key and value apart" : "with packed_qkv";
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
  if (scenario.op != model::Operator::gqa) return "the operator packs nothing";
  return unpromised(target, "packed_qkv");
}

}  // namespace

Property packed_property() {
  return {
      "input.packed",
      "Query, key and value in one tensor or in three give the same rows and outputs: equal bits "
      "where the target promises them, else within twice the bound.",
      "offsets of keys and values behind queries, strides of a packed row, heads counted twice",
      inapplicable,
      judge,
      "",
      {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
