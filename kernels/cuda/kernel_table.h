// Every launch that a session makes, as functions of one world: the GPU's, the SIMT runtime's, or
// those of a copy with a planted fault.
#pragma once

#include <cstdint>

#include "kernels/cuda/parameters.h"
#include "kernels/cuda/queue.h"

namespace kvcheck::kernels::device {

/// What the elements of queries, outputs and, unless quantised, cache rows are.
enum class Element { f32, f16, bf16 };

/// How one launch of attention is cut.
struct AttentionLaunch {
  Element element = Element::f32;
  bool int8_cache = false;
  std::uint32_t threads = 128;  ///< Of a block, where the kernel leaves a choice.
};

struct KernelTable {
  void (*append)(Queue&, const AppendParameters&);
  void (*move)(Queue&, const MoveParameters&);
  /// Any shape, element type and mask; two launches with scores in memory.
  void (*unfused)(Queue&, const AttentionLaunch&, const AttentionParameters&);
  /// CUDA cores, split over positions, merged by a second launch where splits > 1.
  void (*decode)(Queue&, const AttentionLaunch&, const AttentionParameters&);
  /// The same on matrix units, the query heads of a KV head being the rows of a tile.
  void (*decode_matrix)(Queue&, const AttentionLaunch&, const AttentionParameters&);
  /// Tiles of queries on matrix units.
  void (*prefill)(Queue&, const AttentionLaunch&, const AttentionParameters&);
};

}  // namespace kvcheck::kernels::device
