// values.qk_output: every logit or probability that is handed out lies within its bound.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/catalog.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

struct Cell {
  std::int64_t entry = 0, head = 0, query = 0, key = 0;
};

/// |observed - expected| / bound. A hidden key must be exactly what the operator writes for it;
/// where the true value may round to infinity, infinity is right as well.
double cell_ratio(double observed, double expected, double bound, double largest) {
  constexpr double kFailed = std::numeric_limits<double>::infinity();
  if (std::isinf(bound)) return 0;
  if (std::isinf(expected)) return observed == expected ? 0 : kFailed;
  if (std::isinf(observed) && std::signbit(observed) == std::signbit(expected) &&
      std::abs(expected) + bound > largest) {
    return 0;
  }
  const double distance = std::abs(observed - expected);
  if (!std::isfinite(distance)) return kFailed;
  if (bound == 0) return distance == 0 ? 0 : kFailed;
  return distance / bound;
}

Judgement failure(const Case& c, std::size_t step, const Cell& at, double observed, double expected,
                  double ratio) {
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(step);
  hint.entry = at.entry;
  hint.query_head = at.head;
  const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(at.entry)];
  const bool finite = std::isfinite(observed) || std::isinf(expected);
  Judgement judgement = Judgement::failed(
      finite ? Kind::over_bound : Kind::not_finite,
      fmt::format("step {} ({}), batch entry {}, query at position {}, head {}: qk_output ({}) of "
                  "key {} is {:.9g} where the exact one is {:.9g}, {:.3g} times the bound away",
                  step, model::describe(c.scenario().steps[step]), at.entry,
                  state.origin.value + at.query, at.head, to_string(c.scenario().qk_output), at.key,
                  observed, expected, ratio),
      hint);
  judgement.max_ratio = ratio;
  return judgement;
}

/// What is wrong with the tensor as such; empty = nothing.
std::string shape_problem(const Case& c, const std::optional<kernels::Tensor>& qk,
                          const model::QkExpected& expected) {
  const auto type = to_kernel(c.scenario().element_type);
  const std::vector<std::int64_t> shape{c.scenario().batch, c.scenario().query_heads,
                                        expected.queries, expected.columns};
  if (qk && qk->type == type && qk->shape == shape) return "";
  return fmt::format("qk_output is {}; it must be {} [{}]",
                     qk ? fmt::format("{} [{}]", to_string(qk->type), fmt::join(qk->shape, ","))
                        : std::string("missing"),
                     to_string(type), fmt::join(shape, ","));
}

/// Judges one step; `worst` is raised to its largest ratio.
std::optional<Judgement> judge_step(Case& c, std::size_t step,
                                    const std::optional<kernels::Tensor>& qk, double& worst) {
  const model::Scenario& s = c.scenario();
  const model::QkExpected& expected = c.oracle().expected_qk(step);
  if (const std::string problem = shape_problem(c, qk, expected); !problem.empty()) {
    return Judgement::failed(Kind::nonsense, fmt::format("step {}: {}", step, problem));
  }
  const double largest = model::largest_finite(s.element_type);
  const auto& entries = c.timeline().steps()[step].entries;
  for (Cell at; at.entry < s.batch; ++at.entry) {
    for (at.head = 0; at.head < s.query_heads; ++at.head) {
      for (at.query = 0; at.query < entries[static_cast<std::size_t>(at.entry)].queries;
           ++at.query) {
        const std::int64_t row = (at.entry * s.query_heads + at.head) * expected.queries + at.query;
        for (at.key = 0; at.key < expected.columns; ++at.key) {
          const std::int64_t index = row * expected.columns + at.key;
          const double value = expected.values[static_cast<std::size_t>(index)];
          const double observed = element(*qk, index);
          const double ratio =
              cell_ratio(observed, value, expected.bound[static_cast<std::size_t>(index)], largest);
          if (!(ratio <= 1)) return failure(c, step, at, observed, value, ratio);
          worst = std::max(worst, ratio);
        }
      }
    }
  }
  return std::nullopt;
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  double worst = -1;
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    const StepAnswer& answer = execution.steps[i];
    const auto* append = std::get_if<model::Append>(&c.scenario().steps[i]);
    if (!append || answer.status != StepAnswer::Status::ok) continue;
    if (*std::max_element(append->queries.begin(), append->queries.end()) == 0) continue;
    worst = std::max(worst, 0.0);
    if (auto failed = judge_step(c, i, answer.result.qk, worst)) return *failed;
  }
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  if (worst < 0) return Judgement::skipped("the scenario asks no query");
  Judgement passed;
  passed.max_ratio = worst;
  return passed;
}

}  // namespace

Property qk_output_property() {
  return {"values.qk_output",
          "Every logit or probability that the operator hands out lies within its rounding-error "
          "bound, and keys that a query may not see hold what the contract says.",
          "wrong stage handed out, softcap or bias left out, columns of other keys or entries",
          [](const model::Scenario& scenario, const kernels::Capabilities&) {
            return std::string(scenario.qk_output == model::QkOutput::none
                                   ? "the scenario asks for no qk_output"
                                   : "");
          },
          judge,
          "qk_output"};
}

}  // namespace kvcheck::properties
