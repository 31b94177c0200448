// Sets of positions in words.
#pragma once

#include <string>
#include <vector>

#include "model/position.h"

namespace kvcheck::properties {

/// "[3..7]", "[0..2, 5]", "nothing"; long lists end in "... (n in all)".
std::string positions_text(const std::vector<model::Position>& positions);

/// Positions of `a` that are not in `b`; both ascending.
std::vector<model::Position> difference(const std::vector<model::Position>& a,
                                        const std::vector<model::Position>& b);

}  // namespace kvcheck::properties
