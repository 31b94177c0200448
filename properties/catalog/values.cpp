// values.within_bound: every output lies within its rounding-error bound of the exact one.
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "properties/catalog.h"

namespace kvcheck::properties {
namespace {

struct Worst {
  double ratio = -1;
  double observed = 0;
  std::int64_t entry = 0, query = 0, head = 0, lane = 0;
};

Judgement failure(Case& c, std::size_t step, const Worst& worst) {
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(step);
  hint.entry = worst.entry;
  hint.query_head = worst.head;
  const auto& expected = c.oracle().expected(step);
  const auto& s = c.scenario();
  const std::size_t at =
      model::element_index(s, expected, worst.entry, worst.query, worst.head, worst.lane);
  const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(worst.entry)];
  const bool finite = std::isfinite(worst.observed);
  const std::string where =
      fmt::format("step {} ({}), batch entry {}, query at position {}, head {}, lane {}", step,
                  model::describe(s.steps[step]), worst.entry, state.origin.value + worst.query,
                  worst.head, worst.lane);
  Judgement judgement = Judgement::failed(
      finite ? Kind::over_bound : Kind::not_finite,
      finite ? fmt::format("{}: {:.9g} is {:.3g} times the bound away from the exact {:.9g}", where,
                           worst.observed, worst.ratio, expected.output[at])
             : fmt::format("{}: {} where the exact output is {:.9g}", where, worst.observed,
                           expected.output[at]),
      hint);
  judgement.max_ratio = worst.ratio;
  return judgement;
}

/// The worst element of one step; every ratio goes to the sink.
Worst worst_of_step(Case& c, std::size_t step, const kernels::Tensor& output) {
  const auto& s = c.scenario();
  Worst worst;
  std::vector<double> observed(static_cast<std::size_t>(s.value_head_size));
  std::vector<double> ratios(observed.size());
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t i = 0; i < state.queries; ++i) {
      for (std::int64_t h = 0; h < s.query_heads; ++h) {
        output_row(output, b, i, h, observed);
        c.oracle().bound_ratios(step, b, i, h, observed, ratios);
        if (c.ratio_sink) c.ratio_sink(ratios);
        for (std::size_t l = 0; l < ratios.size(); ++l) {
          if (ratios[l] > worst.ratio) {
            worst = {ratios[l], observed[l], b, i, h, static_cast<std::int64_t>(l)};
          }
        }
      }
    }
  }
  return worst;
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  double largest = -1;
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    const StepAnswer& answer = execution.steps[i];
    if (answer.status != StepAnswer::Status::ok || !answer.result.output) continue;
    const Worst worst = worst_of_step(c, i, *answer.result.output);
    if (!(worst.ratio <= 1)) return failure(c, i, worst);
    largest = std::max(largest, worst.ratio);
  }
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  if (largest < 0) return Judgement::skipped("the scenario asks no query");
  Judgement passed;
  passed.max_ratio = largest;
  return passed;
}

}  // namespace

Property values_property() {
  return {"values.within_bound",
          "Every output element lies within the rounding-error bound, computed from the exact "
          "weights and the declared arithmetic, of the exact output.",
          "wrong keys, wrong scale, wrong head map, lost precision, non-finite outputs",
          [](const model::Scenario&, const kernels::Capabilities& target) {
            return std::string(target.outputs ? "" : "the target computes no outputs");
          },
          judge};
}

}  // namespace kvcheck::properties
