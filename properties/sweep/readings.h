// Which wrong readings of the contract explain the configurations that diverge.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/wrong_models.h"
#include "properties/sweep/grid.h"
#include "properties/sweep/workers.h"

namespace kvcheck::properties {

/// What explains one diverging configuration; null = nothing does.
struct ReadingFound {
  const model::WrongModel* model = nullptr;
  double ratio = 0;  ///< Largest bound ratio under the reading.
};

/// How a reading does on configurations that agree: where it would have given another answer, the
/// target does not read so everywhere.
struct ReadingElsewhere {
  const model::WrongModel* model = nullptr;
  std::int64_t asked = 0;    ///< A sample of the agreeing configurations.
  std::int64_t differs = 0;  ///< Of these the reading would have answered otherwise.
};

struct Explanations {
  std::vector<ReadingFound> found;  ///< As `diverging`.
  std::vector<ReadingElsewhere> elsewhere;
};

/// Runs the diverging configurations once more. Where several readings explain one, the reading
/// that explains most of them is taken, and of equals the one that contradicts fewest of the
/// agreeing configurations. The same result for any number of workers.
/// \pre diverging and agreeing are indices of `grid` that the target claims
Explanations explain_configurations(Workers& workers, const Grid& grid,
                                    const std::vector<std::int64_t>& diverging,
                                    const std::vector<std::int64_t>& agreeing,
                                    bool of_against = false,
                                    const std::function<void(std::int64_t done)>& watch = nullptr);

/// What comes nearest on one configuration, as a sentence without a full stop; empty where no
/// output fails or the target gives none.
std::string nearest_reading(Workers& workers, const Grid& grid, std::int64_t index,
                            bool of_against);

}  // namespace kvcheck::properties
