// cache.rollback_exactness: dropping k tokens and going on equals never having appended them.
#include <algorithm>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/compare_runs.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

/// The scenario as if the tokens that step `rollback` drops had never been appended. Later steps
/// keep their generations, so their tokens are the same ones.
struct NeverAppended {
  Scenario scenario;
  /// steps here and there with the same tokens: the rollback itself and every step after it.
  std::vector<std::pair<std::size_t, std::size_t>> same_state;
};

bool empty(const std::vector<std::int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [](std::int64_t n) { return n == 0; });
}

/// Takes dropped tokens off one step, newest first; false when the step asks queries of its own
/// and so cannot be shortened.
bool shorten(model::Step& step, std::vector<std::int64_t>& dropped) {
  auto* append = std::get_if<Append>(&step);
  auto& tokens = append ? append->tokens : std::get<Past>(step).tokens;
  const bool tied = append && append->queries == append->tokens;
  if (append && !tied && !empty(append->queries)) return empty(dropped);
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    const std::int64_t taken = std::min(tokens[b], dropped[b]);
    tokens[b] -= taken;
    dropped[b] -= taken;
  }
  if (tied) append->queries = append->tokens;
  return true;
}

/// Empty when the dropped tokens cannot be taken out of the earlier steps.
std::optional<NeverAppended> never_appended(const Scenario& scenario, std::size_t rollback) {
  std::vector<model::Step> before(scenario.steps.begin(),
                                  scenario.steps.begin() + static_cast<std::ptrdiff_t>(rollback));
  std::vector<std::int64_t> dropped = std::get<Rollback>(scenario.steps[rollback]).tokens;
  for (std::size_t i = rollback; i-- > 0 && !empty(dropped);) {
    // Tokens behind an earlier rollback are another matter: that rollback comes first.
    if (std::holds_alternative<Rollback>(before[i])) return std::nullopt;
    if (!shorten(before[i], dropped)) return std::nullopt;
  }
  NeverAppended result{scenario, {}};
  result.scenario.steps.clear();
  for (model::Step& step : before) {
    const auto* append = std::get_if<Append>(&step);
    if (append ? empty(append->tokens)
               : std::holds_alternative<Past>(step) && empty(std::get<Past>(step).tokens)) {
      continue;
    }
    result.scenario.steps.push_back(step);
  }
  for (std::size_t i = rollback; i < scenario.steps.size(); ++i) {
    if (i > rollback) result.scenario.steps.push_back(scenario.steps[i]);
    if (!result.scenario.steps.empty()) {
      result.same_state.emplace_back(i, result.scenario.steps.size() - 1);
    }
  }
  if (result.scenario.steps.empty()) return std::nullopt;
  return result;
}

Judgement compare(Case& c, std::size_t rollback, const NeverAppended& fresh) {
  const model::Timeline timeline(fresh.scenario);
  const model::Fill fill(fresh.scenario, timeline);
  const Execution run = execute(c.target(), fresh.scenario, timeline, fill);
  if (!run.complete) return Judgement::skipped(broke_off(fresh.scenario, run));
  const OtherRun other{fresh.scenario, timeline, run};
  const bool bits = c.capabilities().has("rollback_bits");
  const auto fail = [&](const Difference& difference) {
    Judgement judgement = Judgement::failed(
        Kind::rollback_difference,
        fmt::format("after step {} ({}) the run differs from one that never appended those "
                    "tokens: {}",
                    rollback, model::describe(c.scenario().steps[rollback]), difference.sentence),
        difference.hint);
    judgement.max_ratio = difference.ratio;
    return judgement;
  };
  for (const auto& [here, there] : fresh.same_state) {
    if (!c.timeline().steps()[here].defined) break;
    if (auto difference = compare_rows(c, other, here, there, bits)) return fail(*difference);
  }
  if (auto difference = compare_outputs(c, other, bits, rollback)) {
    return fail(*difference);
  }
  return {};
}

Judgement judge_case(Case& c) {
  const Execution& execution = c.execution();
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  std::string reason;
  bool compared = false;
  for (std::size_t i = 0; i < c.scenario().steps.size(); ++i) {
    if (!std::holds_alternative<Rollback>(c.scenario().steps[i])) continue;
    if (!c.timeline().steps()[i].defined) {
      // Nothing is promised here; saying so is the whole verdict.
      if (reason.empty()) reason = c.timeline().steps()[i].undefined_reason;
      break;
    }
    const auto fresh = never_appended(c.scenario(), i);
    if (!fresh) {
      reason = "the dropped tokens carry queries of their own or lie behind another rollback";
      continue;
    }
    if (const std::string why = cannot_run(c.target(), fresh->scenario); !why.empty()) {
      reason = why;
      continue;
    }
    const Judgement judgement = compare(c, i, *fresh);
    if (judgement.verdict == Verdict::failed) return judgement;
    if (judgement.verdict == Verdict::passed)
      compared = true;
    else
      reason = judgement.text;
  }
  return compared ? Judgement{} : Judgement::skipped(reason);
}

/// Needles point at rolled-back tokens too, so a query depends on what was dropped; random data
/// does not.
Judgement judge(Case& c) {
  if (c.scenario().fill.kind != model::FillKind::needles) return judge_case(c);
  Scenario plain = c.scenario();
  plain.fill.kind = model::FillKind::random;
  Case other(c.target(), plain);
  return judge_case(other);
}

std::string inapplicable(const Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.has("rollback")) return "the target cannot roll back";
  const bool any =
      std::any_of(scenario.steps.begin(), scenario.steps.end(),
                  [](const model::Step& step) { return std::holds_alternative<Rollback>(step); });
  return any ? fixed_data_reason(scenario) : "the scenario has no rollback";
}

}  // namespace

Property rollback_exactness_property() {
  return {"cache.rollback_exactness",
          "Dropping the newest k tokens and going on equals never having appended them, exactly "
          "when L(T-k) = L(T)-k: rows bit for bit, outputs too where the target promises it, else "
          "within twice the bound; a deeper rollback is not judged, and said to be undefined.",
          "counters that move without rows, stale drafts, rewinds across an eviction", inapplicable,
          judge};
}

}  // namespace kvcheck::properties
