// Small buffers cell by cell, large ones as bars.
#include "properties/commands/timeline_picture.h"

#include <algorithm>

#include <fmt/format.h>

namespace kvcheck::properties {
namespace {

constexpr std::int64_t kCellColumns = 64;  ///< Widest picture that names positions.
constexpr std::int64_t kBarColumns = 40;

}  // namespace

BufferPicture::BufferPicture(const model::CacheSpec& cache, const model::Timeline& timeline)
    : cache_(cache), timeline_(timeline), rows_(timeline.buffer_rows()) {
  std::int64_t longest = 1;
  for (const auto& step : timeline.steps()) longest = std::max(longest, step.entries[0].length);
  width_ = static_cast<int>(fmt::formatted_size("{}", longest - 1));
  named_ = rows_ <= kCellColumns && rows_ * (width_ + 1) <= kCellColumns;
}

char BufferPicture::mark(std::size_t step, std::int64_t row) const {
  const auto position = timeline_.position_in_row(step, 0, {row});
  if (!position) return '.';
  if (position->value < cache_.sink_tokens) return 'S';
  const std::int64_t length = timeline_.steps()[step].entries[0].length;
  return cache_.window_size && position->value < length - *cache_.window_size ? '+' : '#';
}

std::string BufferPicture::line(std::size_t step) const {
  std::string text;
  if (!named_) {
    for (std::int64_t i = 0; i < kBarColumns; ++i) text += mark(step, i * rows_ / kBarColumns);
    return text;
  }
  for (std::int64_t row = 0; row < rows_; ++row) {
    const auto position = timeline_.position_in_row(step, 0, {row});
    text += fmt::format("{:>{}} ", position ? fmt::format("{}", position->value) : ".", width_);
  }
  text.pop_back();
  return text;
}

std::string BufferPicture::legend() const {
  return fmt::format("Rows: # the window, + older,{} . free.",
                     cache_.sink_tokens > 0 ? " S sinks," : "");
}

}  // namespace kvcheck::properties
