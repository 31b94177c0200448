// A healthy target that handles refusals badly.
#pragma once

#include <memory>

#include "kernels/target.h"

namespace kvcheck::properties {

enum class BadRefusal {
  none,
  drops_a_token,     ///< Drops the newest token when it refuses a step or a load.
  accepts_rollback,  ///< Says yes to any rollback, and drops nothing where it cannot.
  accepts_load,      ///< Says yes to any load, and loads nothing where it cannot.
  loses_cache        ///< Forgets everything when it refuses a rollback.
};

/// cpu-naive with that habit.
std::unique_ptr<kernels::Target> make_refusing_target(BadRefusal habit);

}  // namespace kvcheck::properties
