// The intermediate that a session asks for, from the products of the tile kernels.
#pragma once

#include <optional>
#include <span>

#include "kernels/cpu/flash/flash_attention.h"
#include "kernels/target.h"

namespace kvcheck::kernels::flash {

/// Fills what SessionConfig::qk_output asks for. \param step as it ran, with maxima and totals
Tensor intermediate_of(const SessionConfig& config, const Kernels& kernels,
                       FlashAttention& attention, const FlashStep& step,
                       std::span<const EntryPlan> plans);

}  // namespace kvcheck::kernels::flash
