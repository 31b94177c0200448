// Classifies keys per query, and pools grids that are too large to draw cell by cell.
#include "reports/visibility_grid.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::VisibilityEvidence;
using Keys = std::vector<std::int64_t>;

/// Cells that one grid may hold; keys beyond are cut, so that a hostile record cannot size it.
constexpr std::int64_t kMaxGridCells = 1 << 24;

Keys without(const Keys& a, const Keys& b) {
  Keys out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

Keys sorted(Keys keys) {
  std::sort(keys.begin(), keys.end());
  return keys;
}

GridRow make_row(const VisibilityEvidence& evidence) {
  GridRow row;
  row.query_position = evidence.query_position;
  row.measured = evidence.measured;
  row.expected = sorted(evidence.expected);
  row.observed = evidence.observed;
  row.weights = evidence.weights;
  if (row.measured) {
    const Keys observed = sorted(evidence.observed);
    row.missing = without(row.expected, observed);
    row.leaked = without(observed, row.expected);
  }
  return row;
}

std::size_t differences(const std::vector<GridRow>& rows) {
  std::size_t count = 0;
  for (const GridRow& row : rows) count += row.missing.size() + row.leaked.size();
  return count;
}

/// First and last key of any row; the last is before the first where there is none.
std::pair<std::int64_t, std::int64_t> key_range(const std::vector<GridRow>& rows) {
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const GridRow& row : rows) {
    for (const Keys* keys : {&row.expected, &row.observed}) {
      for (const std::int64_t key : *keys) first = std::min(first, key), last = std::max(last, key);
    }
  }
  if (first > last) return {0, -1};
  // A short prefix before the first key costs little and lets columns start at the origin.
  if (first > 0 && first <= 16) first = 0;
  const std::int64_t most = kMaxGridCells / static_cast<std::int64_t>(rows.size());
  return {first, first > INT64_MAX - most ? last : std::min(last, first + most - 1)};
}

std::vector<Cell> classify(const GridRow& row, std::int64_t first, std::int64_t count) {
  std::vector<Cell> cells(static_cast<std::size_t>(count), Cell::hidden);
  const auto mark = [&](const Keys& keys, Cell cell) {
    for (const std::int64_t key : keys) {
      if (key >= first && key - first < count) cells[static_cast<std::size_t>(key - first)] = cell;
    }
  };
  mark(row.expected, row.measured ? Cell::seen : Cell::unmeasured);
  mark(row.missing, Cell::missing);
  mark(row.leaked, Cell::leak);
  return cells;
}

void pool(VisibilityGrid& grid, std::int64_t keys) {
  const auto rows = static_cast<std::int64_t>(grid.rows.size());
  grid.key_pool = (keys + kMaxCells - 1) / kMaxCells;
  grid.query_pool = (rows + kMaxCells - 1) / kMaxCells;
  grid.key_pool = std::max<std::int64_t>(1, grid.key_pool);
  grid.query_pool = std::max<std::int64_t>(1, grid.query_pool);
  grid.columns = (keys + grid.key_pool - 1) / grid.key_pool;
  const auto height = static_cast<std::size_t>((rows + grid.query_pool - 1) / grid.query_pool);
  grid.pooled.assign(height,
                     std::vector<Cell>(static_cast<std::size_t>(grid.columns), Cell::hidden));
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    auto& line = grid.pooled[r / static_cast<std::size_t>(grid.query_pool)];
    for (std::size_t c = 0; c < grid.rows[r].cells.size(); ++c) {
      Cell& cell = line[c / static_cast<std::size_t>(grid.key_pool)];
      cell = std::max(cell, grid.rows[r].cells[c]);
    }
  }
}

std::string weights_of(const GridRow& row, const Keys& keys) {
  std::string out;
  for (const std::int64_t key : keys) {
    const auto found = std::find(row.observed.begin(), row.observed.end(), key);
    const auto at = static_cast<std::size_t>(found - row.observed.begin());
    if (found == row.observed.end() || at >= row.weights.size()) return "";
    out += (out.empty() ? "" : ", ") + brief(row.weights[at]);
  }
  return (keys.size() == 1 ? " (weight " : " (weights ") + out + ")";
}

std::string keys_text(const Keys& keys) {
  if (keys.size() == 1) return fmt::format("key {}", keys.front());
  const std::string set = set_text(keys, 6);
  return "keys " + set.substr(1, set.size() - 2);
}

}  // namespace

VisibilityGrid make_visibility_grid(const properties::StepEvidence& step) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<GridRow>> groups;
  for (const VisibilityEvidence& evidence : step.visibility) {
    groups[{evidence.entry, evidence.head}].push_back(make_row(evidence));
  }
  VisibilityGrid grid;
  grid.groups = static_cast<std::int64_t>(groups.size());
  std::size_t most = 0;
  for (auto& [where, rows] : groups) {
    const std::size_t here = differences(rows);
    if (here > 0) ++grid.groups_differing;
    if (!grid.rows.empty() && here <= most) continue;
    most = here;
    grid.entry = where.first, grid.head = where.second;
    grid.rows = rows;
  }
  if (grid.rows.empty()) return grid;
  std::stable_sort(grid.rows.begin(), grid.rows.end(), [](const GridRow& a, const GridRow& b) {
    return a.query_position < b.query_position;
  });
  const auto [first, last] = key_range(grid.rows);
  grid.first_key = first;
  const std::int64_t keys = last - first + 1;
  for (GridRow& row : grid.rows) {
    row.cells = classify(row, first, keys);
    grid.missing += static_cast<std::int64_t>(row.missing.size());
    grid.leaked += static_cast<std::int64_t>(row.leaked.size());
    if (row.measured) {
      grid.agreed += keys - static_cast<std::int64_t>(row.missing.size() + row.leaked.size());
    } else {
      ++grid.unmeasured;
    }
  }
  pool(grid, keys);
  return grid;
}

std::string difference_sentence(const VisibilityGrid& grid) {
  constexpr int kNamed = 3;
  std::string out;
  std::int64_t differing = 0;
  for (const GridRow& row : grid.rows) {
    if (!row.differs() || ++differing > kNamed) continue;
    if (!out.empty()) out += " ";
    out += fmt::format("The query at position {}", row.query_position);
    if (!row.leaked.empty()) {
      out += fmt::format(" sees {}{}, which it may not see", keys_text(row.leaked),
                         weights_of(row, row.leaked));
    }
    if (!row.leaked.empty() && !row.missing.empty()) out += ", and";
    if (!row.missing.empty()) {
      out += fmt::format(" does not see {}, which it must see", keys_text(row.missing));
    }
    out += ".";
  }
  if (differing > kNamed) {
    const std::int64_t more = differing - kNamed;
    out +=
        fmt::format(" {} more {}.", grouped(more), more == 1 ? "query differs" : "queries differ");
  }
  return out;
}

}  // namespace kvcheck::reports
