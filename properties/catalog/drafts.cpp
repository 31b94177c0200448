// cache.drafts: tokens that are appended and rolled back leave no trace.
// The case is run with drafts of up to three tokens before its steps: rolled back at once, token by
// token, in two parts, or followed by a longer one; before the first step back to nothing. Each is
// only as deep as the layout can roll back exactly. Rows and outputs are those of the case.
#include <utility>

#include "properties/catalog.h"
#include "properties/catalog/drafted.h"
#include "properties/convert.h"
#include "properties/draw.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "rollback_bits";

/// The variant's scenario with drafts before its steps.
Drafted drafted(const Case& c, const Variant& way) {
  const bool chunks = way.scenario.batch == 1 || way.scenario.op == model::Operator::attention ||
                      c.capabilities().has("batched_chunks");
  return with_drafts(way.scenario, model::Timeline(way.scenario), chunks);
}

/// Makes `way` run with the drafts.
void take_drafts(Variant& way, Drafted&& with) {
  std::vector<StepPair> moved;
  moved.reserve(with.places.size());
  for (std::size_t i = 0; i < with.places.size(); ++i) moved.emplace_back(i, with.places[i]);
  follow(way.same_state, moved);
  way.scenario = std::move(with.scenario);
}

Judgement judge(Case& c) {
  Variant way = unchanged(c);
  Drafted with = drafted(c, way);
  if (with.drafts == 0) return Judgement::skipped("no draft can be rolled back exactly here");
  way.words = "with drafts that are rolled back (" + with.in_words() + ")";
  take_drafts(way, std::move(with));
  return judge_variants(c, {way},
                        {.kind = Kind::rollback_difference,
                         .bitwise = c.capabilities().has(kPromise),
                         .rows_suffice = true});
}

/// Of several ways one takes the drafts; which one changes from scenario to scenario.
bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  const auto last = static_cast<std::int64_t>(ways.size()) - 1;
  Variant& way = ways[static_cast<std::size_t>(draw.between(0, last))];
  Drafted with = drafted(c, way);
  if (with.drafts == 0) return false;
  take_drafts(way, std::move(with));
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.has("rollback")) return "the target cannot roll back";
  if (scenario.fill.kind == model::FillKind::needles) return "needles point at what was dropped";
  return fixed_data_reason(scenario);
}

}  // namespace

Property drafts_property() {
  return {
      "cache.drafts",
      "Appending drafts and rolling them back, at once, in parts, several times and down to "
      "nothing, leaves rows and outputs as they are without them: outputs bit for bit where "
      "that is promised, else within twice the bound.",
      "stale rows, counters that drift with every rollback, snapshots of the state one rollback "
      "too old, drafts longer than the ones before",
      inapplicable,
      judge,
      "",
      {Axis::Run::either, turn, kPromise}};
}

}  // namespace kvcheck::properties
