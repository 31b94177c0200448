// Collecting evidence.
#include "properties/evidence.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "properties/evidence_words.h"
#include "properties/read_back.h"
#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

constexpr std::size_t kMostSteps = 200;
constexpr std::size_t kMostItems = 64;

std::string answer_text(const StepAnswer& answer) {
  switch (answer.status) {
    case StepAnswer::Status::ok:
      return "ok";
    case StepAnswer::Status::refused:
      return "refused: " + answer.reason;
    case StepAnswer::Status::broke:
      return "broke: " + answer.reason;
    case StepAnswer::Status::not_run:
      return "not run";
  }
  return "";
}

EntryEvidence entry_evidence(const model::EntryStep& state) {
  return {state.length,  state.resident, state.first_position.value,
          state.evicted, state.queries,  state.staged};
}

void add_rows(const Case& c, RowContent& content, std::size_t step, const kernels::CacheRows& rows,
              StepEvidence& out) {
  if (!content.shape_problem(rows).empty()) return;
  for (std::int64_t b = 0; b < c.scenario().batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    const std::int64_t shown = std::min(state.resident, rows.key.shape[2]);
    for (std::int64_t r = 0; r < shown && out.rows.size() < kMostItems; ++r) {
      const model::Position position{state.first_position.value + r};
      if (content.match(rows, 0, r, content.held(step, b, position)).both()) continue;
      const auto found = content.identify(rows, b, 0, r);
      out.rows.push_back({b, r, position.value, found ? found->token.position.value : -1,
                          found ? found->token.generation : 0});
    }
  }
}

ElementEvidence element_evidence(Case& c, std::size_t step, std::int64_t entry, std::int64_t query,
                                 std::int64_t head, std::int64_t lane, double observed,
                                 double ratio) {
  const auto& expected = c.oracle().expected(step);
  const std::size_t at = model::element_index(c.scenario(), expected, entry, query, head, lane);
  const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
  const auto bound = c.oracle().bound_terms(step, entry, query, head, lane);
  return {entry,
          head,
          query,
          state.origin.value + query,
          lane,
          observed,
          expected.output[at],
          bound.total(),
          ratio,
          bound.weights,
          bound.sums,
          bound.underflow,
          bound.store,
          bound.operands};
}

void add_elements(Case& c, std::size_t step, const kernels::Tensor& output, StepEvidence& out) {
  const auto& s = c.scenario();
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t q = 0; q < state.queries; ++q) {
      for (std::int64_t h = 0; h < s.query_heads; ++h) {
        for (std::int64_t l = 0; l < s.value_head_size; ++l) {
          const double observed = output_at(output, b, q, h, l);
          const double ratio = c.oracle().bound_ratio(step, b, q, h, l, observed);
          ++out.elements_compared;
          out.max_ratio = std::max(out.max_ratio, ratio);
          out.elements.push_back(element_evidence(c, step, b, q, h, l, observed, ratio));
        }
      }
    }
  }
  std::stable_sort(out.elements.begin(), out.elements.end(),
                   [](const auto& x, const auto& y) { return x.ratio > y.ratio; });
  if (out.elements.size() > kMostItems) out.elements.resize(kMostItems);
}

/// Measured visibility, the contradicting queries first where there are too many to keep.
void add_visibility(const ReadBack& read_back, std::vector<StepEvidence>& steps) {
  constexpr std::size_t kMostQueries = 256;
  for (const bool agreeing : {false, true}) {
    for (const MeasuredQuery& query : read_back.queries) {
      if (query.step >= steps.size() || query.agrees() != agreeing) continue;
      auto& shown = steps[query.step].visibility;
      if (shown.size() >= kMostQueries) continue;
      VisibilityEvidence item{query.entry, query.head,    query.position.value, {},
                              {},          query.weights, query.measured};
      for (const auto& p : query.expected) item.expected.push_back(p.value);
      for (const auto& p : query.observed) item.observed.push_back(p.value);
      shown.push_back(std::move(item));
    }
  }
  for (StepEvidence& step : steps) {
    std::stable_sort(step.visibility.begin(), step.visibility.end(),
                     [](const auto& a, const auto& b) {
                       return std::tie(a.entry, a.head, a.query_position) <
                              std::tie(b.entry, b.head, b.query_position);
                     });
  }
}

}  // namespace

Evidence collect_evidence(kernels::Target& target, const model::Scenario& scenario,
                          const Judgement& judgement) {
  Case c(target, scenario);
  const Execution& execution = c.execution();
  Evidence evidence;
  evidence.failing_step = judgement.hint.step;
  evidence.words = timeline_words(scenario, c.timeline());
  RowContent content(scenario, c.timeline(), c.fill(), c.roundoff());
  const std::size_t shown = std::min(scenario.steps.size(), kMostSteps);
  for (std::size_t i = 0; i < shown; ++i) {
    StepEvidence step;
    step.what = model::describe(scenario.steps[i]);
    for (const auto& entry : c.timeline().steps()[i].entries) {
      step.entries.push_back(entry_evidence(entry));
    }
    const StepAnswer& answer = execution.steps[i];
    step.answer = answer_text(answer);
    if (answer.status == StepAnswer::Status::ok && c.timeline().steps()[i].defined) {
      if (answer.result.rows) add_rows(c, content, i, *answer.result.rows, step);
      if (answer.result.output) add_elements(c, i, *answer.result.output, step);
    }
    evidence.steps.push_back(std::move(step));
  }
  if (shown < scenario.steps.size()) {
    evidence.notes.push_back(
        fmt::format("Steps {} to {} of {} are left out: evidence keeps the "
                    "first {}.",
                    shown, scenario.steps.size() - 1, scenario.steps.size(), kMostSteps));
  }
  if (target.capabilities().outputs) {
    const ReadBack read_back = measure_visibility(target, scenario);
    add_visibility(read_back, evidence.steps);
    if (!read_back.problem.empty()) {
      evidence.notes.push_back("Visibility was not measured whole: " + read_back.problem);
    }
    for (const MeasuredQuery& query : read_back.queries) {
      if (!query.measured || query.agrees()) continue;
      for (auto& sentence : visibility_words(scenario, c.timeline(), query)) {
        evidence.words.push_back(std::move(sentence));
      }
      break;  // One query proves it; the picture shows the others.
    }
  }
  evidence.words.push_back("Finding: " + judgement.text + ".");
  return evidence;
}

}  // namespace kvcheck::properties
