// Runs of positions.
#include "properties/position_text.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace kvcheck::properties {

std::string positions_text(const std::vector<model::Position>& positions) {
  if (positions.empty()) return "nothing";
  constexpr int kMostRuns = 8;
  std::string text = "[";
  int runs = 0;
  for (std::size_t i = 0; i < positions.size();) {
    std::size_t end = i + 1;
    while (end < positions.size() && positions[end].value == positions[end - 1].value + 1) ++end;
    if (runs == kMostRuns) return text + fmt::format(", ... ({} in all)]", positions.size());
    text += runs++ ? ", " : "";
    text += end - i == 1 ? fmt::format("{}", positions[i].value)
                         : fmt::format("{}..{}", positions[i].value, positions[end - 1].value);
    i = end;
  }
  return text + "]";
}

std::vector<model::Position> difference(const std::vector<model::Position>& a,
                                        const std::vector<model::Position>& b) {
  std::vector<model::Position> result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

}  // namespace kvcheck::properties
