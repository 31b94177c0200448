// The portable tile kernels once more, with the faults that lie in tiles, sums and merges.
#include "kernels/cpu/flash/planted_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/flash/chunk_task.h"
#include "kernels/cpu/flash/elements.h"

namespace kvcheck::kernels::flash {
namespace planted {
namespace {

/// The fault of the call that this thread is in.
thread_local Fault current = Fault::none;

#include "kernels/cpu/flash/lanes_portable.inc"
//
#include "kernels/cpu/flash/exp.inc"
#include "kernels/cpu/flash/tile.inc"
//
#include "kernels/cpu/flash/planted_mistakes.inc"
//
#include "kernels/cpu/flash/softmax.inc"
//
#include "kernels/cpu/flash/chunk.inc"
#include "kernels/cpu/flash/finish.inc"
//
#include "kernels/cpu/flash/table.inc"
//
#include "kernels/cpu/flash/planted_table.inc"

}  // namespace
}  // namespace planted

const Kernels& distort_kernels(Fault fault, const SessionConfig& config, const Kernels& right) {
  if (fault == Fault::none) return right;
  const bool shows =
      fault == Fault::sum_order_by_batch     ? config.batch > 1
      : fault == Fault::sum_order_by_threads ? config.threads > 1
      : fault == Fault::sum_order_by_instructions || fault == Fault::weights_in_bf16_by_instructions
          ? config.isa == "avx2"
          : true;
  const Kernels* const table = planted::table_of(
      fault == Fault::weights_in_bf16_by_instructions ? Fault::weights_in_bf16 : fault);
  return shows && table != nullptr ? *table : right;
}

}  // namespace kvcheck::kernels::flash
