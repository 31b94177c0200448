// From the outputs of one run to a sentence.
#include "properties/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "properties/convert.h"
#include "properties/mutate.h"
#include "properties/read_back.h"

namespace kvcheck::properties {
namespace {

/// Beyond this many multiplications a diagnosis, which asks an oracle for each reading, would take
/// longer than the search: at this many a few seconds.
constexpr double kMostCost = 1 << 22;

/// The same for the launches that measure a mask.
constexpr std::int64_t kMostLaunches = 64;

/// Readings named in one sentence.
constexpr std::size_t kMostNamed = 3;

/// What the target gave for an element; nothing where it gave no output.
std::optional<double> observed(const Execution& execution, const model::ElementAt& at) {
  if (at.step >= execution.steps.size()) return {};
  const StepAnswer& answer = execution.steps[at.step];
  if (answer.status != StepAnswer::Status::ok || !answer.result.output) return {};
  return output_at(*answer.result.output, at.entry, at.query, at.head, at.lane);
}

std::string percent(std::int64_t part, std::int64_t whole) {
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part > 0 && share < 1) return "less than 1 %";
  if (part < whole && share > 99) return "more than 99 %";
  return fmt::format("{:.0f} %", share);
}

std::string contract_words(const model::RowExplanation& e) {
  return fmt::format("the contract explains {} of the rows", percent(e.by_contract(), e.rows));
}

/// The readings that do as well as the best one: "if it A (a, largest bound ratio 0.4); or it B".
std::string best_readings(const model::RowExplanation& e) {
  const auto& best = e.readings.front();
  const auto same = [&](const model::ReadingShare& other) {
    return other.rows == best.rows && other.failing == best.failing;
  };
  std::string words;
  std::size_t alike = 0;
  for (const model::ReadingShare& share : e.readings) {
    if (!same(share)) break;
    if (++alike > kMostNamed) continue;
    words += fmt::format("{}it {} ({}, largest bound ratio {:.2g})", alike > 1 ? "; or " : "",
                         share.model->statement, share.model->name, share.worst_ratio);
  }
  if (alike > kMostNamed) {
    words +=
        fmt::format("; or {} more that this scenario cannot tell from these", alike - kMostNamed);
  }
  return words;
}

/// How many of the measured sets each reading of visibility gives.
struct MaskShare {
  const model::WrongModel* model = nullptr;
  std::int64_t queries = 0;
};

MaskShare nearest_mask(const model::Scenario& scenario, const model::Timeline& timeline,
                       const std::vector<MeasuredQuery>& queries) {
  MaskShare best;
  for (const model::WrongModel& model : model::wrong_models()) {
    if (!model.concerns(scenario) || model.reading.visible == nullptr) continue;
    const auto alike =
        std::count_if(queries.begin(), queries.end(), [&](const MeasuredQuery& query) {
          const model::QueryPlace place{scenario,    timeline,   query.step,
                                        query.entry, query.head, query.query};
          return query.measured && model.reading.visible(place) == query.observed;
        });
    if (alike > best.queries) best = {&model, alike};
  }
  return best;
}

/// Which mask the target shows with zero logits, where the scenario's own outputs are no numbers.
std::string mask_words(kernels::Target& target, Case& c) {
  if (!cannot_run(target, with_position_fill(c.scenario(), model::FillKind::position_block, 0))
           .empty()) {
    return "";
  }
  if (launches_to_measure(c.scenario()) > kMostLaunches) return "";
  const ReadBack measured = measure_visibility(target, c.scenario());
  const auto count = [&](auto wanted) {
    return std::count_if(measured.queries.begin(), measured.queries.end(), wanted);
  };
  const auto seen = count([](const MeasuredQuery& query) { return query.measured; });
  const auto right = count([](const MeasuredQuery& query) { return query.agrees(); });
  const auto all = static_cast<std::int64_t>(measured.queries.size());
  if (seen == 0) return "Its mask cannot be measured: no output is finite with zero logits either.";
  const std::string where =
      seen == all ? "every row" : fmt::format("the {} of {} rows that are finite", seen, all);
  if (right == seen) {
    return fmt::format("The mask, measured with zero logits, is the contract's on {}.", where);
  }
  const MaskShare best = nearest_mask(c.scenario(), c.timeline(), measured.queries);
  if (best.queries <= right) {
    return fmt::format("The mask, measured with zero logits, is the contract's on {} of {} rows.",
                       right, seen);
  }
  return fmt::format(
      "The mask, measured with zero logits, is that of a target that {} ({}) on {}; the contract's "
      "on {} of these.",
      best.model->statement, best.model->name,
      best.queries == seen ? where : fmt::format("{} of {} rows", best.queries, seen),
      percent(right, seen));
}

}  // namespace

model::RowExplanation explain_rows(Case& c, const Execution& execution,
                                   const model::ExplainOptions& options) {
  return model::explain_rows(
      c.oracle(), arithmetic_profile(c.capabilities(), c.scenario()),
      [&](const model::ElementAt& at) { return observed(execution, at); }, options);
}

std::string explanation_words(const model::RowExplanation& e) {
  if (e.failing == 0) return "";
  if (e.not_finite == e.failing) {
    return fmt::format("{} of {} rows are not finite, which no reading explains; {}", e.not_finite,
                       e.rows, contract_words(e));
  }
  if (e.readings.empty()) {
    return fmt::format("no known wrong reading explains any of the {} failing rows; {}", e.failing,
                       contract_words(e));
  }
  if (e.every_row()) {
    return fmt::format("explained on every row if {}; {}", best_readings(e), contract_words(e));
  }
  const auto& best = e.readings.front();
  if (e.every_failing_row()) {
    return fmt::format("explained on every failing row, and on {} of all, if {}; {}",
                       percent(best.rows, e.rows), best_readings(e), contract_words(e));
  }
  return fmt::format(
      "no known wrong reading explains every row; nearest, on {} of {} failing rows and {} of all, "
      "is that {}; {}",
      best.failing, e.failing, percent(best.rows, e.rows), best_readings(e), contract_words(e));
}

std::vector<std::string> diagnosis_words(kernels::Target& target, const model::Scenario& scenario,
                                         const std::string& what) {
  if (!target.capabilities().outputs) return {};
  Case c(target, scenario);
  if (cost_of(scenario, c.timeline()) > kMostCost) return {};
  const model::RowExplanation explanation = explain_rows(c, c.execution());
  if (explanation.failing == 0) return {};
  std::vector<std::string> words = {
      fmt::format("Diagnosis of the scenario {}: {}.", what, explanation_words(explanation))};
  if (explanation.not_finite > 0) {
    std::string mask = mask_words(target, c);
    if (!mask.empty()) words.push_back(std::move(mask));
  }
  return words;
}

}  // namespace kvcheck::properties
