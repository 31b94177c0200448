// The legend of a figure: every look that occurs in it, with its word.
#pragma once

#include <string_view>
#include <vector>

#include "reports/html_writer.h"

namespace kvcheck::reports {

enum class Look { solid, hatched, outline, dotted, cross, ring, own, dashed_line, dotted_line };

struct LegendItem {
  Look look = Look::solid;
  std::string_view colour;
  std::string_view word;
};

/// Draws `items` from (x, y) to the right, in lines of at most `width`; `hatch` fills the hatched
/// ones. Returns the height taken.
double add_legend(Element& svg, const std::vector<LegendItem>& items, double x, double y,
                  double width, std::string_view hatch);

/// The height that add_legend will take.
double legend_height(const std::vector<LegendItem>& items, double width);

}  // namespace kvcheck::reports
