// batch.permutation: the order of the entries changes nothing but the order of the answers.
#include <algorithm>
#include <numeric>

#include "properties/catalog.h"
#include "properties/draw.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "order_bits";

/// Entries from entry `first` on, the others behind; or all from the last to the first.
std::vector<std::int64_t> rotated(std::int64_t batch, std::int64_t first) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(batch));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + first, order.end());
  return order;
}

std::vector<std::int64_t> reversed(std::int64_t batch) {
  std::vector<std::int64_t> order = rotated(batch, 0);
  std::reverse(order.begin(), order.end());
  return order;
}

/// out(perm(entries)) = perm(out(entries)).
Judgement judge(Case& c) {
  const std::int64_t batch = c.scenario().batch;
  std::vector<Variant> variants(2, unchanged(c));
  variants[0].words = "with the batch entries from last to first";
  variants[0].options.changes = {reorder_entries(reversed(batch))};
  variants[1].words = "with batch entry 0 behind the others";
  variants[1].options.changes = {reorder_entries(rotated(batch, 1))};
  if (batch == 2) variants.pop_back();
  VariantJudging judging;
  judging.bitwise = c.capabilities().has(kPromise);
  judging.rows_suffice = true;
  if (!judging.bitwise) judging.kind = Kind::influence;
  return judge_variants(c, variants, judging);
}

bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  const std::int64_t batch = c.scenario().batch;
  const auto change = reorder_entries(draw.percent(50) ? reversed(batch) : rotated(batch, 1));
  for (Variant& way : ways) way.options.changes.push_back(change);
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities&) {
  if (scenario.batch == 1) return "one batch entry has one order";
  const bool flat = scenario.rotary && scenario.rotary->position_ids &&
                    scenario.rotary->position_ids->extra_columns > 0;
  return flat ? "position_ids with more columns than tokens are read across entries" : "";
}

}  // namespace

Property batch_permutation_property() {
  return {"batch.permutation",
          "Entries of a batch in another order get the same rows and outputs in that order: equal "
          "bits where the target promises them, else within twice the bound.",
          "entry mix-up, strides of one entry used for another, lengths of the first or last entry "
          "used for all, work split by batch",
          inapplicable,
          judge,
          "",
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
