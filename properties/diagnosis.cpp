// From the outputs of one run to a sentence.
#include "properties/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "model/blindness.h"
#include "properties/case.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

/// Beyond this many outputs a diagnosis would take longer than the search.
constexpr double kMostOutputs = 1 << 17;

/// Readings named in one sentence.
constexpr std::size_t kMostNamed = 3;

double outputs_of(Case& c) {
  double count = 0;
  for (const auto& step : c.timeline().steps()) {
    for (const auto& entry : step.entries) count += static_cast<double>(entry.queries);
  }
  return count * static_cast<double>(c.scenario().query_heads * c.scenario().value_head_size);
}

/// What the target gave for an element; nothing where it gave no output.
std::optional<double> observed(const Execution& execution, const model::ElementAt& at) {
  if (at.step >= execution.steps.size()) return {};
  const StepAnswer& answer = execution.steps[at.step];
  if (answer.status != StepAnswer::Status::ok || !answer.result.output) return {};
  return output_at(*answer.result.output, at.entry, at.query, at.head, at.lane);
}

/// Largest bound ratio under the contract itself.
double worst_ratio(Case& c, const Execution& execution) {
  const model::Scenario& s = c.scenario();
  double worst = 0;
  for (std::size_t step = 0; step < execution.steps.size(); ++step) {
    const auto& entries = c.timeline().steps()[step].entries;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < entries[static_cast<std::size_t>(b)].queries; ++i) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          for (std::int64_t l = 0; l < s.value_head_size; ++l) {
            const auto value = observed(execution, {step, b, i, h, l});
            if (value) worst = std::max(worst, c.oracle().bound_ratio(step, b, i, h, l, *value));
          }
        }
      }
    }
  }
  return worst;
}

std::string ratio_text(double ratio) {
  return std::isinf(ratio) ? std::string("no finite") : fmt::format("{:.3g}", ratio);
}

}  // namespace

std::vector<std::string> diagnosis_words(kernels::Target& target, const model::Scenario& scenario) {
  if (!target.capabilities().outputs) return {};
  Case c(target, scenario);
  if (outputs_of(c) > kMostOutputs) return {};
  const Execution& execution = c.execution();
  const double contract = worst_ratio(c, execution);
  if (contract <= 1) return {};
  const auto found =
      model::diagnose(scenario, arithmetic_profile(target.capabilities(), scenario),
                      [&](const model::ElementAt& at) { return observed(execution, at); });
  if (found.empty()) return {};
  std::string readings;
  for (std::size_t i = 0; i < std::min(found.size(), kMostNamed); ++i) {
    readings += fmt::format("{}it {} ({})", i > 0 ? "; or " : "", found[i].model->statement,
                            found[i].model->name);
  }
  if (found.size() > kMostNamed) {
    readings += fmt::format("; or {} more that this scenario cannot tell from these",
                            found.size() - kMostNamed);
  }
  return {
      fmt::format("Diagnosis: every output of the scenario as first found is explained if {}; "
                  "the largest bound ratio then is {:.2g}, by the contract it is {}.",
                  readings, found.front().worst_ratio, ratio_text(contract))};
}

}  // namespace kvcheck::properties
