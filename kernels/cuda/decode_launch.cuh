// Launches of decode, decode_matrix and the merge of their splits: which shape a launch takes, and
// its grid.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/decode.cuh"
#include "kernels/cuda/decode_matrix.cuh"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/merge.cuh"
#include "kernels/cuda/takes.h"

namespace kvcheck::kernels::device {
namespace decoding {
namespace {

template <class E, Fault kFault>
void launch_merge(Queue& queue, const AttentionParameters& p) {
  if (p.splits <= 1) return;
  LaunchShape shape;
  shape.grid = {static_cast<std::uint32_t>(p.queries * p.query_heads), 1,
                static_cast<std::uint32_t>(p.batch)};
  shape.threads = p.value_head_size <= 64 ? 64 : 128;
  launch(queue, &merge_kernel<E, kFault>, shape, p);
}

/// Grid and block of a decode kernel whose warps need `warp_bytes` of shared memory each.
template <class S>
LaunchShape decode_launch_shape(const AttentionLaunch& how, const AttentionParameters& p,
                                std::uint32_t warp_bytes) {
  const std::uint32_t most = decode_warps(S::kRowBytes);
  const std::uint32_t asked = how.threads / 32;
  const std::uint32_t warps = asked == 0 ? 1 : asked < most ? asked : most;
  const std::int64_t rows = p.queries * (p.query_heads / p.kv_heads);
  const std::int64_t tiles = (rows + S::kRows - 1) / S::kRows;
  LaunchShape shape;
  shape.grid = {static_cast<std::uint32_t>(p.kv_heads * tiles),
                static_cast<std::uint32_t>(p.splits), static_cast<std::uint32_t>(p.batch)};
  shape.threads = warps * 32;
  shape.shared_bytes = warps * warp_bytes + S::kRows * std::uint32_t{sizeof(RowView)};
  return shape;
}

template <class S, Fault kFault>
void launch_shape(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  launch(queue, &decode_kernel<S, kFault>, decode_launch_shape<S>(how, p, DecodeMemory<S>::kBytes),
         p);
}

template <class E, class C, int kPadded>
void launch_rows(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  const std::int64_t rows = p.queries * (p.query_heads / p.kv_heads);
  if (rows == 1) {
    launch_shape<DecodeShape<E, C, kPadded, 1>, Fault::none>(queue, how, p);
  } else if (rows <= 4) {
    launch_shape<DecodeShape<E, C, kPadded, 4>, Fault::none>(queue, how, p);
  } else {
    launch_shape<DecodeShape<E, C, kPadded, 8>, Fault::none>(queue, how, p);
  }
}

template <class E, class C>
void launch_padded(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  const int padded = padded_head(p.head_size, p.value_head_size);
  if (padded == 64) {
    launch_rows<E, C, 64>(queue, how, p);
  } else if (padded == 128) {
    launch_rows<E, C, 128>(queue, how, p);
  } else {
    launch_rows<E, C, 256>(queue, how, p);
  }
  launch_merge<E, Fault::none>(queue, p);
}

template <class S>
void launch_matrix_shape(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  using Memory = MatrixMemory<S>;
  LaunchShape shape = decode_launch_shape<S>(how, p, Memory::kBytes);
  shape.shared_bytes += Memory::kQueryBytes;
  launch(queue, &decode_matrix_kernel<S>, shape, p);
}

template <class E, Fault kFault>
void launch_matrix(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  if (padded_head(p.head_size, p.value_head_size) == 64) {
    launch_matrix_shape<MatrixShape<E, 64, kFault>>(queue, how, p);
  } else if constexpr (kFault == Fault::none) {
    launch_matrix_shape<MatrixShape<E, 128, kFault>>(queue, how, p);
  }
  launch_merge<E, kFault>(queue, p);
}

}  // namespace
}  // namespace decoding

namespace {

/// The cache that a fault is planted for. With f16 each lane reads what it has copied itself, and a
/// tile may be copied over as soon as its lane is done.
template <Fault kFault>
constexpr bool kPlantedInInt8 = kFault == Fault::decode_stage_reuse;

/// \pre takes_decode(); with a fault, f16, a cache of kPlantedInInt8 and at most 64 lanes
template <Fault kFault = Fault::none>
void launch_decode(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  if constexpr (kFault != Fault::none) {
    using C = std::conditional_t<kPlantedInInt8<kFault>, std::int8_t, F16>;
    decoding::launch_shape<decoding::DecodeShape<F16, C, 64, 4>, kFault>(queue, how, p);
    decoding::launch_merge<F16, kFault>(queue, p);
  } else if (how.element == Element::f16) {
    how.int8_cache ? decoding::launch_padded<F16, std::int8_t>(queue, how, p)
                   : decoding::launch_padded<F16, F16>(queue, how, p);
  } else {
    how.int8_cache ? decoding::launch_padded<BF16, std::int8_t>(queue, how, p)
                   : decoding::launch_padded<BF16, BF16>(queue, how, p);
  }
}

/// \pre takes_decode_matrix(); with a fault, f16 and at most 64 lanes
template <Fault kFault = Fault::none>
void launch_decode_matrix(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  if constexpr (kFault == Fault::none) {
    if (how.element == Element::bf16) return decoding::launch_matrix<BF16, kFault>(queue, how, p);
  }
  decoding::launch_matrix<F16, kFault>(queue, how, p);
}

}  // namespace
}  // namespace kvcheck::kernels::device
