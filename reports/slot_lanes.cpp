// Slot lanes of one batch entry.
#include "reports/slot_lanes.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/figures.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

constexpr std::size_t kMaxLanes = 64;
constexpr std::size_t kMaxLabels = 400;
constexpr std::int64_t kFewLanes = 24;

/// Whether any row is ever given to another token.
bool rows_move(const CaseView& view, std::size_t entry) {
  return std::any_of(view.steps.begin(), view.steps.end(), [&](const StepView& step) {
    return step.entries[entry].evicted > 0 || step.entries[entry].rolled_back > 0;
  });
}

struct Held {
  std::int64_t position = -1, generation = 0;
  friend bool operator==(const Held&, const Held&) = default;
};

Held held_by(const CaseView& view, std::size_t step, std::size_t entry, std::int64_t row) {
  const EntryView& around = view.steps[step].entries[entry];
  if (!view.steps[step].defined || row >= around.resident) return {};
  const std::int64_t position = around.first_position + row;
  return {position, view.timeline->generation(step, static_cast<std::int64_t>(entry), {position})};
}

struct Bar {
  double x = 0, y = 0, width = 0;
  Held held;
};

std::vector<Bar> bars_of(const CaseView& view, std::size_t entry, const Lanes& lanes,
                         const LaneFrame& frame) {
  std::vector<Bar> bars;
  for (std::size_t lane = 0; lane < lanes.rows.size(); ++lane) {
    for (std::size_t step = frame.shown.begin; step < frame.shown.end;) {
      const Held held = held_by(view, step, entry, lanes.rows[lane]);
      std::size_t end = step + 1;
      while (end < frame.shown.end && held_by(view, end, entry, lanes.rows[lane]) == held) ++end;
      if (held.position >= 0) {
        bars.push_back({frame.left + static_cast<double>(step - frame.shown.begin) * frame.column,
                        frame.top + static_cast<double>(lane) * lanes.height_of_one,
                        static_cast<double>(end - step) * frame.column, held});
      }
      step = end;
    }
  }
  return bars;
}

void add_differences(Element& svg, const CaseView& view, std::size_t entry, const Lanes& lanes,
                     const LaneFrame& frame) {
  Path crosses;
  std::vector<Element> words;
  for (std::size_t step = frame.shown.begin; step < frame.shown.end; ++step) {
    if (!view.steps[step].evidence) continue;
    for (const properties::RowEvidence& row : view.steps[step].evidence->rows) {
      if (row.entry != static_cast<std::int64_t>(entry) || row.expected_position == -2) continue;
      const auto lane = std::find(lanes.rows.begin(), lanes.rows.end(), row.row);
      if (lane == lanes.rows.end()) continue;
      const double x = frame.left + static_cast<double>(step - frame.shown.begin) * frame.column;
      const double y =
          frame.top + static_cast<double>(lane - lanes.rows.begin()) * lanes.height_of_one;
      const double size = std::min(lanes.height_of_one, std::max(frame.column, 12.0));
      // At the right end, so that the position that belongs there stays readable.
      const double left = std::min(x + frame.column - size, x + (frame.column - size) / 2 +
                                                                std::max(0.0, frame.column - 12));
      crosses.cross(left, y, size, size, size * .25);
      Element hint("rect");
      hint.set("x", num(x)).set("y", num(y)).set("fill", "none").set("pointer-events", "all");
      hint.set("width", num(frame.column)).set("height", num(lanes.height_of_one));
      words.push_back(hint.add(Element("title").text(
          fmt::format("row {} after step {}: must hold {}, holds {}", row.row, step,
                      token_text(row.expected_position, 0),
                      token_text(row.observed_position, row.observed_generation)))));
    }
  }
  if (crosses.empty()) return;
  // Dark under bright: the cross must stand out from a solid bar.
  svg.add(stroked(crosses, "page", 6)).add(stroked(crosses, "failed", 3));
  for (const Element& word : words) svg.add(word);
}

}  // namespace

Lanes choose_lanes(const CaseView& view, std::size_t entry) {
  Lanes lanes;
  if (!view.timeline) return lanes;
  const bool few = view.buffer_rows <= kFewLanes;
  const bool small = view.buffer_rows <= static_cast<std::int64_t>(kMaxLanes);
  if (few || (small && rows_move(view, entry))) {
    for (std::int64_t row = 0; row < view.buffer_rows; ++row) lanes.rows.push_back(row);
  } else {
    for (const StepView& step : view.steps) {
      if (!step.evidence) continue;
      for (const properties::RowEvidence& row : step.evidence->rows) {
        if (row.entry == static_cast<std::int64_t>(entry)) lanes.rows.push_back(row.row);
      }
    }
    std::sort(lanes.rows.begin(), lanes.rows.end());
    lanes.rows.erase(std::unique(lanes.rows.begin(), lanes.rows.end()), lanes.rows.end());
    if (lanes.rows.size() > kMaxLanes) lanes.rows.resize(kMaxLanes);
    const auto count = static_cast<std::int64_t>(lanes.rows.size());
    std::string drawn = "no row is given to another token, so rows are not drawn";
    if (!small) drawn = "single rows are drawn for buffers of up to 64";
    if (count > 0) drawn = "drawn: " + counted(count, "row that differs", "rows that differ");
    lanes.note = fmt::format("The buffer has {} rows; {}.", grouped(view.buffer_rows), drawn);
  }
  const std::size_t count = lanes.rows.size();
  lanes.height_of_one = count <= 12 ? 21 : count <= 32 ? 15 : 11;
  return lanes;
}

void add_lanes(Element& svg, const CaseView& view, std::size_t entry, const Lanes& lanes,
               const LaneFrame& frame) {
  Path ground, solid;
  const double width = frame.column * static_cast<double>(frame.shown.end - frame.shown.begin);
  for (std::size_t lane = 0; lane < lanes.rows.size(); ++lane) {
    const double y = frame.top + static_cast<double>(lane) * lanes.height_of_one;
    ground.move(frame.left, y + lanes.height_of_one)
        .line(frame.left + width, y + lanes.height_of_one);
    const bool crowded = lanes.height_of_one < 13 && lane % 2 == 1;
    if (!crowded) {
      svg.add(label(frame.left - 8, y + lanes.height_of_one / 2 + 4,
                    fmt::format("row {}", lanes.rows[lane]), Anchor::end, "muted",
                    lanes.height_of_one < 13 ? 9 : 11));
    }
  }
  svg.add(stroked(ground, "hairline", 1));
  const std::vector<Bar> bars = bars_of(view, entry, lanes, frame);
  for (const Bar& bar : bars) {
    solid.rect(bar.x + .5, bar.y + 1, std::max(1.0, bar.width - 1), lanes.height_of_one - 2);
  }
  svg.add(filled(solid, "resident"));
  if (bars.size() <= kMaxLabels) {
    for (const Bar& bar : bars) {
      const std::string word = token_mark(bar.held.position, bar.held.generation);
      if (bar.width < 8 + 6.5 * static_cast<double>(kvcheck::reports::width(word))) continue;
      svg.add(label(bar.x + 6, bar.y + lanes.height_of_one / 2 + 4, word, Anchor::start, "on-mark",
                    lanes.height_of_one < 13 ? 9 : 11));
    }
  }
  add_differences(svg, view, entry, lanes, frame);
}

}  // namespace kvcheck::reports
