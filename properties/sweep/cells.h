// Cells: what a set of configurations has in common that no other has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "properties/sweep/grid.h"

namespace kvcheck::properties {

/// Places of configurations on the axes of a grid, one row of `width` values each.
class Places {
 public:
  explicit Places(std::size_t width) : width_(width) {}
  void add(std::span<const std::int16_t> at) {
    values_.insert(values_.end(), at.begin(), at.end());
  }
  std::size_t size() const { return width_ == 0 ? 0 : values_.size() / width_; }
  std::span<const std::int16_t> operator[](std::size_t i) const {
    return std::span(values_).subspan(i * width_, width_);
  }

 private:
  std::size_t width_;
  std::vector<std::int16_t> values_;
};

/// Values of one axis.
struct Restriction {
  std::size_t axis = 0;
  std::vector<std::int16_t> values;  ///< Ascending, fewer than the axis has.
  friend bool operator==(const Restriction&, const Restriction&) = default;
};

/// The smallest box around the members, less the restrictions that keep nothing out.
struct Cell {
  std::vector<Restriction> where;  ///< In the order of the axes; empty = everywhere.
  std::int64_t members = 0;
  std::int64_t agreeing = 0;  ///< Agreeing configurations in the box.
  std::int64_t others = 0;    ///< Configurations in the box that diverge for another cause.
  bool exact() const { return agreeing == 0 && others == 0; }
};

/// \param agreeing, others the configurations that were asked and are no members
Cell cell_of(const Grid& grid, const Places& members, const Places& agreeing, const Places& others);

/// "past > 0, queries = 1 and new keys > 1"; empty where nothing is restricted.
std::string cell_words(const Grid& grid, const Cell& cell);

/// The values of a restriction in the words of its axis.
std::vector<std::string> restriction_values(const Grid& grid, const Restriction& restriction);

}  // namespace kvcheck::properties
