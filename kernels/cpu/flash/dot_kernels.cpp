// The tile kernels that multiply in bf16, for processors with AVX512_BF16.
#include "kernels/cpu/flash/dot_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <hwy/base.h>
HWY_DIAGNOSTICS(push)
#if !HWY_COMPILER_CLANG
// GCC takes intrinsics with a part that they leave undefined for a mistake (bug 105593).
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4701, ignored "-Wmaybe-uninitialized")
#endif
#include <immintrin.h>
HWY_DIAGNOSTICS(pop)

#include "kernels/cpu/flash/chunk_task.h"
#include "kernels/cpu/flash/elements.h"

HWY_PUSH_ATTRIBUTES("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace kvcheck::kernels::flash {
namespace {
namespace dot_product {

#include "kernels/cpu/flash/dot_lanes.inc"
//
#include "kernels/cpu/flash/exp.inc"
//
#include "kernels/cpu/flash/dot_exp.inc"
#include "kernels/cpu/flash/dot_tile.inc"
//
#include "kernels/cpu/flash/dot_chunk.inc"

/// One query as pairs of bf16, zeros beyond `lanes`. The scale is left to the logits.
template <class Element>
void load_query(const std::byte* row, const float*, float, std::int64_t lanes, std::int64_t padded,
                float* to) {
  const auto* const from = reinterpret_cast<const Element*>(row);
  auto* const pairs = reinterpret_cast<std::uint32_t*>(to);
  for (std::int64_t lane = 0; lane < padded; lane += 32) {
    const auto room = static_cast<__mmask16>(first_bits((padded - lane) / 2));
    _mm512_mask_storeu_epi32(pairs + lane / 2, room, load_lanes(from + lane, lanes - lane));
  }
}

void chunk_pass(const ChunkTask& task, const TileScratch& scratch) { DotPass(task, scratch).run(); }

}  // namespace dot_product
}  // namespace
}  // namespace kvcheck::kernels::flash
HWY_POP_ATTRIBUTES

namespace kvcheck::kernels::flash {
namespace {

/// Merging and the last division are those of the f32 kernels for AVX-512.
const Kernels* with_dot_products() {
  if (!__builtin_cpu_supports("avx512bf16")) return nullptr;
  for (const Kernels* kernels : kernels_here()) {
    if (kernels->isa != std::string_view("avx512")) continue;
    static Kernels found = *kernels;
    found.isa = "avx512_bf16";
    found.exp = dot_product::weight_of_one;
    for (auto& pass : found.chunk_pass) pass = nullptr;
    for (auto& load : found.load_query) load = nullptr;
    found.chunk_pass[static_cast<int>(Storage::bf16)] = dot_product::chunk_pass;
    found.load_query[static_cast<int>(Storage::f32)] = dot_product::load_query<float>;
    found.load_query[static_cast<int>(Storage::bf16)] = dot_product::load_query<Bfloat>;
    return &found;
  }
  return nullptr;
}

}  // namespace

const Kernels* dot_kernels() {
  static const Kernels* const found = with_dot_products();
  return found;
}

}  // namespace kvcheck::kernels::flash
