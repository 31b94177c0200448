// The legend of a figure.
#include "reports/legend.h"

#include "reports/palette.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

constexpr double kSwatch = 14, kLine = 22, kGap = 18;
// Wide enough for any system font at 12 px: too wide only leaves air.
constexpr double kPerLetter = 7;

double item_width(const LegendItem& item) {
  return kSwatch + 6 + kPerLetter * static_cast<double>(width(item.word)) + kGap;
}

void add_swatch(Element& svg, const LegendItem& item, double x, double y, std::string_view hatch) {
  const double s = kSwatch;
  switch (item.look) {
    case Look::solid:
      svg.add(filled(Path().rect(x, y, s, s), item.colour));
      break;
    case Look::hatched: {
      Element box("path");
      svg.add(box.set("d", Path().rect(x, y, s, s).data()).set("fill", hatch));
      svg.add(stroked(Path().rect(x, y, s, s), item.colour, 1));
      break;
    }
    case Look::outline:
      svg.add(stroked(Path().rect(x, y, s, s), item.colour, 1.5));
      break;
    case Look::dotted:
      svg.add(stroked(Path().rect(x, y, s, s), item.colour, 1.5, "2 2"));
      break;
    case Look::cross:
      svg.add(stroked(Path().cross(x, y, s, s, 2), item.colour, 3));
      break;
    case Look::ring:
      svg.add(stroked(Path().ring(x + s / 2, y + s / 2, 5), item.colour, 2));
      break;
    case Look::own:
      svg.add(filled(Path().rect(x + 9, y, 3, s), item.colour));
      break;
    case Look::dashed_line:
    case Look::dotted_line:
      svg.add(stroked(Path().move(x, y + s / 2).line(x + s, y + s / 2), item.colour, 2,
                      item.look == Look::dashed_line ? "6 3" : "2 3"));
      break;
  }
}

/// Calls `place(item, x, y)` for each item in turn; returns the height taken.
template <class Place>
double lay_out(const std::vector<LegendItem>& items, double width, const Place& place) {
  double x = 0, y = 0;
  for (const LegendItem& item : items) {
    if (x > 0 && x + item_width(item) > width) x = 0, y += kLine;
    place(item, x, y);
    x += item_width(item);
  }
  return items.empty() ? 0 : y + kLine;
}

}  // namespace

double add_legend(Element& svg, const std::vector<LegendItem>& items, double x, double y,
                  double width, std::string_view hatch) {
  return lay_out(items, width, [&](const LegendItem& item, double dx, double dy) {
    add_swatch(svg, item, x + dx, y + dy, hatch);
    svg.add(label(x + dx + kSwatch + 6, y + dy + 11.5, item.word, Anchor::start, "muted"));
  });
}

double legend_height(const std::vector<LegendItem>& items, double width) {
  return lay_out(items, width, [](const LegendItem&, double, double) {});
}

}  // namespace kvcheck::reports
