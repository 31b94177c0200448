// Whether an entry of the ledger explains what a target answered.
#include <algorithm>
#include <cmath>

#include "model/oracle.h"
#include "model/wrong_models.h"
#include "properties/convert.h"
#include "properties/known_findings.h"
#include "properties/read_back.h"

namespace kvcheck::properties {
namespace {

template <class T>
bool allows(const std::vector<T>& choices, const T& value) {
  return choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end();
}

bool concerns(const KnownCondition& condition, const model::Scenario& s) {
  if (condition.op && *condition.op != to_string(s.op)) return false;
  if (condition.causal && *condition.causal != s.causal) return false;
  if (condition.nonpad && *condition.nonpad != s.nonpad_kv_seqlen) return false;
  return allows(condition.element_types, std::string(to_string(s.element_type))) &&
         allows(condition.opsets, static_cast<std::int64_t>(s.opset));
}

bool concerns(const KnownCondition& condition, const model::EntryStep& entry) {
  if (condition.queries && *condition.queries != entry.queries) return false;
  return entry.length - entry.past >= condition.least_tokens && entry.past >= condition.least_past;
}

/// Whether every query that sees other keys than it should is the entry's, and sees what the wrong
/// reading shows it; and there is one.
bool explains_visible(const KnownFinding& known, const model::Reading& reading, Case& c) {
  if (!reading.visible) return false;
  const ReadBack read_back = measure_visibility(c.target(), c.scenario());
  bool any = false;
  for (const MeasuredQuery& query : read_back.queries) {
    if (query.agrees()) continue;
    const auto& entry =
        c.timeline().steps()[query.step].entries[static_cast<std::size_t>(query.entry)];
    const auto wrong = reading.visible(
        {c.scenario(), c.timeline(), query.step, query.entry, query.head, query.query});
    if (!query.measured || !concerns(known.condition, entry) || query.observed != wrong) {
      return false;
    }
    any = true;
  }
  return any;
}

/// The same of outputs beyond their bounds.
bool explains_values(const KnownFinding& known, const model::Reading& reading, Case& c) {
  const model::Scenario& s = c.scenario();
  const Execution& execution = c.execution();
  model::Oracle wrong(s, arithmetic_profile(c.capabilities(), s), reading);
  bool any = false;
  for (std::size_t step = 0; step < execution.steps.size(); ++step) {
    const StepAnswer& answer = execution.steps[step];
    if (answer.status != StepAnswer::Status::ok || !answer.result.output) continue;
    if (!c.timeline().steps()[step].defined) continue;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto& entry = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
      const bool concerned = concerns(known.condition, entry);
      for (std::int64_t i = 0; i < entry.queries; ++i) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          for (std::int64_t l = 0; l < s.value_head_size; ++l) {
            const double value = output_at(*answer.result.output, b, i, h, l);
            if (c.oracle().bound_ratio(step, b, i, h, l, value) <= 1) continue;
            if (!concerned || !(wrong.bound_ratio(step, b, i, h, l, value) <= 1)) return false;
            any = true;
          }
        }
      }
    }
  }
  return any;
}

}  // namespace

bool explains(const KnownFinding& known, Case& c, const Property& property,
              const Judgement& judgement) {
  const auto listed = known.failures.find(property.id);
  if (listed == known.failures.end()) return false;
  const std::string kind(to_string(judgement.kind));
  if (!allows(listed->second, kind) || !holds_for(known, c.capabilities())) return false;
  if (!concerns(known.condition, c.scenario())) return false;
  const model::Reading& reading = model::find_wrong_model(known.reading)->reading;
  return property.id == "mask.visible_set" ? explains_visible(known, reading, c)
                                           : explains_values(known, reading, c);
}

}  // namespace kvcheck::properties
