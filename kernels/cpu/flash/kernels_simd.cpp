// The tile kernels for AVX2 and AVX-512, and which of all can run here.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/flash/chunk_task.h"
#include "kernels/cpu/flash/elements.h"
#include "kernels/cpu/flash/kernels.h"

// Only what the lanes are written for; the baseline that Highway insists on has no code here.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/flash/kernels_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace kvcheck::kernels::flash {
namespace HWY_NAMESPACE {
namespace {

#include "kernels/cpu/flash/lanes_simd.inc"
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

const Kernels& kernels() { return table(HWY_TARGET == HWY_AVX3 ? "avx512" : "avx2"); }

}  // namespace HWY_NAMESPACE
}  // namespace kvcheck::kernels::flash
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace kvcheck::kernels::flash {

const std::vector<const Kernels*>& kernels_here() {
  static const std::vector<const Kernels*> here = [] {
    std::vector<const Kernels*> found;
    const std::int64_t targets = hwy::SupportedTargets();
    if ((targets & HWY_AVX3) != 0) found.push_back(&N_AVX3::kernels());
    if ((targets & HWY_AVX2) != 0) found.push_back(&N_AVX2::kernels());
    found.push_back(&portable_kernels());
    return found;
  }();
  return here;
}

const Kernels* kernels_for(std::string_view isa) {
  const char* const asked = std::getenv("KVCHECK_ISA");
  if (isa.empty() && asked != nullptr) isa = asked;
  for (const Kernels* kernels : kernels_here()) {
    if (isa.empty() || isa == kernels->isa) return kernels;
  }
  return nullptr;
}

}  // namespace kvcheck::kernels::flash
#endif
