// The box around some configurations, and its words.
#include "properties/sweep/cells.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvcheck::properties {
namespace {

/// For each axis, for each of its values, whether it is allowed.
using Box = std::vector<std::vector<bool>>;

Box box_around(const Grid& grid, const Places& members) {
  Box box;
  for (const GridAxis& axis : grid.axes) box.emplace_back(axis.values.size(), false);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto at = members[i];
    for (std::size_t a = 0; a < box.size(); ++a) box[a][static_cast<std::size_t>(at[a])] = true;
  }
  return box;
}

bool restricts(const std::vector<bool>& allowed) {
  return std::find(allowed.begin(), allowed.end(), false) != allowed.end();
}

/// Number of axes of the box that keep the place out, up to 2, and the last such axis.
std::pair<int, std::size_t> kept_out(const Box& box, std::span<const std::int16_t> at) {
  int count = 0;
  std::size_t last = 0;
  for (std::size_t a = 0; a < box.size() && count < 2; ++a) {
    if (box[a][static_cast<std::size_t>(at[a])]) continue;
    ++count;
    last = a;
  }
  return {count, last};
}

/// Whether axis `a` is all that keeps one of the places out.
bool keeps_out(const Box& box, std::size_t a, const Places& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [count, axis] = kept_out(box, places[i]);
    if (count == 1 && axis == a) return true;
  }
  return false;
}

std::int64_t inside(const Box& box, const Places& places) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < places.size(); ++i) count += kept_out(box, places[i]).first == 0;
  return count;
}

std::string words_of(const GridAxis& axis, const Restriction& restriction) {
  const auto& at = restriction.values;
  const auto value = [&](std::int16_t i) { return axis.values[static_cast<std::size_t>(i)]; };
  if (at.size() == 1) return fmt::format("{} = {}", axis.name, value(at.front()));
  const auto last = static_cast<std::int16_t>(axis.values.size() - 1);
  const bool run = at.back() - at.front() + 1 == static_cast<std::int16_t>(at.size());
  if (axis.ordered && run && at.back() == last) {
    return fmt::format("{} > {}", axis.name, value(static_cast<std::int16_t>(at.front() - 1)));
  }
  if (axis.ordered && run && at.front() == 0) {
    return fmt::format("{} < {}", axis.name, value(static_cast<std::int16_t>(at.back() + 1)));
  }
  if (axis.ordered && run) {
    return fmt::format("{} from {} to {}", axis.name, value(at.front()), value(at.back()));
  }
  std::vector<std::string> named, left_out;
  for (std::int16_t i = 0; i <= last; ++i) {
    (std::ranges::count(at, i) > 0 ? named : left_out).push_back(value(i));
  }
  if (left_out.size() < named.size()) {
    return fmt::format("{} other than {}", axis.name, fmt::join(left_out, " or "));
  }
  return fmt::format("{} = {}", axis.name, fmt::join(named, " or "));
}

}  // namespace

Cell cell_of(const Grid& grid, const Places& members, const Places& agreeing,
             const Places& others) {
  Box box = box_around(grid, members);
  // Restrictions that keep nothing out go, the last axis first.
  for (std::size_t a = box.size(); a-- > 0;) {
    if (!restricts(box[a]) || keeps_out(box, a, agreeing) || keeps_out(box, a, others)) continue;
    box[a].assign(box[a].size(), true);
  }
  Cell cell;
  cell.members = static_cast<std::int64_t>(members.size());
  cell.agreeing = inside(box, agreeing);
  cell.others = inside(box, others);
  for (std::size_t a = 0; a < box.size(); ++a) {
    if (!restricts(box[a])) continue;
    Restriction restriction{a, {}};
    for (std::size_t v = 0; v < box[a].size(); ++v) {
      if (box[a][v]) restriction.values.push_back(static_cast<std::int16_t>(v));
    }
    cell.where.push_back(std::move(restriction));
  }
  return cell;
}

std::string cell_words(const Grid& grid, const Cell& cell) {
  std::string words;
  for (std::size_t i = 0; i < cell.where.size(); ++i) {
    if (i > 0) words += i + 1 == cell.where.size() ? " and " : ", ";
    words += words_of(grid.axes[cell.where[i].axis], cell.where[i]);
  }
  return words;
}

std::vector<std::string> restriction_values(const Grid& grid, const Restriction& restriction) {
  std::vector<std::string> values;
  for (const std::int16_t value : restriction.values) {
    values.push_back(grid.axes[restriction.axis].values[static_cast<std::size_t>(value)]);
  }
  return values;
}

}  // namespace kvcheck::properties
