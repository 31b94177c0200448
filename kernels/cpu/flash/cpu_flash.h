// cpu-flash and its siblings: the tiled CPU targets.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/cpu/planted/faults.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// GroupQueryAttention with the layouts full, block and min_overflow and Attention of opsets 23 to
/// 25; caches in the element type, f32, f16 or bf16, all sums in f32. Online softmax in tiles, on
/// any number of threads, with the same bits for each instruction set.
std::unique_ptr<Target> make_cpu_flash();

/// cpu-flash-q8 (kind "int8") and cpu-flash-q4 ("int4"): GroupQueryAttention whose cache holds
/// codes, and nothing else. nullptr for other kinds.
std::unique_ptr<Target> make_cpu_flash_quantised(std::string_view kind);

/// cpu-flash or a sibling with that fault, as it is called. \param kind "none", "int8" or "int4"
std::unique_ptr<Target> make_cpu_flash(Fault fault, std::string_view kind, std::string name);

/// cpu-flash-dot: cpu-flash for bf16 alone, with products of bf16 pairs by AVX512_BF16 and weights
/// rounded to bf16. Where the processor lacks it, every session is refused.
std::unique_ptr<Target> make_cpu_flash_dot();

/// Why cpu-flash-dot cannot run here, and the remedy, to follow its name; empty when it can.
std::string cpu_flash_dot_problem();

}  // namespace kvcheck::kernels
