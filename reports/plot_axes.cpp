// Ticks, grid and lines of plots.
#include "reports/plot_axes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reports/text.h"

namespace kvcheck::reports {
namespace {

constexpr double kLeft = 64, kTop = 22, kWide = 460, kHigh = 280, kRight = 170, kBottom = 48;
constexpr double kLine = 13;  // Least distance of two names.
constexpr std::size_t kMostTicks = 12;

/// 1, 2 or 5 times a power of ten, about a fifth of the range.
double step_of(double range) {
  const double rough = range / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string tick_text(double tick) {
  return tick >= 1000 ? grouped(static_cast<std::int64_t>(std::llround(tick))) : brief(tick);
}

Path mark(double x, double y, std::size_t series) {
  constexpr double kRadius = 4;
  if (series % 4 == 0) return Path().ring(x, y, kRadius);
  if (series % 4 == 1) return Path().rect(x - kRadius, y - kRadius, 2 * kRadius, 2 * kRadius);
  if (series % 4 == 2) {
    return Path().cross(x - kRadius, y - kRadius, 2 * kRadius, 2 * kRadius, 0);
  }
  return Path()
      .move(x, y - kRadius)
      .line(x + kRadius, y + kRadius)
      .line(x - kRadius, y + kRadius)
      .line(x, y - kRadius);
}

}  // namespace

Axis::Axis(double low, double high, bool logarithmic) : logarithmic_(logarithmic) {
  if (logarithmic) {
    low_ = low, high_ = high > low ? high : 10 * low;
    ticks_ = logarithmic_ticks({1, 2, 5});
    if (ticks_.size() > kMostTicks) ticks_ = logarithmic_ticks({1});
    return;
  }
  const double step = step_of(high > low ? high - low : std::max(1.0, std::abs(high)));
  const double first = std::floor(low / step), last = std::max(first + 1, std::ceil(high / step));
  low_ = first * step, high_ = last * step;
  for (double tick = first; tick <= last && ticks_.size() < kMostTicks; ++tick) {
    ticks_.push_back(tick * step);
  }
}

std::vector<double> Axis::logarithmic_ticks(std::initializer_list<double> factors) const {
  constexpr double kAbout = 1e-9;  // Powers of ten are rounded.
  std::vector<double> ticks;
  for (double power = std::floor(std::log10(low_)); std::pow(10, power) <= high_; ++power) {
    for (const double factor : factors) {
      const double tick = factor * std::pow(10, power);
      if (tick >= low_ * (1 - kAbout) && tick <= high_ * (1 + kAbout)) ticks.push_back(tick);
    }
  }
  return ticks;
}

double Axis::share(double value) const {
  if (logarithmic_) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

Plot::Plot(std::string_view id, std::string_view title, std::string_view description, Axis x_axis,
           Axis y_axis, std::string_view x_name, std::string_view y_name)
    : x_(std::move(x_axis)),
      y_(std::move(y_axis)),
      svg_(svg_frame(id, kLeft + kWide + kRight, kTop + kHigh + kBottom, title, description)) {
  for (const double tick : y_.ticks()) {
    svg_.add(stroked(Path().move(kLeft, y(tick)).line(kLeft + kWide, y(tick)), "hairline", 1));
    svg_.add(label(kLeft - 8, y(tick) + 4, tick_text(tick), Anchor::end, "muted"));
  }
  for (const double tick : x_.ticks()) {
    svg_.add(stroked(Path().move(x(tick), kTop).line(x(tick), kTop + kHigh), "hairline", 1));
    svg_.add(label(x(tick), kTop + kHigh + 16, tick_text(tick), Anchor::middle, "muted"));
  }
  svg_.add(stroked(Path().rect(kLeft, kTop, kWide, kHigh), "muted", 1));
  svg_.add(label(kLeft + kWide / 2, kTop + kHigh + 38, x_name, Anchor::middle));
  svg_.add(label(kLeft, kTop - 8, y_name));
}

double Plot::x(double value) const { return kLeft + kWide * x_.share(value); }
double Plot::y(double value) const { return kTop + kHigh * (1 - y_.share(value)); }

void Plot::line(const std::vector<std::pair<double, double>>& points, std::string_view name,
                std::string_view colour, std::size_t series) {
  if (points.empty()) return;
  Path path;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [along, up] = points[i];
    i == 0 ? path.move(x(along), y(up)) : path.line(x(along), y(up));
  }
  svg_.add(stroked(path, colour, 2));
  for (const auto& [along, up] : points) {
    svg_.add(stroked(mark(x(along), y(up), series), colour, 2));
  }
  // Names of lines that end close together are moved apart.
  double place = y(points.back().second) + 4;
  for (bool moved = true; moved;) {
    moved = false;
    for (const double taken : label_places_) {
      if (std::abs(taken - place) >= kLine - .01) continue;
      place = taken + kLine;
      moved = true;
    }
  }
  label_places_.push_back(place);
  svg_.add(label(x(points.back().first) + 10, place, name));
}

}  // namespace kvcheck::reports
