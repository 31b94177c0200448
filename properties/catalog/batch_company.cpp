// batch.no_company: an entry of a batch gets what it would get alone.
#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

constexpr const char* kPromise = "company_bits";

/// Entry `entry` of a variant alone, with the data it has in company; without steps where it has
/// none of its own.
Variant alone(const Variant& way, std::int64_t entry) {
  const auto b = static_cast<std::size_t>(entry);
  Variant result = way;
  result.first_entry += entry;
  result.words = fmt::format("with batch entry {} alone", entry);
  Scenario& s = result.scenario;
  s.batch = 1;
  s.fill.first_entry += entry;
  s.steps.clear();
  std::vector<StepPair> moved;
  for (std::size_t i = 0; i < way.scenario.steps.size(); ++i) {
    model::Step step = way.scenario.steps[i];
    bool idle = false;
    if (auto* append = std::get_if<Append>(&step)) {
      append->tokens = {append->tokens[b]};
      append->queries = {append->queries[b]};
      idle = append->tokens[0] == 0 && append->queries[0] == 0;
    } else if (auto* past = std::get_if<Past>(&step)) {
      past->tokens = {past->tokens[b]};
      idle = past->tokens[0] == 0;
    } else {
      auto& tokens = std::get<Rollback>(step).tokens;
      tokens = {tokens[b]};
      idle = tokens[0] == 0;
    }
    if (!idle) s.steps.push_back(step);
    if (!s.steps.empty()) moved.emplace_back(i, s.steps.size() - 1);
  }
  follow(result.same_state, moved);
  return result;
}

std::vector<Variant> one_by_one(const std::vector<Variant>& ways) {
  std::vector<Variant> singles;
  for (const Variant& way : ways) {
    for (std::int64_t entry = 0; entry < way.scenario.batch; ++entry) {
      Variant single = alone(way, entry);
      if (!single.scenario.steps.empty()) singles.push_back(std::move(single));
    }
  }
  return singles;
}

Judgement judge(Case& c) {
  VariantJudging judging;
  judging.kind = Kind::influence;
  judging.bitwise = c.capabilities().has(kPromise);
  judging.rows_suffice = true;
  judging.none = "no entry has a step of its own";
  return judge_variants(c, one_by_one({unchanged(c)}), judging);
}

bool turn(Case&, std::vector<Variant>& ways, Draw&) {
  std::vector<Variant> singles = one_by_one(ways);
  if (singles.empty()) return false;
  ways = std::move(singles);
  return true;
}

std::string inapplicable(const Scenario& scenario, const kernels::Capabilities&) {
  return scenario.batch > 1 ? fixed_data_reason(scenario) : "one batch entry has no company";
}

}  // namespace

Property batch_company_property() {
  return {"batch.no_company",
          "Each entry of a batch, ragged lengths included, gets the rows and the "
          "outputs that it would get alone: equal bits where the target promises them, else within "
          "twice the bound.",
          "batch maximum used for a row, entry mix-up, shared origins, work split by batch",
          inapplicable,
          judge,
          "",
          {Axis::Run::apart, turn, kPromise}};
}

}  // namespace kvcheck::properties
