// Slot lanes: for every row of the cache buffer, which token it holds over the steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/case_view.h"
#include "reports/html_writer.h"

namespace kvcheck::reports {

/// Where lanes are drawn: the columns of the sawtooth above them.
struct LaneFrame {
  double left = 0, top = 0, column = 0;  ///< In user units; `column` is the width of one step.
  Shown shown;                           ///< Steps.
};

/// The rows to draw, at most 64: all of a small buffer, else those that differ.
struct Lanes {
  std::vector<std::int64_t> rows;
  double height_of_one = 0;
  std::string note;  ///< What was left out; empty when nothing was.
  double height() const { return height_of_one * static_cast<double>(rows.size()); }
};
Lanes choose_lanes(const CaseView& view, std::size_t entry);

/// Draws the lanes; a row that differs from the contract gets a cross and what it holds instead.
/// \pre view.timeline
void add_lanes(Element& svg, const CaseView& view, std::size_t entry, const Lanes& lanes,
               const LaneFrame& frame);

}  // namespace kvcheck::reports
