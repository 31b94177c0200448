// The tile kernels without an instruction set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/flash/chunk_task.h"
#include "kernels/cpu/flash/elements.h"
#include "kernels/cpu/flash/kernels.h"

namespace kvcheck::kernels::flash {
namespace portable {
namespace {

#include "kernels/cpu/flash/lanes_portable.inc"
//
#include "kernels/cpu/flash/exp.inc"
#include "kernels/cpu/flash/tile.inc"
//
#include "kernels/cpu/flash/no_mistakes.inc"
//
#include "kernels/cpu/flash/softmax.inc"
//
#include "kernels/cpu/flash/chunk.inc"
#include "kernels/cpu/flash/finish.inc"
//
#include "kernels/cpu/flash/table.inc"

}  // namespace
}  // namespace portable

const Kernels& portable_kernels() { return portable::table("scalar"); }

}  // namespace kvcheck::kernels::flash
