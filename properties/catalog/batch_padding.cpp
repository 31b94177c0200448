// batch.padding: what padding tokens and padding queries hold changes nothing.
#include <algorithm>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

/// Padding that holds another poison than the scenario's; rows of the cache keep theirs.
void pad(const Case& c, Variant& way) {
  way.options.changes.push_back(fill_padding(c.fill().poison(other_poison(c))));
}

Judgement judge(Case& c) {
  Variant padded = unchanged(c);
  pad(c, padded);
  padded.words = fmt::format("with {} instead of {} in padding tokens and queries",
                             to_string(other_poison(c)), to_string(c.scenario().poison));
  return judge_variants(c, {padded}, {.kind = Kind::influence, .rows_suffice = true});
}

bool turn(Case& c, std::vector<Variant>& ways, Draw&) {
  for (Variant& way : ways) pad(c, way);
  return true;
}

bool ragged(const model::Step& step) {
  const auto* append = std::get_if<model::Append>(&step);
  const auto differ = [](const std::vector<std::int64_t>& counts) {
    return std::ranges::adjacent_find(counts, std::ranges::not_equal_to{}) != counts.end();
  };
  return append && (differ(append->tokens) || differ(append->queries));
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities&) {
  return std::ranges::any_of(scenario.steps, ragged) ? "" : "no step has padding";
}

}  // namespace

Property batch_padding_property() {
  return {"batch.padding",
          "Padding tokens and padding queries of ragged steps have no influence: two runs that "
          "fill them differently give the same bits.",
          "batch maximum used for a row, padding appended to the cache, padding in the denominator",
          inapplicable,
          judge,
          "",
          {Axis::Run::together, turn, ""}};
}

}  // namespace kvcheck::properties
