// The tile kernels without an instruction set, and once more for processors with an instruction for
// a fused multiply-add, which is a call into the C library elsewhere.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <hwy/base.h>

#include "kernels/cpu/flash/chunk_task.h"
#include "kernels/cpu/flash/elements.h"
#include "kernels/cpu/flash/kernels.h"

namespace kvcheck::kernels::flash {
namespace portable {
namespace {

#include "kernels/cpu/flash/portable.inc"

}  // namespace
}  // namespace portable

const Kernels& portable_kernels_without_fma() { return portable::table("scalar"); }

}  // namespace kvcheck::kernels::flash

#if HWY_ARCH_X86
HWY_PUSH_ATTRIBUTES("fma")
namespace kvcheck::kernels::flash {
namespace portable_fma {
namespace {

#include "kernels/cpu/flash/portable.inc"

}  // namespace
}  // namespace portable_fma
}  // namespace kvcheck::kernels::flash
HWY_POP_ATTRIBUTES
#endif

namespace kvcheck::kernels::flash {

const Kernels& portable_kernels() {
#if HWY_ARCH_X86
  if (__builtin_cpu_supports("fma")) return portable_fma::table("scalar");
#endif
  return portable_kernels_without_fma();
}

}  // namespace kvcheck::kernels::flash
