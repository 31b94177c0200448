// Comparison of readings on one scenario.
#include "model/blindness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

namespace kvcheck::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Calls `visit(element, index into Expected)` for every output that somebody asks for.
template <class Visit>
void for_each_element(Oracle& oracle, Visit visit) {
  const Scenario& s = oracle.scenario();
  for (std::size_t step = 0; step < s.steps.size(); ++step) {
    const TimelineStep& state = oracle.timeline().steps()[step];
    if (!state.defined || !std::holds_alternative<Append>(s.steps[step])) continue;
    const Expected& expected = oracle.expected(step);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < state.entries[static_cast<std::size_t>(b)].queries; ++i) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          for (std::int64_t c = 0; c < s.value_head_size; ++c) {
            visit(ElementAt{step, b, i, h, c}, element_index(s, expected, b, i, h, c));
          }
        }
      }
    }
  }
}

double ratio_of(double distance, double bound) {
  if (std::isnan(distance) || std::isinf(distance)) return kInfinity;
  if (std::isinf(bound) || distance == 0) return 0;
  return distance / bound;
}

}  // namespace

Separation separation(Oracle& right, const ArithmeticProfile& profile, const WrongModel& model) {
  Oracle wrong(right.scenario(), profile, model.reading);
  Separation found{&model, 0, {}};
  for_each_element(right, [&](const ElementAt& element, std::size_t at) {
    const Expected& expected = right.expected(element.step);
    const double distance = std::abs(wrong.expected(element.step).output[at] - expected.output[at]);
    const double ratio = ratio_of(distance, expected.bound[at]);
    if (ratio > found.ratio) found.ratio = ratio, found.where = element;
  });
  return found;
}

std::vector<Separation> separations(const Scenario& scenario, const ArithmeticProfile& profile) {
  Oracle right(scenario, profile);
  std::vector<Separation> all;
  for (const WrongModel& model : wrong_models()) {
    if (model.concerns(scenario)) all.push_back(separation(right, profile, model));
  }
  return all;
}

}  // namespace kvcheck::model
