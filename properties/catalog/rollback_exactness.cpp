// cache.rollback_exactness: dropping k tokens and going on equals never having appended them.
#include <algorithm>

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

constexpr const char* kPromise = "rollback_bits";

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

/// The variant as if the tokens that its step `rollback` drops had never been appended; later steps
/// keep their generations, so their tokens are the same ones. Paired are the rollback itself and
/// every step after it. Empty when the dropped tokens cannot be taken out of the earlier steps.
std::optional<Variant> never_appended(const Variant& way, std::size_t rollback) {
  const Scenario& scenario = way.scenario;
  std::vector<model::Step> before(scenario.steps.begin(),
                                  scenario.steps.begin() + static_cast<std::ptrdiff_t>(rollback));
  std::vector<std::int64_t> dropped = std::get<Rollback>(scenario.steps[rollback]).tokens;
  for (std::size_t i = rollback; i-- > 0 && !empty(dropped);) {
    // Tokens behind an earlier rollback are another matter: that rollback comes first.
    if (std::holds_alternative<Rollback>(before[i])) return std::nullopt;
    if (!shorten(before[i], dropped)) return std::nullopt;
  }
  Variant result = way;
  std::vector<model::Step>& steps = result.scenario.steps;
  steps.clear();
  for (model::Step& step : before) {
    const auto* append = std::get_if<Append>(&step);
    if (append ? empty(append->tokens) && empty(append->queries)
               : std::holds_alternative<Past>(step) && empty(std::get<Past>(step).tokens)) {
      continue;
    }
    steps.push_back(step);
  }
  std::vector<StepPair> moved;
  for (std::size_t i = rollback; i < scenario.steps.size(); ++i) {
    if (i > rollback) steps.push_back(scenario.steps[i]);
    if (!steps.empty()) moved.emplace_back(i, steps.size() - 1);
  }
  if (steps.empty()) return std::nullopt;
  follow(result.same_state, moved);
  result.first_step = rollback;
  return result;
}

Judgement compare(Case& c, std::size_t rollback, const Variant& fresh) {
  const bool bits = c.capabilities().has(kPromise);
  const Comparison found = compare_variant(c, fresh, bits);
  if (!found.broke.empty()) return Judgement::skipped(found.broke);
  if (!found.difference) return {};
  Judgement judgement = Judgement::failed(
      Kind::rollback_difference,
      fmt::format("after step {} ({}) the run differs from one that never appended those tokens: "
                  "{}",
                  rollback, model::describe(c.scenario().steps[rollback]),
                  found.difference->sentence),
      found.difference->hint);
  judgement.max_ratio = found.difference->ratio;
  return judgement;
}

Judgement judge_case(Case& c) {
  std::vector<std::size_t> rollbacks;
  std::string undefined;
  for (std::size_t i = 0; i < c.scenario().steps.size(); ++i) {
    if (!std::holds_alternative<Rollback>(c.scenario().steps[i])) continue;
    if (!c.timeline().steps()[i].defined) {
      // Nothing is promised here; saying so is the whole verdict.
      undefined = c.timeline().steps()[i].undefined_reason;
      break;
    }
    rollbacks.push_back(i);
  }
  return judge_each(c, rollbacks.size(), undefined, [&](std::size_t i) {
    const auto fresh = never_appended(unchanged(c), rollbacks[i]);
    if (!fresh) {
      return Judgement::skipped(
          "the dropped tokens carry queries of their own or lie behind another rollback");
    }
    const std::string why = cannot_run(c.target(), fresh->scenario);
    return why.empty() ? compare(c, rollbacks[i], *fresh) : Judgement::skipped(why);
  });
}

/// No rollback at all, as far as rollbacks are defined. What was asked before is compared as well,
/// where the queries of a shortened step see what they saw and bits do not depend on the split.
bool turn(Case& c, std::vector<Variant>& ways, Draw&) {
  if (c.scenario().fill.kind == model::FillKind::needles) return false;
  std::size_t defined = 0, last = 0;
  for (std::size_t i = 0; i < c.scenario().steps.size() && c.timeline().steps()[i].defined; ++i) {
    if (!std::holds_alternative<Rollback>(c.scenario().steps[i])) continue;
    ++defined;
    last = i;
  }
  if (defined == 0) return false;
  std::vector<Variant> turned = ways;
  const bool earlier = c.scenario().causal && c.capabilities().has("split_bits");
  for (Variant& way : turned) {
    for (std::size_t taken = 0; taken < defined; ++taken) {
      const auto& steps = way.scenario.steps;
      const auto rollback = std::find_if(steps.begin(), steps.end(), [](const model::Step& step) {
        return std::holds_alternative<Rollback>(step);
      });
      auto fresh = never_appended(way, static_cast<std::size_t>(rollback - steps.begin()));
      if (!fresh) return false;
      way = std::move(*fresh);
    }
    way.first_step = earlier ? 0 : last;
  }
  ways = std::move(turned);
  return true;
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
          "counters that move without rows, stale drafts, rewinds across an eviction",
          inapplicable,
          judge,
          "",
          {Axis::Run::apart, turn, kPromise}};
}

}  // namespace kvcheck::properties
