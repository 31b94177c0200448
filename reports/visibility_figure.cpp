// Expected against observed visibility, drawn as a grid with its numbers.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reports/figures.h"
#include "reports/legend.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

constexpr double kLeft = 84, kTop = 58, kRight = 12;

class GridDrawing {
 public:
  GridDrawing(const VisibilityGrid& grid, const CaseView& view, std::string_view prefix,
              double width)
      : grid_(grid), prefix_(prefix), width_(width) {
    const auto columns = static_cast<double>(std::max<std::int64_t>(1, grid.columns));
    const auto lines = static_cast<double>(grid.pooled.size());
    const double most = columns * lines <= 60 ? 46 : 34;
    side_ = std::clamp(std::min((width - kLeft - kRight) / columns, 520 / lines), 2.0, most);
    // A long row of few queries stays tall enough to be seen.
    tall_ = std::max(side_, std::min(22.0, 260 / lines));
    grid_width_ = side_ * columns;
    grid_height_ = tall_ * lines;
    const StepView* step = view.failing_step();
    const auto entry = static_cast<std::size_t>(std::max<std::int64_t>(0, grid.entry));
    if (step && entry < step->entries.size()) entry_ = &step->entries[entry];
  }

  Element draw() {
    const auto items = legend();
    // Wide enough for the axis title and the legend beside a small grid.
    const double width = std::max(kLeft + grid_width_ + kRight, std::min(width_ - 120, 400.0));
    const double below = kTop + grid_height_ + 16;
    const double height = below + legend_height(items, width - 8);
    Element svg = svg_frame(std::string(prefix_) + "-grid", width, height, title(), description());
    hatch_ = add_hatch(svg, std::string(prefix_) + "-grid-hatch", "evicted");
    add_axes(svg);
    add_resident_range(svg);
    add_cells(svg);
    add_hover(svg);
    add_legend(svg, items, 8, below, width - 8, hatch_);
    return svg;
  }

 private:
  std::string title() const {
    return fmt::format("Expected against observed visibility, batch entry {}, head {}", grid_.entry,
                       grid_.head);
  }

  std::string description() const {
    const std::string difference = difference_sentence(grid_);
    return difference.empty() ? "Every measured query sees what it must see." : difference;
  }

  std::vector<LegendItem> legend() const {
    std::vector<LegendItem> items;
    const auto has = [&](Cell cell) {
      return std::any_of(grid_.pooled.begin(), grid_.pooled.end(), [&](const auto& line) {
        return std::find(line.begin(), line.end(), cell) != line.end();
      });
    };
    if (has(Cell::leak)) items.push_back({Look::cross, "failed", "leak: seen, must not be"});
    if (has(Cell::missing)) items.push_back({Look::ring, "failed", "missing: must be seen"});
    if (has(Cell::seen)) items.push_back({Look::solid, "resident", "seen, as it must be"});
    if (has(Cell::unmeasured)) items.push_back({Look::hatched, "evicted", "not read back"});
    items.push_back({Look::own, "muted", "the query's own position"});
    return items;
  }

  double column_x(std::int64_t key) const {
    return kLeft +
           static_cast<double>(key - grid_.first_key) / static_cast<double>(grid_.key_pool) * side_;
  }

  void add_axes(Element& svg) const {
    svg.add(label(kLeft, 14, "key position", Anchor::start, "muted"));
    svg.add(label(8, kTop - 8, "query at", Anchor::start, "muted"));
    const std::int64_t last_key = grid_.first_key + grid_.columns * grid_.key_pool;
    const double letters = 12 + 7 * static_cast<double>(std::to_string(last_key).size());
    const std::int64_t column_step = static_cast<std::int64_t>(std::ceil(letters / side_));
    for (std::int64_t c = 0; c < grid_.columns; c += column_step) {
      svg.add(label(kLeft + (static_cast<double>(c) + .5) * side_, 32,
                    std::to_string(grid_.first_key + c * grid_.key_pool), Anchor::middle));
    }
    const std::int64_t row_step = static_cast<std::int64_t>(std::ceil(13 / tall_));
    for (std::int64_t r = 0; r < static_cast<std::int64_t>(grid_.pooled.size()); r += row_step) {
      const auto at = static_cast<std::size_t>(r * grid_.query_pool);
      svg.add(label(kLeft - 12, kTop + (static_cast<double>(r) + .5) * tall_ + 4,
                    std::to_string(grid_.rows[at].query_position), Anchor::end));
    }
    Path lines;
    if (side_ >= 6) {
      for (std::size_t r = 0; r <= grid_.pooled.size(); ++r) {
        const double y = kTop + static_cast<double>(r) * tall_;
        lines.move(kLeft, y).line(kLeft + grid_width_, y);
      }
      for (std::int64_t c = 0; c <= grid_.columns; ++c) {
        const double x = kLeft + static_cast<double>(c) * side_;
        lines.move(x, kTop).line(x, kTop + grid_height_);
      }
    } else {
      lines.rect(kLeft, kTop, grid_width_, grid_height_);
    }
    svg.add(stroked(lines, "hairline", 1));
  }

  /// A bar over the columns: what the cache holds after the step, and what it has dropped.
  void add_resident_range(Element& svg) const {
    if (!entry_ || grid_.columns == 0) return;
    const double end = kLeft + grid_width_;
    const double first = std::clamp(column_x(entry_->first_position), kLeft, end);
    const double last = std::clamp(column_x(entry_->length), kLeft, end);
    if (last > first) svg.add(filled(Path().rect(first, 40, last - first, 6), "resident"));
    if (first > kLeft) svg.add(stroked(Path().rect(kLeft, 40.5, first - kLeft, 5), "evicted", 1));
    std::string words =
        fmt::format("in the cache: {} to {}", entry_->first_position, entry_->length - 1);
    if (entry_->first_position > 0) words += fmt::format(" ({} evicted)", entry_->first_position);
    if (entry_->length > 0) {
      svg.add(label(kLeft + 96, 14, words, Anchor::start, "resident"));
    }
  }

  void add_cells(Element& svg) const {
    Path seen, unmeasured, missing, leak, own;
    const double inset = side_ >= 12 ? 2 : 0;
    // Where few cells differ, a mark may stand out of its small cell.
    const bool sparse = grid_.missing + grid_.leaked <= 40;
    const double mark = std::max(std::min(side_, tall_) * .6, sparse ? 11.0 : 2.0);
    for (std::size_t r = 0; r < grid_.pooled.size(); ++r) {
      const auto& line = grid_.pooled[r];
      const double y = kTop + static_cast<double>(r) * tall_;
      for (std::size_t c = 0; c < line.size();) {
        std::size_t last = c;
        // Runs keep a large grid small; large cells are drawn one by one.
        while (inset == 0 && last + 1 < line.size() && line[last + 1] == line[c]) ++last;
        const double x = kLeft + static_cast<double>(c) * side_;
        const double run = side_ * static_cast<double>(last - c + 1);
        const Cell cell = line[c];
        if (cell == Cell::seen) {
          seen.rect(x + inset, y + inset, run - 2 * inset, tall_ - 2 * inset);
        } else if (cell == Cell::unmeasured) {
          unmeasured.rect(x + inset, y + inset, run - 2 * inset, tall_ - 2 * inset);
        }
        for (std::size_t k = c; k <= last; ++k) {
          const double middle_x = kLeft + (static_cast<double>(k) + .5) * side_;
          const double middle_y = y + tall_ / 2, half = mark / 2;
          if (cell == Cell::leak) leak.cross(middle_x - half, middle_y - half, mark, mark, 0);
          if (cell == Cell::missing) missing.ring(middle_x, middle_y, half);
        }
        c = last + 1;
      }
      const std::int64_t position =
          grid_.rows[r * static_cast<std::size_t>(grid_.query_pool)].query_position;
      if (position >= grid_.first_key &&
          position < grid_.first_key + grid_.columns * grid_.key_pool) {
        own.rect(column_x(position + 1) - 1.5, y, 3, tall_);
      }
    }
    const double weight = std::max(1.2, mark * .22);
    if (!seen.empty()) svg.add(filled(seen, "resident"));
    if (!unmeasured.empty()) {
      svg.add(Element("path").set("fill", hatch_).set("d", unmeasured.data()));
    }
    if (!own.empty()) svg.add(filled(own, "muted"));
    // A ground in the colour of the page keeps marks apart from solid cells beside them.
    if (!missing.empty()) svg.add(stroked(missing, "failed", weight * .7));
    if (!leak.empty() && side_ < 12) svg.add(stroked(leak, "page", weight + 3));
    if (!leak.empty()) svg.add(stroked(leak, "failed", weight));
  }

  /// Words on hover for grids small enough to point at.
  void add_hover(Element& svg) const {
    constexpr std::size_t kMost = 200;
    const std::size_t cells = grid_.pooled.size() * static_cast<std::size_t>(grid_.columns);
    if (cells > kMost || grid_.key_pool > 1 || grid_.query_pool > 1) return;
    for (std::size_t r = 0; r < grid_.rows.size(); ++r) {
      for (std::size_t c = 0; c < grid_.rows[r].cells.size(); ++c) {
        Element box("rect");
        box.set("x", num(kLeft + static_cast<double>(c) * side_));
        box.set("y", num(kTop + static_cast<double>(r) * tall_));
        box.set("width", num(side_)).set("height", num(tall_)).set("fill", "none");
        box.set("pointer-events", "all");
        svg.add(box.add(Element("title").text(words_of(grid_.rows[r], c))));
      }
    }
  }

  std::string words_of(const GridRow& row, std::size_t column) const {
    const char* what = "";
    switch (row.cells[column]) {
      case Cell::hidden:
        what = "not seen, as it must be";
        break;
      case Cell::seen:
        what = "seen, as it must be";
        break;
      case Cell::unmeasured:
        what = "not read back";
        break;
      case Cell::missing:
        what = "missing: must be seen";
        break;
      case Cell::leak:
        what = "leak: must not be seen";
        break;
    }
    return fmt::format("query at {}, key {}: {}", row.query_position,
                       grid_.first_key + static_cast<std::int64_t>(column), what);
  }

  const VisibilityGrid& grid_;
  std::string_view prefix_;
  double width_;
  double side_ = 0, tall_ = 0;  // Width and height of a cell.
  double grid_width_ = 0, grid_height_ = 0;
  const EntryView* entry_ = nullptr;
  std::string hatch_;
};

std::string weights_text(const std::vector<double>& weights) {
  constexpr std::size_t kMost = 8;
  std::string out;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (i == kMost) return out + fmt::format(", ... {} in all", weights.size());
    out += (i > 0 ? ", " : "") + brief(weights[i]);
  }
  return out;
}

Element numbers_table(const VisibilityGrid& grid) {
  constexpr std::size_t kMostRows = 64;
  const auto differing = static_cast<std::size_t>(std::count_if(
      grid.rows.begin(), grid.rows.end(), [](const GridRow& row) { return row.differs(); }));
  const bool only_differing = grid.rows.size() > kMostRows && differing > 0;
  const std::size_t total = only_differing ? differing : grid.rows.size();
  std::string caption = "Keys that each query must see and does see";
  if (only_differing) {
    caption +=
        fmt::format(", the {} of {} queries that differ", grouped(static_cast<std::int64_t>(total)),
                    grouped(static_cast<std::int64_t>(grid.rows.size())));
  }
  if (total > kMostRows) caption += fmt::format(", first {}", kMostRows);
  Element table = table_head(
      caption, {"query at", "must see", "sees", "missing", "leaked", "weights"}, "n     ");
  Element body("tbody");
  std::size_t shown = 0;
  for (const GridRow& row : grid.rows) {
    if ((only_differing && !row.differs()) || shown == kMostRows) continue;
    ++shown;
    Element line("tr");
    if (row.differs()) line.cls("bad");
    line.add(row_head(std::to_string(row.query_position)).cls("n"));
    line.add(cell(set_text(row.expected)));
    line.add(cell(row.measured ? set_text(row.observed) : "not read back"));
    line.add(cell(row.missing.empty() ? "" : set_text(row.missing)));
    line.add(cell(row.leaked.empty() ? "" : set_text(row.leaked)));
    line.add(cell(weights_text(row.weights)));
    body.add(line);
  }
  return boxed(table.add(body), caption);
}

}  // namespace

Element visibility_svg(const VisibilityGrid& grid, const CaseView& view, std::string_view prefix,
                       double width) {
  return GridDrawing(grid, view, prefix, width).draw();
}

Element visibility_figure(const VisibilityGrid& grid, const CaseView& view,
                          std::string_view prefix) {
  std::string caption =
      fmt::format("Batch entry {}, head {}. Cells: {} leaked, {} missing, {} agree.", grid.entry,
                  grid.head, grouped(grid.leaked), grouped(grid.missing), grouped(grid.agreed));
  if (grid.unmeasured > 0) {
    caption +=
        fmt::format(" {} could not be read back.", counted(grid.unmeasured, "query", "queries"));
  }
  if (grid.groups > 1) {
    caption += fmt::format(
        " {} of {} pairs of entry and head differ; shown is the one with the most differences.",
        grouped(grid.groups_differing), grouped(grid.groups));
  }
  if (grid.key_pool > 1 || grid.query_pool > 1) {
    caption +=
        fmt::format(" One cell stands for {} by {} and shows the worst of them.",
                    counted(grid.query_pool, "query", "queries"), counted(grid.key_pool, "key"));
  }
  caption += " What a query sees was read back from the target's own answers.";
  const std::string id = std::string(prefix) + "-visibility";
  Element result("div");
  const std::string sentence = difference_sentence(grid);
  if (!sentence.empty()) result.add(Element("p").cls("lead").text(sentence));
  result.add(figure(id, visibility_svg(grid, view, id, 760), caption));
  Element numbers = details("The same numbers as a table", grid.rows.size() <= 8);
  return result.add(numbers.add(numbers_table(grid)));
}

}  // namespace kvcheck::reports
