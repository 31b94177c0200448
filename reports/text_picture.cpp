// The visibility grid as letters.
#include "reports/text_picture.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/text.h"

namespace kvcheck::reports {
namespace {

constexpr std::size_t kMaxLines = 20;

char expected_letter(Cell cell) { return cell == Cell::hidden || cell == Cell::leak ? '.' : '#'; }

char observed_letter(Cell cell) {
  switch (cell) {
    case Cell::hidden:
      return '.';
    case Cell::seen:
      return '#';
    case Cell::unmeasured:
      return '?';
    case Cell::missing:
      return 'o';
    case Cell::leak:
      return 'X';
  }
  return ' ';
}

/// Rows to print: all, or the ones that differ where there are too many.
std::vector<const GridRow*> rows_to_print(const VisibilityGrid& grid) {
  std::vector<const GridRow*> rows;
  for (const GridRow& row : grid.rows) {
    if (grid.rows.size() <= kMaxLines || row.differs()) rows.push_back(&row);
  }
  if (rows.empty()) {
    for (const GridRow& row : grid.rows) rows.push_back(&row);
  }
  if (rows.size() > kMaxLines) rows.resize(kMaxLines);
  return rows;
}

/// First column of a window of `width` that shows the first difference of `rows`.
std::size_t first_column(const std::vector<const GridRow*>& rows, std::size_t total,
                         std::size_t width) {
  if (total <= width) return 0;
  for (const GridRow* row : rows) {
    for (std::size_t c = 0; c < row->cells.size(); ++c) {
      if (row->cells[c] < Cell::missing) continue;
      return std::min(c - std::min(c, width / 2), total - width);
    }
  }
  return 0;
}

}  // namespace

std::vector<std::string> text_picture(const VisibilityGrid& grid, std::size_t columns) {
  std::vector<std::string> lines;
  if (grid.rows.empty() || grid.rows.front().cells.empty()) return lines;
  const std::vector<const GridRow*> rows = rows_to_print(grid);
  const std::size_t total = grid.rows.front().cells.size();
  std::size_t label = 8;  // "query at"
  for (const GridRow* row : rows) {
    label = std::max(label, std::to_string(row->query_position).size());
  }
  const std::size_t room = (columns - label - 6) / 2;
  const std::size_t width = std::min(total, room);
  const std::size_t begin = first_column(rows, total, width);
  const std::int64_t first = grid.first_key + static_cast<std::int64_t>(begin);
  lines.push_back(fmt::format("Keys {} to {}, batch entry {}, head {}:", first,
                              first + static_cast<std::int64_t>(width) - 1, grid.entry, grid.head));
  const std::size_t column = std::max<std::size_t>(width, 8);
  lines.push_back(
      fmt::format("{:>{}}   {:<{}}   {}", "query at", label, "expected", column, "observed"));
  for (const GridRow* row : rows) {
    std::string expected, observed;
    for (std::size_t c = begin; c < begin + width; ++c) {
      expected += expected_letter(row->cells[c]);
      observed += observed_letter(row->cells[c]);
    }
    lines.push_back(fmt::format("{:>{}}   {:<{}}   {}", row->query_position, label, expected,
                                column, observed));
  }
  if (width < total || rows.size() < grid.rows.size()) {
    lines.push_back(
        fmt::format("Cut to {} of {} queries and {} of {} keys around the first "
                    "difference.",
                    rows.size(), grid.rows.size(), width, total));
  }
  lines.emplace_back("# seen   . not seen   X leak   o missing   ? not read back");
  return lines;
}

}  // namespace kvcheck::reports
