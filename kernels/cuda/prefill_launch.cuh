// Launches of prefill: which shape a launch takes, and its grid.
#pragma once

#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/prefill.cuh"

namespace kvcheck::kernels::device {
namespace {
namespace prefill {

template <class S>
void launch_shape(Queue& queue, std::uint32_t threads, const AttentionParameters& p) {
  const std::int64_t rows = p.queries * (p.query_heads / p.kv_heads);
  const std::int64_t tiles = (rows + S::rows(threads) - 1) / S::rows(threads);
  LaunchShape shape;
  shape.grid.x = static_cast<std::uint32_t>(tiles * p.kv_heads * p.batch);
  shape.threads = threads;
  shape.shared_bytes = S::shared_bytes(threads);
  if (shape.grid.x != 0) launch(queue, prefill_kernel<S>, shape, p);
}

/// \param threads 32, 64 or 128: blocks of 16, 32 or 64 rows, and with 128 wide ones where there
/// are rows enough for them.
template <class E, unsigned kLanes, Fault kFault>
void launch_lanes(Queue& queue, std::uint32_t threads, const AttentionParameters& p) {
  using Narrow = Shape<E, kLanes, false, kFault>;
  if constexpr (kFault == Fault::none) {
    using Wide = Shape<E, kLanes, true>;
    const bool plain = p.mask_kind == MaskKind::none && p.softcap == 0 && p.scale > 0;
    const std::int64_t rows = p.queries * (p.query_heads / p.kv_heads);
    if (plain && threads >= 128 && rows > Narrow::rows(128)) {
      return launch_shape<Wide>(queue, Wide::kThreads, p);
    }
  }
  launch_shape<Narrow>(queue, threads >= 128 ? 128 : threads >= 64 ? 64 : 32, p);
}

template <class E, Fault kFault>
void launch_element(Queue& queue, std::uint32_t threads, const AttentionParameters& p) {
  const std::int32_t lanes = p.head_size > p.value_head_size ? p.head_size : p.value_head_size;
  if (lanes <= 64) return launch_lanes<E, 64, kFault>(queue, threads, p);
  if constexpr (kFault == Fault::none) {
    if (lanes <= 128) return launch_lanes<E, 128, kFault>(queue, threads, p);
    return launch_lanes<E, 256, kFault>(queue, threads, p);
  }
}

}  // namespace prefill

/// \pre takes_prefill() (takes.h), and blocks are fewer than 2^31, which no queries that fit into
/// memory exceed; with a fault, f16 and at most 64 lanes
template <Fault kFault = Fault::none>
void launch_prefill(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  if constexpr (kFault == Fault::none) {
    if (how.element == Element::bf16) {
      return prefill::launch_element<BF16, kFault>(queue, how.threads, p);
    }
  }
  prefill::launch_element<F16, kFault>(queue, how.threads, p);
}

}  // namespace
}  // namespace kvcheck::kernels::device
