// Covering rows: few combinations of choices that hold every pair of choices.
#pragma once

#include <vector>

namespace kvcheck::properties {

/// Rows of one choice for each factor, numbered from 0, such that every pair of choices of every
/// two factors stands in some row. `levels` says how many choices each factor has, at least 1.
/// The same rows every time; greedy, so a few more than the fewest possible.
std::vector<std::vector<int>> covering_rows(const std::vector<int>& levels);

}  // namespace kvcheck::properties
