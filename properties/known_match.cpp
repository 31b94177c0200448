// Whether an entry of the ledger explains what a target answered.
#include <algorithm>
#include <cmath>

#include "model/mask.h"
#include "model/oracle.h"
#include "model/visibility.h"
#include "properties/known_findings.h"
#include "properties/known_mended.h"

namespace kvcheck::properties {
namespace {

template <class T>
bool allows(const std::vector<T>& choices, const T& value) {
  return choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end();
}

/// Whether the entry is of the target, and tells of such a failure.
bool lists(const KnownFinding& known, const Case& c, const Property& property,
           const Judgement& judgement) {
  const auto listed = known.failures.find(property.id);
  if (listed == known.failures.end() || !holds_for(known, c.capabilities())) return false;
  return allows(listed->second, std::string(to_string(judgement.kind)));
}

/// One output of the execution, and what the query sees.
struct OutputPlace {
  std::size_t step = 0;
  std::int64_t entry = 0, query = 0, head = 0;
  std::vector<model::Position> seen;
};

/// Whether the absolute values that the query sees add up to more than the largest finite number.
bool values_overflow(const Case& c, const OutputPlace& at, std::int64_t lane) {
  const model::Scenario& s = c.scenario();
  const auto written = c.timeline().written(at.step, at.entry, at.seen);
  double sum = 0;
  for (std::size_t i = 0; i < at.seen.size(); ++i) {
    const model::Token token{at.seen[i], written[i].generation};
    sum += std::abs(c.fill().value(at.entry, at.head / (s.query_heads / s.kv_heads), token, lane));
  }
  return sum > model::largest_finite(s.element_type);
}

bool all_lowest(const Case& c, const OutputPlace& at) {
  const double lowest = -model::largest_finite(c.scenario().element_type);
  return !at.seen.empty() && std::ranges::all_of(at.seen, [&](model::Position key) {
    return model::mask_cell(c.scenario(), c.timeline(), at.step, at.entry, at.head, at.query, key)
               .bias == lowest;
  });
}

bool as_told(KnownValues values, const Case& c, const OutputPlace& at, std::int64_t lane,
             double observed) {
  if (values == KnownValues::overflow_before_division) {
    return !std::isfinite(observed) && values_overflow(c, at, lane);
  }
  return observed == 0 && all_lowest(c, at);
}

/// Whether every lane of one output row that fails is as the entry says; counts those that fail.
bool row_as_told(KnownValues values, Case& c, const kernels::Tensor& output, OutputPlace& at,
                 std::int64_t& failing) {
  for (std::int64_t l = 0; l < c.scenario().value_head_size; ++l) {
    const double observed = output_at(output, at.entry, at.query, at.head, l);
    if (c.oracle().bound_ratio(at.step, at.entry, at.query, at.head, l, observed) <= 1) continue;
    model::visible_positions(c.scenario(), c.timeline(), at.step, at.entry, at.head, at.query,
                             at.seen);
    if (!as_told(values, c, at, l, observed)) return false;
    ++failing;
  }
  return true;
}

/// Whether every output beyond its bound is as the entry says; and there is one.
bool outputs_as_told(const KnownFinding& known, Case& c) {
  const model::Scenario& s = c.scenario();
  if (!concerns(known.condition, s)) return false;
  const Execution& execution = c.execution();
  std::int64_t failing = 0;
  for (OutputPlace at; at.step < execution.steps.size(); ++at.step) {
    const StepAnswer& answer = execution.steps[at.step];
    if (answer.status != StepAnswer::Status::ok || !answer.result.output) continue;
    if (!c.timeline().steps()[at.step].defined) continue;
    for (at.entry = 0; at.entry < s.batch; ++at.entry) {
      const auto& entry = c.timeline().steps()[at.step].entries[static_cast<std::size_t>(at.entry)];
      for (at.query = 0; at.query < entry.queries; ++at.query) {
        for (at.head = 0; at.head < s.query_heads; ++at.head) {
          const std::int64_t before = failing;
          if (!row_as_told(known.values, c, *answer.result.output, at, failing)) return false;
          if (failing > before && !concerns(known.condition, entry)) return false;
        }
      }
    }
  }
  return failing > 0;
}

bool is_mended(const KnownFinding& known) {
  return !known.reading.empty() || known.values == KnownValues::lowest_for_hidden;
}

/// The first of `listed` of which something was mended, where the property then holds.
const KnownFinding* mended_entry(std::span<const KnownFinding> known, Case& c,
                                 const Property& property, const Judgement& judgement) {
  // What holds for single elements comes first: a reading is asked of whole rows.
  std::vector<const KnownFinding*> entries;
  for (const bool of_values : {true, false}) {
    for (const KnownFinding& entry : known) {
      const bool wanted = (entry.values != KnownValues::none) == of_values;
      if (wanted && is_mended(entry) && holds_for(entry, c.capabilities())) {
        entries.push_back(&entry);
      }
    }
  }
  if (std::ranges::none_of(entries, [&](const KnownFinding* entry) {
        return lists(*entry, c, property, judgement);
      })) {
    return nullptr;
  }
  MendedTarget mended(c.target(), entries);
  Case again(mended, c.scenario(), c.mode());
  const Judgement then = judge(again, property);
  if (then.verdict != Verdict::passed && then.verdict != Verdict::blind) return nullptr;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (mended.mended()[i] > 0 && lists(*entries[i], c, property, judgement)) return entries[i];
  }
  return nullptr;
}

}  // namespace

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

const KnownFinding* explaining_entry(std::span<const KnownFinding> known, Case& c,
                                     const Property& property, const Judgement& judgement) {
  for (const KnownFinding& entry : known) {
    if (is_mended(entry) || !lists(entry, c, property, judgement)) continue;
    if (entry.rules.empty()) {
      if (outputs_as_told(entry, c)) return &entry;
    } else if (std::ranges::count(entry.rules, judgement.rule) > 0 &&
               concerns(entry.condition, c.scenario())) {
      return &entry;
    }
  }
  return mended_entry(known, c, property, judgement);
}

bool explains(const KnownFinding& known, Case& c, const Property& property,
              const Judgement& judgement) {
  return explaining_entry({&known, 1}, c, property, judgement) != nullptr;
}

}  // namespace kvcheck::properties
