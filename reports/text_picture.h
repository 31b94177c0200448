// The visibility grid as letters, expected beside observed.
#pragma once

#include <string>
#include <vector>

#include "reports/visibility_grid.h"

namespace kvcheck::reports {

/// Lines of at most `columns` letters, or none when the grid has no rows. A grid that is too wide
/// or too long is cut around its first difference, and the lines say so.
std::vector<std::string> text_picture(const VisibilityGrid& grid, std::size_t columns);

}  // namespace kvcheck::reports
