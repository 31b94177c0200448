// The tile kernels of each instruction set, by name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/cpu/flash/chunk_task.h"

namespace kvcheck::kernels::flash {

/// In what the cache stores its rows.
enum class Storage { f32, f16, bf16, int8, int4 };
inline constexpr int kStorages = 5;

/// One instruction set. All give the same bits.
struct Kernels {
  const char* isa;  ///< "avx512", "avx2", "scalar".
  /// By Storage.
  void (*chunk_pass[kStorages])(const ChunkTask&, const TileScratch&);
  /// One query as f32, lane by lane times `scales` (or null) and `scale`; zero up to `padded`. By
  /// Storage, of f32, f16 and bf16.
  void (*load_query[3])(const std::byte* row, const float* scales, float scale, std::int64_t lanes,
                        std::int64_t padded, float* to);
  /// `lanes` finished outputs as f16 or as bf16, to nearest even.
  void (*store_f16)(const float* from, std::int64_t lanes, std::byte* to);
  void (*store_bf16)(const float* from, std::int64_t lanes, std::byte* to);
  void (*merge_rows)(const Partial& into, const Partial& chunk, std::int64_t rows,
                     std::int64_t lanes);
  float (*finish_row)(const Partial& merged, std::int64_t row, const float* sink,
                      std::int64_t lanes, float* to);
  /// exp of one number that is not above 0.
  float (*exp)(float);
};

/// "scalar", with the processor's instruction for a fused multiply-add where it has one.
const Kernels& portable_kernels();
/// The same without that instruction.
const Kernels& portable_kernels_without_fma();

/// Those that can run here, widest first; "scalar" is always the last.
const std::vector<const Kernels*>& kernels_here();

/// "" = what KVCHECK_ISA names, else the widest. nullptr where the name is none of kernels_here().
const Kernels* kernels_for(std::string_view isa);

}  // namespace kvcheck::kernels::flash
