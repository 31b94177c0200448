// Error against bound: the worst element, the table of the worst, the distribution.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reports/figures.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::ElementEvidence;
using properties::ErrorRecord;

struct Term {
  const char* name;
  double value;
  double opacity;  // Shades of one colour; the words beside them carry the numbers.
};

std::array<Term, 5> terms_of(const ElementEvidence& e) {
  return {{{"weights", e.term_weights, 1},
           {"sums", e.term_sums, .7},
           {"underflow", e.term_underflow, .45},
           {"store", e.term_store, .25},
           {"operands", e.term_operands, .12}}};
}

double total_of(const ElementEvidence& e) {
  double total = 0;
  for (const Term& term : terms_of(e)) {
    if (std::isfinite(term.value) && term.value > 0) total += term.value;
  }
  return total;
}

std::string terms_text(const ElementEvidence& e) {
  const double total = total_of(e);
  if (total <= 0) return "not split";
  std::string out;
  for (const Term& term : terms_of(e)) {
    if (!(term.value > 0) || !std::isfinite(term.value)) continue;
    out +=
        (out.empty() ? "" : ", ") + fmt::format("{} {:.0f} %", term.name, 100 * term.value / total);
  }
  return out;
}

/// The bound as one bar, split into its terms, `length` units long.
void add_terms(Element& svg, const ElementEvidence& e, double x, double y, double length,
               double height) {
  const double total = total_of(e);
  if (total <= 0) {
    svg.add(filled(Path().rect(x, y, length, height), "muted"));
    return;
  }
  double at = x;
  for (const Term& term : terms_of(e)) {
    if (!(term.value > 0) || !std::isfinite(term.value)) continue;
    const double part = length * term.value / total;
    Element shape = filled(Path().rect(at, y, part, height), "muted");
    svg.add(shape.set("fill-opacity", num(term.opacity)));
    at += part;
  }
  svg.add(stroked(Path().rect(x, y, length, height), "muted", 1));
}

std::string place_of(const ElementEvidence& e) {
  return fmt::format("entry {}, head {}, query {} (position {}), lane {}", e.entry, e.head, e.query,
                     e.query_position, e.lane);
}

Element terms_svg(const ElementEvidence& e, const std::string& id) {
  Element svg = svg_frame(id, 112, 14, "Terms of the bound", terms_text(e));
  add_terms(svg, e, 1, 1, 110, 12);
  return svg;
}

/// Shortest decimal above the exact hexadecimal form.
Element both_forms(double value) {
  Element both = number_cell(exact(value));
  return both.add(Element("span").cls("statement").text(hex_float(value)));
}

std::string edge_text(std::size_t bin) {
  const auto& edges = properties::error_bin_edges();
  const double edge = edges[bin];
  if (std::isinf(edge)) return "> " + brief(edges[bin - 1]);
  if (edge == 0) return "0";
  if (edge >= .25) return edge == .25 ? "1/4" : edge == .5 ? "1/2" : brief(edge);
  return fmt::format("1/{}", std::llround(1 / edge));
}

std::string range_text(std::size_t bin) {
  const auto& edges = properties::error_bin_edges();
  if (bin == 0) return "exactly 0";
  if (std::isinf(edges[bin])) return "above " + brief(edges[bin - 1]) + " or not finite";
  return "above " + edge_text(bin - 1) + ", up to " + edge_text(bin);
}

std::string short_count(std::int64_t n) {
  if (n < 1000) return std::to_string(n);
  const double value = static_cast<double>(n);
  if (n < 1000000) return fmt::format("{:.3g}k", value / 1e3);
  if (n < 1000000000) return fmt::format("{:.3g}M", value / 1e6);
  return fmt::format("{:.3g}G", value / 1e9);
}

std::int64_t beyond_bound(const ErrorRecord& record) {
  const auto& edges = properties::error_bin_edges();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < record.histogram.size() && i < edges.size(); ++i) {
    if (edges[i] > 1) count += record.histogram[i];
  }
  return count;
}

Element histogram_svg(const ErrorRecord& record, const std::string& id) {
  constexpr double kLeft = 12, kTop = 36, kHigh = 120, kBar = 40;
  const auto& edges = properties::error_bin_edges();
  const double width = kLeft + kBar * static_cast<double>(edges.size()) + 16;
  Element svg = svg_frame(
      id, width, kTop + kHigh + 42,
      fmt::format("Error over bound, {} {}", record.target, record.element_type),
      fmt::format("{} elements; largest ratio {}; {} beyond the bound.", grouped(record.elements),
                  ratio_text(record.max_ratio), grouped(beyond_bound(record))));
  const std::string hatch = add_hatch(svg, id + "-hatch", "failed");
  double most = 1;
  for (const std::int64_t n : record.histogram) {
    most = std::max(most, std::log10(1 + static_cast<double>(std::max<std::int64_t>(0, n))));
  }
  const double base = kTop + kHigh;
  Path inside, outside;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const double x = kLeft + kBar * static_cast<double>(i);
    const std::int64_t n = i < record.histogram.size() ? record.histogram[i] : 0;
    const double height = n > 0 ? kHigh * std::log10(1 + static_cast<double>(n)) / most : 0;
    Path& bars = edges[i] > 1 ? outside : inside;
    if (n > 0) {
      bars.rect(x + 3, base - height, kBar - 6, height);
      svg.add(label(x + kBar / 2, base - height - 4, short_count(n), Anchor::middle,
                    edges[i] > 1 ? "failed-text" : "text", 11, edges[i] > 1));
    }
    svg.add(label(x + kBar / 2, base + 16, edge_text(i), Anchor::middle, "muted", 11));
  }
  if (!inside.empty()) svg.add(filled(inside, "resident"));
  if (!outside.empty()) {
    svg.add(Element("path").set("fill", hatch).set("d", outside.data()));
    svg.add(stroked(outside, "failed", 1.5));
  }
  svg.add(stroked(Path().move(kLeft, base).line(width - 16, base), "muted", 1));
  const auto bound_bin =
      static_cast<double>(std::find(edges.begin(), edges.end(), 1.0) - edges.begin());
  const double bound = kLeft + kBar * (bound_bin + 1);
  svg.add(stroked(Path().move(bound, kTop - 18).line(bound, base + 4), "text", 2, "7 4"));
  svg.add(label(bound - 6, kTop - 22, "bound", Anchor::end, "text", 12, true));
  svg.add(label(kLeft, base + 36, "error / bound, upper edge of each bin; heights are logarithmic",
                Anchor::start, "muted", 11));
  return svg;
}

}  // namespace

Element gauge_svg(const ElementEvidence& e, std::string_view prefix) {
  constexpr double kLeft = 62, kLong = 300, kHigh = 22, kMostRatio = 12;
  const std::string id = std::string(prefix) + "-gauge";
  const bool finite = std::isfinite(e.observed) && std::isfinite(e.ratio);
  const double error = std::abs(e.observed - e.expected);
  const bool broken = !finite || e.ratio > kMostRatio;
  const double shown_ratio = broken ? kMostRatio : std::max(e.ratio, 0.0);
  const double scale = kLong / std::max(1.0, shown_ratio);
  const std::string error_words =
      finite ? fmt::format("error {}, {} times the bound", brief(error), ratio_text(e.ratio))
             : fmt::format("observed {}", exact(e.observed));
  Element svg =
      svg_frame(id, 400, 132, "Error of the worst element beside its bound",
                fmt::format("{}: {}; bound {}.", place_of(e), error_words, brief(e.bound)));
  const std::string hatch = add_hatch(svg, id + "-hatch", "failed");
  svg.add(label(kLeft - 8, 36, "bound", Anchor::end, "muted"));
  add_terms(svg, e, kLeft, 20, scale, kHigh);
  svg.add(label(kLeft + scale + 8, 36, brief(e.bound)));
  svg.add(label(kLeft - 8, 72, "error", Anchor::end, "muted"));
  const double length = std::max(2.0, shown_ratio * scale);
  Path bar;
  bar.rect(kLeft, 56, length, kHigh);
  svg.add(Element("path").set("fill", hatch).set("d", bar.data()));
  svg.add(stroked(bar, "failed", 1.5));
  if (broken) {  // Two slashes: the bar is longer than it is drawn.
    const double at = kLeft + length - 26;
    svg.add(stroked(Path().move(at, 82).line(at + 8, 52).move(at + 8, 82).line(at + 16, 52), "page",
                    4));
  }
  svg.add(label(kLeft, 96, error_words, Anchor::start, "failed-text", 13, true));
  svg.add(label(kLeft, 116, "bound: " + terms_text(e), Anchor::start, "muted", 11));
  return svg;
}

Element element_table(const std::vector<ElementEvidence>& elements, std::string_view prefix) {
  constexpr std::size_t kMost = 10;
  const std::size_t shown = std::min(kMost, elements.size());
  std::string caption = "Worst elements of the failing step";
  if (shown < elements.size()) {
    caption += fmt::format(", {} of the {} recorded; all are in run.json", shown, elements.size());
  }
  Element table = table_head(caption,
                             {"entry", "head", "query at", "lane", "ratio", "error", "bound",
                              "observed", "expected", "the bound is made of"},
                             "nnnnnnnnn ");
  Element body("tbody");
  for (std::size_t i = 0; i < shown; ++i) {
    const ElementEvidence& e = elements[i];
    Element line("tr");
    if (!(e.ratio <= 1)) line.cls("bad");
    line.add(row_head(std::to_string(e.entry)).cls("n"));
    line.add(number_cell(std::to_string(e.head)));
    line.add(number_cell(fmt::format("{}", e.query_position)));
    line.add(number_cell(std::to_string(e.lane)));
    line.add(Element("td").cls("n").add(Element("strong").text(ratio_text(e.ratio))));
    line.add(number_cell(brief(std::abs(e.observed - e.expected))));
    line.add(number_cell(brief(e.bound)));
    line.add(both_forms(e.observed));
    line.add(both_forms(e.expected));
    Element split("td");
    split.cls("terms").add(terms_svg(e, fmt::format("{}-terms-{}", prefix, i)));
    line.add(split.text(" ").text(terms_text(e)));
    body.add(line);
  }
  return boxed(table.add(body), caption);
}

Element histogram_figure(const ErrorRecord& record, std::string_view prefix) {
  const auto& edges = properties::error_bin_edges();
  const std::string id(prefix);
  std::string caption =
      fmt::format("{}, {}: {} elements compared, largest ratio {}", record.target,
                  record.element_type, grouped(record.elements), ratio_text(record.max_ratio));
  if (!record.worst_hash.empty()) caption += " in case " + record.worst_hash;
  const std::int64_t beyond = beyond_bound(record);
  caption += beyond > 0 ? fmt::format("; {} beyond the bound.", counted(beyond, "element"))
                        : std::string("; none beyond the bound.");
  Element result = figure(id, histogram_svg(record, id + "-svg"), caption);
  Element table = table_head("Elements by share of the bound", {"error / bound", "elements"}, " n");
  Element body("tbody");
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::int64_t n = i < record.histogram.size() ? record.histogram[i] : 0;
    Element line("tr");
    line.add(row_head(range_text(i)));
    body.add(line.add(number_cell(grouped(n))));
  }
  Element numbers = details("The same numbers as a table");
  return result.add(numbers.add(table.add(body)));
}

}  // namespace kvcheck::reports
