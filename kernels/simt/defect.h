// What the runtime finds wrong with a kernel, whatever its outputs are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/simt/site.h"

namespace kvcheck::kernels::simt {

enum class DefectKind {
  data_race,  ///< Also where both store the same bytes.
  out_of_bounds,
  misaligned,
  uninitialised_read,
  input_written,  ///< A store to memory that kernels may only read.
  written_twice,
  not_written,
  barrier_divergence,
  warp_mask,        ///< A lane is missing from the mask, masks differ, the source is outside.
  copy_in_flight,   ///< Shared memory is touched before the copy into it was waited for.
  matrix_operands,  ///< A row of ldmatrix is misaligned, or lanes do not take part.
  deadlock,
  limits  ///< Grid, block or shared memory above what the hardware takes.
};

std::string_view to_string(DefectKind kind);

/// A place in a kernel's source.
struct SourcePlace {
  std::string file;  ///< "kernels/cuda/decode.cuh"; empty where it is not known.
  int line = 0;
  std::uintptr_t code = 0;  ///< Address of the instruction behind the access; 0 = none.
};

/// "kernels/cuda/decode.cuh:120"; an address where the line is not known.
std::string to_string(const SourcePlace& place);

/// The place with its path as it is in the repository.
SourcePlace place_of(Site site);
/// What follows the root of the repository: "/home/x/kvcheck/kernels/cuda/decode.cuh" is
/// "kernels/cuda/decode.cuh". Other paths stay as they are.
std::string repository_path(std::string_view path);

struct Defect {
  DefectKind kind = DefectKind::data_race;
  SourcePlace place;
  SourcePlace other;  ///< Of a race: the earlier access.
  std::int64_t block = 0;
  int thread = 0, other_thread = -1;  ///< -1: none. What nobody did has no place and no block.
  std::string detail;  ///< "shared byte 64 of 4096, written by thread 3, then read by thread 40"
  /// "data race at kernels/cuda/decode.cuh:120 with :98, block 0, threads 40 and 3: ..."
  std::string sentence() const;
};

}  // namespace kvcheck::kernels::simt
