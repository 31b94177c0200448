// The arithmetic of the kernels of kernels/cuda, as the bounds are derived from it.
#pragma once

#include "kernels/target.h"

namespace kvcheck::kernels::device {

/// Declares what holds of every kernel that may compute a session: f32 runs on CUDA cores alone,
/// f16 and bf16 on either kind, int8 caches on CUDA cores alone.
void declare_arithmetic(Capabilities& can, bool quantised);

}  // namespace kvcheck::kernels::device
