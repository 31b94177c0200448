// A mistake made in single rows of a single head.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// Every fifth position is mistaken, from this one on.
inline constexpr std::int64_t kMistakenPosition = 3, kMistakenPeriod = 5;

/// Answers as `healthy` does, but for queries at positions 3, 8, 13, ... (and -2, -7, ... where a
/// query stands before the first key) of the middle query head, whose outputs and intermediates are
/// those of `mistaken`, and for rows 3, 8, 13, ... of the middle KV head, which `mistaken` gives
/// out. Of an even number of heads the middle one is the first of the second half: at the last head
/// a quotient and a remainder are the same. Where `mistaken` declines what `healthy` takes, the
/// rest of the session is healthy.
std::unique_ptr<Target> make_one_row(std::unique_ptr<Target> healthy,
                                     std::unique_ptr<Target> mistaken);

}  // namespace kvcheck::kernels
