// Needles: the tokens whose codes a query of the needles fill points at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// A token and the share that its code has in the query.
struct Needle {
  Token token;
  double weight = 0;
};

struct NeedleSet {
  std::array<Needle, 6> needles;
  std::size_t count = 0;
  /// Leaves out what is there already, and positions that cannot exist.
  void add(Token token, double weight);
};

/// Finds the needles of one scenario. With lo and hi the ends of what a query sees before the
/// mask: it must include hi, lo and the middle (weight 1), and it must exclude lo-1, hi+1 and a
/// rolled-back token that once stood at hi+1 (weight 1.25). Positions count by number: one that
/// does not exist yet is taken as the step's own generation will write it, so that the needles
/// are the same however the step is split.
class NeedleFinder {
 public:
  /// Both must outlive the finder.
  NeedleFinder(const Scenario& scenario, const Timeline& timeline);

  /// \pre step is an Append, 0 <= query < queries of the entry
  NeedleSet find(std::size_t step, std::int64_t entry, std::int64_t query) const;

 private:
  void add_rolled_back(NeedleSet& set, std::size_t step, std::int64_t entry, Token live) const;

  const Scenario* scenario_;
  const Timeline* timeline_;
  std::vector<std::size_t> rollbacks_;  // Steps.
};

}  // namespace kvcheck::model
