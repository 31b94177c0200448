// A picture of the cache buffer: which position stands in which row.
#pragma once

#include <cstdint>
#include <string>

#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

/// Draws the buffer of the one batch entry of a timeline, one line for each step.
class BufferPicture {
 public:
  BufferPicture(const model::CacheSpec& cache, const model::Timeline& timeline);

  /// Whether rows show their positions; larger buffers are bars, which the legend explains.
  bool names_positions() const { return named_; }

  /// The buffer after step `step`, row 0 first.
  /// \pre the step is defined
  std::string line(std::size_t step) const;

  /// "Rows: # the window, + older, . free."
  std::string legend() const;

 private:
  char mark(std::size_t step, std::int64_t row) const;

  const model::CacheSpec& cache_;
  const model::Timeline& timeline_;
  std::int64_t rows_;
  int width_ = 1;  ///< Columns of a position.
  bool named_ = false;
};

}  // namespace kvcheck::properties
