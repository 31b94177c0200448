// Axes of a plot: from values to places on an SVG, with ticks and grid.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/svg.h"

namespace kvcheck::reports {

/// One direction, linear or logarithmic.
class Axis {
 public:
  /// Linear: `low` and `high` are widened to whole ticks. \pre logarithmic: both above 0
  Axis(double low, double high, bool logarithmic);

  /// Place of `value` from 0 to 1.
  double share(double value) const;
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  std::vector<double> logarithmic_ticks(std::initializer_list<double> factors) const;

  double low_, high_;
  bool logarithmic_;
  std::vector<double> ticks_;
};

/// A frame with grid, numbers and the names of both axes.
class Plot {
 public:
  Plot(std::string_view id, std::string_view title, std::string_view description, Axis x, Axis y,
       std::string_view x_name, std::string_view y_name);

  double x(double value) const;
  double y(double value) const;

  /// A line through the points with a mark at each, named where it ends. Marks differ in shape by
  /// `series`, so that a line is known without its colour.
  void line(const std::vector<std::pair<double, double>>& points, std::string_view name,
            std::string_view colour, std::size_t series);
  void add(const Element& element) { svg_.add(element); }
  const Element& svg() const { return svg_; }

 private:
  Axis x_, y_;
  Element svg_;
  std::vector<double> label_places_;
};

}  // namespace kvcheck::reports
