// cache.unspecified_rows: what rows outside the resident range hold changes nothing.
#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

/// A poison unlike the scenario's own; NaN only for targets that promise to bear it.
model::Poison other_poison(const Case& c) {
  if (bears_nan(c.capabilities(), c.scenario()) && c.scenario().poison != model::Poison::nan) {
    return model::Poison::nan;
  }
  return c.scenario().poison == model::Poison::huge ? model::Poison::finite : model::Poison::huge;
}

Judgement judge(Case& c) {
  Variant poisoned = unchanged(c);
  poisoned.scenario.poison = other_poison(c);
  poisoned.words = fmt::format("with {} instead of {} in rows outside the resident range",
                               to_string(poisoned.scenario.poison), to_string(c.scenario().poison));
  return judge_variants(c, {poisoned}, {.kind = Kind::influence});
}

bool turn(Case& c, std::vector<Variant>& ways, Draw&) {
  const model::Poison poison = other_poison(c);
  for (Variant& way : ways) way.scenario.poison = poison;
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  const bool buffer = scenario.op == model::Operator::gqa || scenario.nonpad_kv_seqlen;
  return buffer ? "" : "a concatenated cache has no row outside the resident range";
}

}  // namespace

Property unspecified_rows_property() {
  return {"cache.unspecified_rows",
          "Rows outside the resident range and padding tokens have no influence: two runs that "
          "fill them differently give the same bits.",
          "capacity used for length, reads past the end, 0 * NaN, padding in the denominator",
          inapplicable,
          judge,
          "",
          {Axis::Run::together, turn, ""}};
}

}  // namespace kvcheck::properties
