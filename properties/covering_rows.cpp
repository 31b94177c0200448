// The greedy cover.
#include "properties/covering_rows.h"

#include <cstddef>
#include <set>
#include <tuple>

namespace kvcheck::properties {
namespace {

/// Choice `a` of factor `i` beside choice `b` of the later factor `j`.
using Pair = std::tuple<std::size_t, int, std::size_t, int>;

std::set<Pair> all_pairs(const std::vector<int>& levels) {
  std::set<Pair> pairs;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    for (std::size_t j = i + 1; j < levels.size(); ++j) {
      for (int a = 0; a < levels[i]; ++a) {
        for (int b = 0; b < levels[j]; ++b) pairs.insert({i, a, j, b});
      }
    }
  }
  return pairs;
}

Pair pair_of(std::size_t i, int a, std::size_t j, int b) {
  return i < j ? Pair{i, a, j, b} : Pair{j, b, i, a};
}

}  // namespace

std::vector<std::vector<int>> covering_rows(const std::vector<int>& levels) {
  std::set<Pair> open = all_pairs(levels);
  std::vector<std::vector<int>> rows;
  if (levels.size() == 1) {
    for (int a = 0; a < levels[0]; ++a) rows.push_back({a});
  }
  while (!open.empty()) {
    constexpr int kOpen = -1;
    std::vector<int> row(levels.size(), kOpen);
    const auto [i, a, j, b] = *open.begin();
    row[i] = a;
    row[j] = b;
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (row[k] != kOpen) continue;
      int best = 0, most = -1;
      for (int choice = 0; choice < levels[k]; ++choice) {
        int gained = 0;
        for (std::size_t l = 0; l < row.size(); ++l) {
          if (row[l] != kOpen)
            gained += static_cast<int>(open.count(pair_of(k, choice, l, row[l])));
        }
        if (gained > most) most = gained, best = choice;
      }
      row[k] = best;
    }
    for (std::size_t k = 0; k < row.size(); ++k) {
      for (std::size_t l = k + 1; l < row.size(); ++l) open.erase({k, row[k], l, row[l]});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace kvcheck::properties
