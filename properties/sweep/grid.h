// Grids: exhaustive lists of configurations, each a scenario and its place on named axes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::properties {

struct GridAxis {
  std::string name;                 ///< "past", as it stands in a sentence.
  std::vector<std::string> values;  ///< In words.
  bool ordered = false;             ///< The values are numbers, in ascending order.
};

struct Configuration {
  model::Scenario scenario;
  std::vector<std::int16_t> at;  ///< For each axis of the grid the index of its value.
};

/// The same list on every machine and for every target. The axes need not be independent: a place
/// may be derived from others, and not every combination need occur.
struct Grid {
  std::string name;
  std::string statement;   ///< One sentence: what is gone through.
  std::string arithmetic;  ///< How the count comes about: "8 x 72 x 8 x 11".
  std::vector<GridAxis> axes;
  std::int64_t count = 0;
  /// Judged by mask.visible_set too, which runs each configuration two or three times more.
  bool visible_sets = false;
  /// \pre 0 <= index < count. May be called from several threads at once.
  std::function<Configuration(std::int64_t index)> at;
};

/// All of them, in the order in which they are listed.
const std::vector<Grid>& grids();

/// Null when there is none of that name.
const Grid* find_grid(std::string_view name);

// One file each.
Grid causal_past_grid();
Grid windowed_small_grid();
Grid tiles_grid();

/// An axis of the numbers `values`, which ascend.
GridAxis number_axis(std::string name, const std::vector<std::int64_t>& values);

/// 12345678 as "12,345,678".
std::string with_commas(std::int64_t count);

}  // namespace kvcheck::properties
