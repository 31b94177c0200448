// The timeline of a case: resident rows after every step as a sawtooth, slot lanes below.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reports/figures.h"
#include "reports/legend.h"
#include "reports/slot_lanes.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

constexpr double kLeft = 62, kTop = 34, kRight = 104, kPlot = 170, kAxis = 54;

class Sawtooth {
 public:
  Sawtooth(const CaseView& view, std::size_t entry, Shown shown, std::string id)
      : view_(view), entry_(entry), shown_(shown), id_(std::move(id)) {
    const auto count = static_cast<double>(shown.end - shown.begin);
    column_ = std::clamp(700 / std::max(1.0, count), 9.0, 92.0);
    width_ = std::max(kLeft + column_ * count + kRight, 420.0);
    lanes_ = choose_lanes(view, entry);
    for (std::size_t i = shown.begin; i < shown.end; ++i) most_ = std::max(most_, at(i).resident);
    most_ = std::max({most_, view.capacity, view.window, std::int64_t{1}});
    // Room for what a step drops, so that a drop is seen; a huge one is told by its number.
    std::int64_t dropped = most_;
    for (std::size_t i = shown.begin; i < shown.end; ++i) {
      dropped = std::max(dropped, at(i).resident + at(i).evicted + at(i).rolled_back);
    }
    most_ = std::min(dropped, most_ + most_ / 2 + 1);
  }

  Element draw() {
    const auto items = legend();
    const double lanes_top = kTop + kPlot + kAxis;
    const double below = lanes_top + lanes_.height() + 16;
    const double height = below + legend_height(items, width_ - 8);
    Element svg = svg_frame(id_, width_, height, fmt::format("Timeline of batch entry {}", entry_),
                            description());
    hatch_ = add_hatch(svg, id_ + "-hatch", "staged");
    add_scale(svg);
    add_columns(svg);
    add_limits(svg);
    add_axis(svg);
    if (!lanes_.rows.empty()) {
      add_lanes(svg, view_, entry_, lanes_, {kLeft, lanes_top, column_, shown_});
    }
    add_failure(svg, lanes_top + lanes_.height());
    add_legend(svg, items, 8, below, width_ - 8, hatch_);
    return svg;
  }

  std::string caption() const {
    std::string text = fmt::format(
        "Rows of the cache that hold live tokens after each step of batch entry {}.", entry_);
    if (!lanes_.rows.empty()) {
      text += " Below, each row of the buffer with the position of the token in it";
      text += primed() ? "; a prime marks a token written after a rollback." : ".";
    }
    if (!lanes_.note.empty()) text += " " + lanes_.note;
    if (!shown_.all()) text += " " + shown_.note("steps");
    return text;
  }

 private:
  const EntryView& at(std::size_t step) const {
    static const EntryView kNone;
    const auto& entries = view_.steps[step].entries;
    return entry_ < entries.size() ? entries[entry_] : kNone;
  }

  double x(std::size_t step) const {
    return kLeft + static_cast<double>(step - shown_.begin) * column_;
  }
  double y(std::int64_t rows) const {
    return kTop +
           kPlot * (1 - static_cast<double>(std::min(rows, most_)) / static_cast<double>(most_));
  }
  /// Foot of the sign for a drop: in the middle of the outline where it has room, else at its end.
  double drop_y(const EntryView& e, std::int64_t dropped) const {
    const double top = y(e.resident), roof = y(e.resident + dropped);
    return top - roof >= 22 ? (top + roof) / 2 + 4 : top - 2;
  }
  double gap() const { return column_ >= 24 ? 3 : column_ >= 12 ? 1 : .5; }

  bool any(bool (*fact)(const StepView&, const EntryView&)) const {
    for (std::size_t i = shown_.begin; i < shown_.end; ++i) {
      if (fact(view_.steps[i], at(i))) return true;
    }
    return false;
  }

  bool primed() const {
    for (std::size_t i = shown_.begin; i < shown_.end; ++i) {
      const std::int64_t newest = at(i).length - 1;
      if (view_.timeline && newest >= 0 && view_.steps[i].defined &&
          view_.timeline->generation(i, static_cast<std::int64_t>(entry_), {newest}) > 0) {
        return true;
      }
    }
    return false;
  }

  std::vector<LegendItem> legend() const {
    std::vector<LegendItem> items = {{Look::solid, "resident", "resident"}};
    if (any([](const auto&, const auto& e) { return e.staged; })) {
      items.push_back({Look::hatched, "staged", "staged on a temporary buffer"});
    }
    if (any([](const auto&, const auto& e) { return e.evicted > 0; })) {
      items.push_back({Look::outline, "evicted", "evicted by the step"});
    }
    if (any([](const auto&, const auto& e) { return e.rolled_back > 0; })) {
      items.push_back({Look::dotted, "rolled-back", "rolled back"});
    }
    if (any([](const auto& s, const auto&) { return !s.defined; })) {
      items.push_back({Look::dotted, "muted", "the contract does not say"});
    }
    return items;
  }

  std::string description() const {
    constexpr std::size_t kMost = 24;
    std::string text = "Resident rows after each step: ";
    for (std::size_t i = shown_.begin; i < shown_.end; ++i) {
      if (i - shown_.begin == kMost) {
        text += ", ...";
        break;
      }
      text += (i > shown_.begin ? ", " : "") + grouped(at(i).resident);
    }
    text += ".";
    if (view_.failing_step()) {
      text +=
          fmt::format(" First divergence: step {}, {}.", view_.failing, view_.failing_step()->what);
    }
    return text;
  }

  void add_scale(Element& svg) const {
    svg.add(label(8, kTop - 14, "rows", Anchor::start, "muted"));
    std::int64_t step = 1;  // 1, 2 or 5 times a power of ten, for at most six lines.
    for (std::int64_t power = 1; most_ / step >= 6; power *= 10) {
      for (const std::int64_t factor : {1, 2, 5}) {
        if (most_ / (step = factor * power) < 6) break;
      }
    }
    Path lines;
    for (std::int64_t rows = 0; rows <= most_; rows += step) {
      lines.move(kLeft, y(rows)).line(end(), y(rows));
      svg.add(label(kLeft - 8, y(rows) + 4, grouped(rows), Anchor::end, "muted", 11));
    }
    svg.add(stroked(lines, "hairline", 1));
  }

  double end() const { return x(shown_.end); }

  void add_columns(Element& svg) const {
    Path solid, seams, staged, evicted, rolled, triangles, hooks, open;
    for (std::size_t i = shown_.begin; i < shown_.end; ++i) {
      const EntryView& e = at(i);
      const double left = x(i) + gap(), width = column_ - 2 * gap(), middle = x(i) + column_ / 2;
      const double top = y(e.resident);
      Path& body = !view_.steps[i].defined ? open : e.staged ? staged : solid;
      if (e.resident > 0) body.rect(left, top, width, y(0) - top);
      if (e.appended > 0 && e.appended < e.resident && column_ >= 12) {
        seams.move(left, y(e.resident - e.appended)).line(left + width, y(e.resident - e.appended));
      }
      if (e.evicted > 0) {
        const double roof = y(e.resident + e.evicted);
        evicted.rect(left + .75, roof, width - 1.5, top - roof);
        const double tip = drop_y(e, e.evicted);
        triangles.move(middle - 5, tip - 7).line(middle + 5, tip - 7).line(middle, tip);
        triangles.line(middle - 5, tip - 7);
      }
      if (e.rolled_back > 0) {
        const double roof = y(e.resident + e.rolled_back);
        rolled.rect(left + .75, roof, width - 1.5, top - roof);
        const double foot = drop_y(e, e.rolled_back);
        hooks.move(middle + 5, foot - 11).line(middle + 5, foot - 3).line(middle - 5, foot - 3);
        hooks.line(middle - 1, foot - 7).move(middle - 5, foot - 3).line(middle - 1, foot + 1);
      }
    }
    if (!solid.empty()) svg.add(filled(solid, "resident"));
    if (!open.empty()) svg.add(stroked(open, "muted", 1.5, "2 2"));
    if (!seams.empty()) svg.add(stroked(seams, "page", 1.5));
    if (!staged.empty()) {
      svg.add(Element("path").set("fill", hatch_).set("d", staged.data()));
      svg.add(stroked(staged, "staged", 1.5));
    }
    if (!evicted.empty()) svg.add(stroked(evicted, "evicted", 1.5));
    if (!triangles.empty()) svg.add(stroked(triangles, "evicted", 1.5));
    if (!rolled.empty()) svg.add(stroked(rolled, "rolled-back", 1.5, "2 2"));
    if (!hooks.empty()) svg.add(stroked(hooks, "rolled-back", 1.5));
    add_numbers(svg);
  }

  void add_numbers(Element& svg) const {
    if (column_ < 24) return;
    for (std::size_t i = shown_.begin; i < shown_.end; ++i) {
      const EntryView& e = at(i);
      const double middle = x(i) + column_ / 2, top = y(e.resident);
      const bool inside = y(0) - top >= 20 && view_.steps[i].defined;
      // A hatch is no calm ground for a number, so it gets one.
      if (inside && e.staged) svg.add(filled(Path().rect(middle - 14, top + 3, 28, 16), "page"));
      const bool crowded = e.evicted > 0 || e.rolled_back > 0;
      if (inside) {
        svg.add(label(middle, top + 15, grouped(e.resident), Anchor::middle,
                      e.staged ? "text" : "on-mark", 12, true));
      } else if (!crowded) {
        svg.add(label(middle, top - 5, grouped(e.resident), Anchor::middle, "text", 12, true));
      }
      if (e.evicted > 0 && column_ >= 34) {
        svg.add(label(middle + 8, drop_y(e, e.evicted), "−" + grouped(e.evicted), Anchor::start,
                      "muted", 11));
      }
      if (e.rolled_back > 0 && column_ >= 34) {
        svg.add(label(middle + 8, drop_y(e, e.rolled_back), "−" + grouped(e.rolled_back),
                      Anchor::start, "muted", 11));
      }
    }
  }

  void add_limits(Element& svg) const {
    const double right = end() + 6;
    double taken = -100;
    const auto add = [&](std::int64_t rows, std::string_view name, std::string_view dashes) {
      const double line = y(rows);
      svg.add(stroked(Path().move(kLeft, line).line(right, line), "text", 1.5, dashes));
      const double words = std::abs(line - taken) < 13 ? taken + 14 : line + 4;
      svg.add(label(right + 4, words, fmt::format("{} {}", name, grouped(rows))));
      taken = words;
    };
    if (view_.capacity > 0) add(view_.capacity, "capacity", "7 4");
    if (view_.window > 0) add(view_.window, "window", "2 3");
  }

  static std::string event_of(const StepView& step, const EntryView& entry) {
    switch (step.event) {
      case StepView::Event::append:
        return "+" + grouped(entry.appended);
      case StepView::Event::past:
        return "past " + grouped(entry.appended);
      case StepView::Event::rollback:
        return "<" + grouped(entry.rolled_back);
    }
    return "";
  }

  void add_axis(Element& svg) const {
    const double base = kTop + kPlot;
    svg.add(stroked(Path().move(kLeft, base).line(end(), base), "muted", 1));
    const std::size_t every = column_ >= 34 ? 1 : column_ >= 20 ? 2 : column_ >= 12 ? 5 : 10;
    if (column_ >= 14) svg.add(label(8, base + 16, "event", Anchor::start, "muted", 11));
    svg.add(label(8, base + 44, "step", Anchor::start, "muted", 11));
    for (std::size_t i = shown_.begin; i < shown_.end; ++i) {
      const double middle = x(i) + column_ / 2;
      const EntryView& e = at(i);
      const StepView& step = view_.steps[i];
      if (column_ >= 34) {
        svg.add(label(middle, base + 16, event_of(step, e), Anchor::middle, "text", 12, true));
        if (step.event == StepView::Event::append && column_ >= 62) {
          svg.add(label(middle, base + 30, counted(e.queries, "query", "queries"), Anchor::middle,
                        "muted", 10));
        }
      } else if (column_ >= 14) {
        const char* glyph = step.event == StepView::Event::rollback ? "<"
                            : e.evicted > 0                         ? "v"
                                                                    : "+";
        svg.add(label(middle, base + 16, glyph, Anchor::middle, "text", 11));
      }
      if (i % every == 0 || view_.is_failing(i)) {
        svg.add(label(middle, base + 44, std::to_string(i), Anchor::middle,
                      view_.is_failing(i) ? "failed-text" : "muted", 11, view_.is_failing(i)));
      }
    }
  }

  void add_failure(Element& svg, double bottom) const {
    const auto failing = static_cast<std::size_t>(view_.failing);
    if (!view_.failing_step() || failing < shown_.begin || failing >= shown_.end) return;
    const double left = x(failing), base = kTop + kPlot + kAxis - 6;
    svg.add(stroked(Path().rect(left, kTop - 8, column_, std::max(bottom, base) - kTop + 8),
                    "failed", 3));
    const bool on_left = left > width_ / 2;
    svg.add(label(on_left ? left + column_ : left, kTop - 16,
                  fmt::format("✗ first divergence: step {}", failing),
                  on_left ? Anchor::end : Anchor::start, "failed-text", 13, true));
  }

  const CaseView& view_;
  std::size_t entry_;
  Shown shown_;
  std::string id_;
  double column_ = 0, width_ = 0;
  std::int64_t most_ = 0;
  Lanes lanes_;
  std::string hatch_;
};

}  // namespace

Element timeline_figure(const CaseView& view, std::size_t entry, Shown shown,
                        std::string_view prefix) {
  const std::string id = fmt::format("{}-timeline-{}", prefix, entry);
  Sawtooth sawtooth(view, entry, shown, id + "-svg");
  return figure(id, sawtooth.draw(), sawtooth.caption());
}

}  // namespace kvcheck::reports
