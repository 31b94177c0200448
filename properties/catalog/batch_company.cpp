// batch.no_company: an entry of a batch gets what it would get alone.
#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/compare_runs.h"
#include "properties/convert.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

/// Entry `entry` of the scenario alone, with the data it has in company.
struct Alone {
  Scenario scenario;
  std::vector<std::pair<std::size_t, std::size_t>> same_state;
};

Alone alone(const Scenario& scenario, std::int64_t entry) {
  const auto b = static_cast<std::size_t>(entry);
  Alone result{scenario, {}};
  Scenario& s = result.scenario;
  s.batch = 1;
  s.fill.first_entry = scenario.fill.first_entry + entry;
  s.steps.clear();
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    model::Step step = scenario.steps[i];
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
    if (!s.steps.empty()) result.same_state.emplace_back(i, s.steps.size() - 1);
  }
  return result;
}

Judgement compare(Case& c, std::int64_t entry, const Alone& single) {
  const model::Timeline timeline(single.scenario);
  const model::Fill fill(single.scenario, timeline);
  const Execution run = execute(c.target(), single.scenario, timeline, fill);
  if (!run.complete) return Judgement::skipped(broke_off(single.scenario, run));
  const OtherRun other{single.scenario, timeline, run, entry};
  const bool bits = c.capabilities().has("company_bits");
  std::optional<Difference> difference;
  for (const auto& [here, there] : single.same_state) {
    if (!c.timeline().steps()[here].defined) break;
    if ((difference = compare_rows(c, other, here, there, bits))) break;
  }
  if (!difference) difference = compare_outputs(c, other, bits);
  if (!difference) return {};
  Judgement judgement =
      Judgement::failed(Kind::influence,
                        fmt::format("batch entry {} differs from the same sequence run alone: {}",
                                    entry, difference->sentence),
                        difference->hint);
  judgement.max_ratio = difference->ratio;
  return judgement;
}

Judgement judge(Case& c) {
  const auto entries = static_cast<std::size_t>(c.scenario().batch);
  return judge_each(c, entries, "no entry has a step of its own", [&](std::size_t i) {
    const auto entry = static_cast<std::int64_t>(i);
    const Alone single = alone(c.scenario(), entry);
    const std::string why = cannot_run(c.target(), single.scenario);
    return why.empty() ? compare(c, entry, single) : Judgement::skipped(why);
  });
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
          inapplicable, judge};
}

}  // namespace kvcheck::properties
