// cache.unspecified_rows: what rows outside the resident range hold changes nothing.
#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

/// Rows of the cache that hold another poison than the scenario's; padding keeps its own.
void poison_rows(const Case& c, Variant& way) {
  way.scenario.poison = other_poison(c);
  way.options.changes.push_back(fill_padding(c.fill().poison(c.scenario().poison)));
}

Judgement judge(Case& c) {
  Variant poisoned = unchanged(c);
  poison_rows(c, poisoned);
  poisoned.words = fmt::format("with {} instead of {} in rows outside the resident range",
                               to_string(poisoned.scenario.poison), to_string(c.scenario().poison));
  return judge_variants(c, {poisoned}, {.kind = Kind::influence});
}

bool turn(Case& c, std::vector<Variant>& ways, Draw&) {
  for (Variant& way : ways) poison_rows(c, way);
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
          "Rows outside the resident range have no influence: two runs that fill them "
          "differently give the same bits.",
          "capacity used for length, reads past the end, 0 * NaN, unused rows in the denominator",
          inapplicable,
          judge,
          "",
          {Axis::Run::together, turn, ""}};
}

}  // namespace kvcheck::properties
