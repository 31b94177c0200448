// mask.empty_rows: a query that sees no key gets zeros.
// {j visible to the query} is empty => o = 0 in every lane, and every probability that is handed
// out is 0.
#include <fmt/format.h>

#include "model/visibility.h"
#include "properties/catalog.h"

namespace kvcheck::properties {
namespace {

struct Row {
  std::size_t step;
  std::int64_t entry, query, head;
};

/// The first element that is not 0, in words; empty when all are.
std::string not_zero(Case& c, const Row& row) {
  const auto& s = c.scenario();
  const kernels::StepResult& result = c.execution().steps[row.step].result;
  for (std::int64_t l = 0; l < s.value_head_size; ++l) {
    const double observed = output_at(*result.output, row.entry, row.query, row.head, l);
    if (!(observed == 0)) return fmt::format("lane {} of the output is {:.9g}", l, observed);
  }
  if (s.qk_output != model::QkOutput::probabilities || !result.qk) return "";
  const auto& shape = result.qk->shape;
  const std::int64_t first = ((row.entry * shape[1] + row.head) * shape[2] + row.query) * shape[3];
  for (std::int64_t key = 0; key < shape[3]; ++key) {
    const double observed = element(*result.qk, first + key);
    if (!(observed == 0)) return fmt::format("the probability of key {} is {:.9g}", key, observed);
  }
  return "";
}

/// Whether the exact output is 0 without any rounding: so is that of every row that sees nothing.
bool may_be_empty(Case& c, const Row& row) {
  const auto& expected = c.oracle().expected(row.step);
  const auto at = model::element_index(c.scenario(), expected, row.entry, row.query, row.head, 0);
  return expected.output[at] == 0 && expected.bound[at] == 0;
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  const auto& s = c.scenario();
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    const StepAnswer& answer = execution.steps[i];
    if (answer.status != StepAnswer::Status::ok || !answer.result.output) continue;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto& state = c.timeline().steps()[i].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; q < state.queries; ++q) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          const Row row{i, b, q, h};
          if (!may_be_empty(c, row)) continue;
          if (!model::visible_positions(s, c.timeline(), i, b, h, q).empty()) continue;
          ++rows;
          const std::string problem = not_zero(c, row);
          if (problem.empty()) continue;
          shrinkers::Hint hint;
          hint.step = static_cast<std::int64_t>(i);
          hint.entry = b;
          hint.query_head = h;
          return Judgement::failed(
              Kind::leak,
              fmt::format("step {} ({}), batch entry {}, head {}: the query at position {} sees no "
                          "key, but {}",
                          i, model::describe(s.steps[i]), b, h, state.origin.value + q, problem),
              hint);
        }
      }
    }
  }
  if (!execution.complete) return Judgement::skipped(broke_off(s, execution));
  return rows > 0 ? Judgement{} : Judgement::skipped("every query sees a key");
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  const bool sees_itself =
      scenario.op == model::Operator::gqa && scenario.cache.window_size.value_or(1) > 0;
  return sees_itself ? "every query sees its own key at least" : "";
}

}  // namespace

Property empty_rows_property() {
  return {"mask.empty_rows",
          "A query that sees no key gets zeros, exactly, whatever the rows hold, and every "
          "probability that is handed out for it is 0.",
          "means over nothing, 0/0, finite stand-ins for -infinity, rows that nobody wrote",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
