// cpu-flash and its quantised siblings: the tiled CPU targets.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// GroupQueryAttention with the layouts full, block and min_overflow and Attention of opsets 23 to
/// 25; caches in the element type, f32, f16 or bf16, all sums in f32. Online softmax in tiles, on
/// any number of threads, with the same bits for each instruction set.
std::unique_ptr<Target> make_cpu_flash();

/// cpu-flash-q8 (kind "int8") and cpu-flash-q4 ("int4"): GroupQueryAttention whose cache holds
/// codes, and nothing else. nullptr for other kinds.
std::unique_ptr<Target> make_cpu_flash_quantised(std::string_view kind);

}  // namespace kvcheck::kernels
