// Goals and slopes of a bench record.
#include "properties/bench_record.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace kvcheck::properties {
namespace {

constexpr std::int64_t kGrowthFrom = 1025;  // Below it a step costs more than its keys.

using Points = std::map<std::int64_t, double>;  // T to milliseconds.

double slope(const Points& points) {
  double mean_x = 0, mean_y = 0;
  const auto count = static_cast<double>(points.size());
  for (const auto& [length, time] : points) {
    mean_x += std::log(static_cast<double>(length)) / count;
    mean_y += std::log(time) / count;
  }
  double along = 0, across = 0;
  for (const auto& [length, time] : points) {
    const double x = std::log(static_cast<double>(length)) - mean_x;
    along += x * x;
    across += x * (std::log(time) - mean_y);
  }
  return across / along;
}

}  // namespace

std::string_view to_string(GoalStatus status) {
  switch (status) {
    case GoalStatus::none:
      return "no goal";
    case GoalStatus::not_measured:
      return "not measured";
    case GoalStatus::missed:
      return "missed";
    case GoalStatus::reached:
      return "reached";
    case GoalStatus::aim:
      return "aim reached";
  }
  return "";
}

GoalStatus goal_status(double value, double at_least, double aim) {
  if (!(at_least > 0)) return GoalStatus::none;
  if (std::isnan(value)) return GoalStatus::not_measured;
  if (value >= aim) return GoalStatus::aim;
  return value >= at_least ? GoalStatus::reached : GoalStatus::missed;
}

bool BenchRecord::wrong_output() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const BenchRow& row) { return row.bound_ratio > 1; });
}

std::int64_t BenchRecord::compared() const {
  return std::count_if(rows.begin(), rows.end(),
                       [](const BenchRow& row) { return !std::isnan(row.ratio); });
}

std::vector<BenchGrowth> growth_of(const std::vector<BenchRow>& rows) {
  std::map<std::string, Points> full, windowed;
  for (const BenchRow& row : rows) {
    if (!(row.ours_ms > 0) || row.element_type != "f32") continue;
    // A row with several peers was timed beside each of them; the least disturbed time counts.
    const auto note = [&](Points& points) {
      const auto [at, fresh] = points.emplace(row.T, row.ours_ms);
      if (!fresh) at->second = std::min(at->second, row.ours_ms);
    };
    if (row.what == "decode" && row.T >= kGrowthFrom) note(full[row.shape]);
    if (row.what == "windowed" && row.T > row.capacity) {
      note(windowed[fmt::format("{}.W{}.C{}", row.shape, row.window, row.capacity)]);
    }
  }
  std::vector<BenchGrowth> found;
  const auto add = [&](const char* layout, const auto& groups, double expected, double tolerance) {
    for (const auto& [name, points] : groups) {
      if (points.size() < 2) continue;
      BenchGrowth growth;
      growth.id = fmt::format("growth.{}.{}", layout, name);
      growth.what = fmt::format("decode time over T, {} cache", layout);
      growth.slope = slope(points);
      growth.expected = expected;
      growth.tolerance = tolerance;
      for (const auto& point : points) growth.T.push_back(point.first);
      growth.status =
          std::abs(growth.slope - expected) <= tolerance ? GoalStatus::reached : GoalStatus::missed;
      found.push_back(std::move(growth));
    }
  };
  add("full", full, 1, .08);
  add("windowed", windowed, 0, .05);
  return found;
}

}  // namespace kvcheck::properties
