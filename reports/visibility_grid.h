// Expected against observed visibility as a grid of cells: one row per query, one column per key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/run_record.h"

namespace kvcheck::reports {

/// What one cell says, from the least to the most alarming.
enum class Cell : char { hidden, seen, unmeasured, missing, leak };

/// One row of the grid and the numbers behind it.
struct GridRow {
  std::int64_t query_position = 0;
  bool measured = false;
  std::vector<Cell> cells;
  std::vector<std::int64_t> expected, observed, missing, leaked;
  std::vector<double> weights;  ///< Of observed.
  bool differs() const { return !missing.empty() || !leaked.empty(); }
};

/// The grid of one batch entry and head.
struct VisibilityGrid {
  std::int64_t entry = 0, head = 0;
  std::int64_t first_key = 0;                 ///< Position of column 0.
  std::int64_t columns = 0;                   ///< After pooling.
  std::int64_t key_pool = 1, query_pool = 1;  ///< Keys and queries per cell.
  std::vector<GridRow> rows;  ///< In order of position; pooled rows keep their numbers apart.
  std::vector<std::vector<Cell>> pooled;             ///< [row][column]: what is drawn.
  std::int64_t missing = 0, leaked = 0, agreed = 0;  ///< Cells before pooling.
  std::int64_t unmeasured = 0;                       ///< Queries.
  std::int64_t groups = 1, groups_differing = 0;     ///< Entries and heads recorded.
  bool differs() const { return missing + leaked > 0; }
};

/// Largest number of cells along one side before cells are pooled.
inline constexpr std::int64_t kMaxCells = 256;

/// The grid of the entry and head with the most differences; no rows when nothing was recorded.
VisibilityGrid make_visibility_grid(const properties::StepEvidence& step);

/// "The query at position 1 sees key 2 (weight 0.333), which it may not see." Names at most a few
/// queries and says how many more there are; "" when nothing differs.
std::string difference_sentence(const VisibilityGrid& grid);

}  // namespace kvcheck::reports
