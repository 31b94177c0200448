// Building blocks of figures: a framed SVG with title and description, paths, marks and legends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reports/html_writer.h"

namespace kvcheck::reports {

/// At most two decimals, no trailing zeros.
std::string num(double value);

/// Path data, in user units.
class Path {
 public:
  Path& move(double x, double y);
  Path& line(double x, double y);
  Path& rect(double x, double y, double width, double height);
  /// Two strokes across a cell of side `size` at (x, y).
  Path& cross(double x, double y, double width, double height, double inset);
  Path& ring(double center_x, double center_y, double radius);
  bool empty() const { return data_.empty(); }
  const std::string& data() const { return data_; }

 private:
  std::string data_;
};

/// Colours by name of the palette, as a class and as the light presentation attribute, so that a
/// figure keeps its meaning where styles are blocked.
Element& fill(Element& shape, std::string_view colour);
Element& stroke(Element& shape, std::string_view colour, double stroke_width);

Element filled(const Path& path, std::string_view colour);
Element stroked(const Path& path, std::string_view colour, double stroke_width,
                std::string_view dashes = "");

enum class Anchor { start, middle, end };
Element label(double x, double y, std::string_view text, Anchor anchor = Anchor::start,
              std::string_view colour = "text", double size = 12, bool bold = false);

/// An <svg> with role=img, its title and description; `id` is unique on the page.
Element svg_frame(std::string_view id, double width, double height, std::string_view title,
                  std::string_view description);

/// Adds a 45 degree hatch of `colour` to `svg`; returns "url(#...)" to fill with.
std::string add_hatch(Element& svg, std::string_view id, std::string_view colour);

/// A figure whose picture scrolls in its own box. `caption` stands under it.
Element figure(std::string_view id, const Element& svg, std::string_view caption);

/// <details> with a summary; `open` where it matters at first sight.
Element details(std::string_view summary, bool open = false);

/// <table> with a caption and a head of columns; `numeric` has one letter per column: 'n' for
/// numbers, anything else for words.
Element table_head(std::string_view caption, const std::vector<std::string_view>& columns,
                   std::string_view numeric);

/// A table in a box that scrolls by itself on narrow screens.
Element boxed(const Element& table, std::string_view name);

/// One cell of words or of numbers.
Element cell(std::string_view text);
Element number_cell(std::string_view text);
/// The head of a row.
Element row_head(std::string_view text);

/// <p class="note">.
Element note(std::string_view text);

/// A verdict as glyph and word, coloured.
Element verdict_badge(std::string_view verdict);

}  // namespace kvcheck::reports
