// Building blocks of figures and tables.
#include "reports/svg.h"

#include <fmt/format.h>

#include "reports/palette.h"

namespace kvcheck::reports {

std::string num(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

Path& Path::move(double x, double y) {
  data_ += fmt::format("M{} {}", num(x), num(y));
  return *this;
}

Path& Path::line(double x, double y) {
  data_ += fmt::format("L{} {}", num(x), num(y));
  return *this;
}

Path& Path::rect(double x, double y, double width, double height) {
  data_ += fmt::format("M{} {}h{}v{}h{}z", num(x), num(y), num(width), num(height), num(-width));
  return *this;
}

Path& Path::cross(double x, double y, double width, double height, double inset) {
  const double right = x + width - inset, bottom = y + height - inset;
  return move(x + inset, y + inset)
      .line(right, bottom)
      .move(right, y + inset)
      .line(x + inset, bottom);
}

Path& Path::ring(double center_x, double center_y, double radius) {
  const std::string r = num(radius), d = num(2 * radius);
  data_ += fmt::format("M{} {}a{} {} 0 1 0 {} 0a{} {} 0 1 0 -{} 0", num(center_x - radius),
                       num(center_y), r, r, d, r, r, d);
  return *this;
}

Element& fill(Element& shape, std::string_view colour) {
  return shape.cls("f-" + std::string(colour)).set("fill", light(colour));
}

Element& stroke(Element& shape, std::string_view colour, double stroke_width) {
  return shape.cls("s-" + std::string(colour))
      .set("fill", "none")
      .set("stroke", light(colour))
      .set("stroke-width", num(stroke_width));
}

Element filled(const Path& path, std::string_view colour) {
  Element shape("path");
  return fill(shape, colour).set("d", path.data());
}

Element stroked(const Path& path, std::string_view colour, double stroke_width,
                std::string_view dashes) {
  Element shape("path");
  stroke(shape, colour, stroke_width).set("d", path.data());
  if (!dashes.empty()) shape.set("stroke-dasharray", dashes);
  return shape;
}

Element label(double x, double y, std::string_view text, Anchor anchor, std::string_view colour,
              double size, bool bold) {
  Element element("text");
  fill(element, colour).set("x", num(x)).set("y", num(y));
  if (anchor != Anchor::start) {
    element.set("text-anchor", anchor == Anchor::middle ? "middle" : "end");
  }
  if (size != 12) element.set("font-size", num(size));
  if (bold) element.set("font-weight", "bold");
  element.text(text);
  return element;
}

Element svg_frame(std::string_view id, double width, double height, std::string_view title,
                  std::string_view description) {
  const std::string name(id);
  Element svg("svg");
  svg.id(name)
      .set("role", "img")
      .set("aria-labelledby", name + "-t " + name + "-d")
      .set("width", num(width))
      .set("height", num(height))
      .set("viewBox", fmt::format("0 0 {} {}", num(width), num(height)))
      .set("font-size", "12")
      .set("font-family", "system-ui, sans-serif");
  svg.add(Element("title").id(name + "-t").text(title));
  svg.add(Element("desc").id(name + "-d").text(description));
  return svg;
}

std::string add_hatch(Element& svg, std::string_view id, std::string_view colour) {
  const std::string name(id);
  Element pattern("pattern");
  pattern.id(name)
      .set("width", 6)
      .set("height", 6)
      .set("patternUnits", "userSpaceOnUse")
      .set("patternTransform", "rotate(45)");
  pattern.add(stroked(Path().move(1.5, 0).line(1.5, 6), colour, 3));
  svg.add(Element("defs").add(pattern));
  return "url(#" + name + ")";
}

Element figure(std::string_view id, const Element& svg, std::string_view caption) {
  Element element("figure");
  element.id(id);
  element.add(Element("div").cls("scroll").add(svg));
  if (!caption.empty()) element.add(Element("figcaption").text(caption));
  return element;
}

Element details(std::string_view summary, bool open) {
  Element element("details");
  if (open) element.flag("open");
  return element.add(Element("summary").text(summary));
}

Element table_head(std::string_view caption, const std::vector<std::string_view>& columns,
                   std::string_view numeric) {
  Element table("table");
  table.add(Element("caption").text(caption));
  Element row("tr");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Element head("th");
    head.set("scope", "col");
    if (i < numeric.size() && numeric[i] == 'n') head.cls("n");
    row.add(head.text(columns[i]));
  }
  return table.add(Element("thead").add(row));
}

Element boxed(const Element& table, std::string_view name) {
  return Element("div")
      .cls("scroll")
      .set("role", "region")
      .set("aria-label", name)
      .set("tabindex", 0)
      .add(table);
}

Element cell(std::string_view text) { return Element("td").text(text); }

Element number_cell(std::string_view text) { return Element("td").cls("n").text(text); }

Element row_head(std::string_view text) { return Element("th").set("scope", "row").text(text); }

Element note(std::string_view text) { return Element("p").cls("note").text(text); }

Element verdict_badge(std::string_view verdict) {
  std::string_view glyph = "–";  // skipped
  if (verdict == "passed") glyph = "✓";
  if (verdict == "failed") glyph = "✗";
  if (verdict == "blind") glyph = "◌";
  if (verdict == "errored") glyph = "!";
  Element badge("span");
  badge.cls("badge v-" + std::string(verdict));
  badge.add(Element("span").set("aria-hidden", "true").text(glyph));
  return badge.text(" ").text(verdict);
}

}  // namespace kvcheck::reports
