// Shape and element type of a step's mask.
#pragma once

#include <cstdint>

#include "kernels/cpu/refusal.h"

namespace kvcheck::kernels {

/// \param longest present length of the batch after the step; \param queries most of any entry
Reason check_mask(const SessionConfig& config, const StepRequest& request, std::int64_t longest,
                  std::int64_t queries);

}  // namespace kvcheck::kernels
