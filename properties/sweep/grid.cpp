// The list of grids.
#include "properties/sweep/grid.h"

#include <algorithm>
#include <utility>

namespace kvcheck::properties {

const std::vector<Grid>& grids() {
  static const std::vector<Grid> all = {causal_past_grid(), windowed_small_grid(), tiles_grid()};
  return all;
}

const Grid* find_grid(std::string_view name) {
  const auto& all = grids();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const Grid& g) { return g.name == name; });
  return it == all.end() ? nullptr : &*it;
}

GridAxis number_axis(std::string name, const std::vector<std::int64_t>& values) {
  GridAxis axis{std::move(name), {}, true};
  for (const std::int64_t value : values) axis.values.push_back(std::to_string(value));
  return axis;
}

std::string with_commas(std::int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool after_digit = i > 0 && digits[i - 1] != '-';
    if (after_digit && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace kvcheck::properties
