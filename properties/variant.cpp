// Running and comparing variants.
#include "properties/variant.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "properties/convert.h"
#include "properties/temptation.h"

namespace kvcheck::properties {
namespace {

Judgement judge_variant(Case& c, const Variant& variant, const VariantJudging& judging) {
  const Comparison found = compare_variant(c, variant, judging.bitwise);
  if (found.broke_as) {
    return Judgement::failed(*found.broke_as,
                             fmt::format("{} {}: {}", judging.subject, variant.words, found.broke));
  }
  if (!found.broke.empty()) return Judgement::skipped(found.broke);
  if (found.difference) {
    Judgement judgement = Judgement::failed(
        judging.kind,
        fmt::format("{} {}: {}", judging.subject, variant.words, found.difference->sentence),
        found.difference->hint);
    judgement.max_ratio = found.difference->ratio;
    return judgement;
  }
  const bool says = found.shares_queries || (judging.rows_suffice && found.shares_rows);
  return says ? Judgement{} : Judgement::skipped("the two runs share no query");
}

}  // namespace

Variant unchanged(const Case& c) {
  Variant variant{c.scenario(), {}, "", {}};
  variant.same_state.reserve(c.scenario().steps.size());
  for (std::size_t i = 0; i < c.scenario().steps.size(); ++i) {
    variant.same_state.emplace_back(i, i);
  }
  return variant;
}

void follow(std::vector<StepPair>& same_state, const std::vector<StepPair>& moved) {
  std::vector<StepPair> result;
  result.reserve(same_state.size());
  for (const auto& [here, there] : same_state) {
    for (const auto& [before, after] : moved) {
      if (before == there) result.emplace_back(here, after);
    }
  }
  same_state = std::move(result);
}

Comparison compare_variant(Case& c, const Variant& variant, bool bitwise) {
  const model::Timeline timeline(variant.scenario);
  const model::Fill fill(variant.scenario, timeline);
  ExecuteOptions options = variant.options;
  options.rows = &c.rows();
  options.rows_at.assign(variant.scenario.steps.size(), false);
  for (const auto& [here, there] : variant.same_state) {
    if (!c.timeline().steps()[here].defined) break;
    options.rows_at[there] = true;
  }
  std::optional<Temptation> temptation;
  Interposer asking;
  if (variant.asks_refusals) {
    temptation.emplace(c.capabilities(), variant.scenario, timeline, options.changes);
    asking.before = [&](std::size_t step, kernels::Session& session) {
      temptation->ask(step, session);
    };
    options.interposer = &asking;
  }
  const Execution run = execute(c.target(), variant.scenario, timeline, fill, options);
  Comparison result;
  if (temptation && temptation->failure()) {
    result.broke = temptation->failure()->text;
    result.broke_as = temptation->failure()->kind;
    return result;
  }
  if (!run.complete) {
    result.broke = broke_off(variant.scenario, run);
    if (const auto problem = run.first_problem()) {
      const StepAnswer& at =
          *problem < 0 ? run.open : run.steps[static_cast<std::size_t>(*problem)];
      if (at.status == StepAnswer::Status::broke) result.broke_as = to_kind(at.broke_as);
    }
    return result;
  }
  std::int64_t shared = 0;
  const OtherRun other{variant.scenario, timeline,       run,    variant.first_entry,
                       variant.smallest, &result.spared, &shared};
  for (const auto& [here, there] : variant.same_state) {
    if (!c.timeline().steps()[here].defined || !timeline.steps()[there].defined) break;
    result.difference = compare_rows(c, other, here, there, bitwise);
    if (result.difference) return result;
    result.shares_rows = result.shares_rows || run.steps[there].result.rows.has_value();
  }
  result.difference = compare_outputs(c, other, bitwise, variant.first_step);
  result.shares_queries = !result.difference && shared > 0;
  return result;
}

Judgement judge_each(Case& c, std::size_t count, std::string none,
                     const std::function<Judgement(std::size_t)>& judge) {
  if (!c.execution().complete) return Judgement::skipped(broke_off(c.scenario(), c.execution()));
  bool passed = false;
  for (std::size_t i = 0; i < count; ++i) {
    Judgement judgement = judge(i);
    if (judgement.verdict == Verdict::failed) return judgement;
    if (judgement.verdict == Verdict::passed) {
      passed = true;
    } else {
      none = std::move(judgement.text);
    }
  }
  return passed ? Judgement{} : Judgement::skipped(std::move(none));
}

Judgement judge_variants(Case& c, const std::vector<Variant>& variants,
                         const VariantJudging& judging) {
  return judge_each(c, variants.size(), judging.none, [&](std::size_t i) {
    const std::string why = cannot_run(c.target(), variants[i].scenario);
    return why.empty() ? judge_variant(c, variants[i], judging) : Judgement::skipped(why);
  });
}

model::Poison other_poison(const Case& c) {
  if (bears_nan(c.capabilities(), c.scenario()) && c.scenario().poison != model::Poison::nan) {
    return model::Poison::nan;
  }
  if (!bears_huge(c.capabilities(), c.scenario())) {
    return c.scenario().poison == model::Poison::finite ? model::Poison::zero
                                                        : model::Poison::finite;
  }
  return c.scenario().poison == model::Poison::huge ? model::Poison::finite : model::Poison::huge;
}

}  // namespace kvcheck::properties
