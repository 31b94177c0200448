// Stores the rows of new tokens: as they are, or quantised to int8. A warp takes a row at a time.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/parameters.h"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/queue.h"

namespace kvcheck::kernels::device {
namespace {

constexpr unsigned kAppendThreads = 128;

/// One row to store, and what it is stored with.
struct AppendRow {
  const unsigned char* from;
  unsigned char* to;
  const float* scale;  ///< Of lane 0; null = stored as it is.
  int lanes;
};

template <class Unit>
KV_DEVICE void copy_units(void* to, const void* from, std::int64_t count) {
  for (std::int64_t i = lane_index(); i < count; i += 32) {
    static_cast<Unit*>(to)[i] = static_cast<const Unit*>(from)[i];
  }
}

/// `bytes` as one warp, in the widest access that both ends and the length allow.
KV_DEVICE void copy_row(void* to, const void* from, std::int64_t bytes) {
  const std::uintptr_t ends = reinterpret_cast<std::uintptr_t>(to) |
                              reinterpret_cast<std::uintptr_t>(from) |
                              static_cast<std::uintptr_t>(bytes);
  if (ends % 16 == 0) {
    for (std::int64_t i = 16 * lane_index(); i < bytes; i += 16 * 32) {
      store_packet(static_cast<unsigned char*>(to) + i,
                   load_packet_once(static_cast<const unsigned char*>(from) + i));
    }
  } else if (ends % 4 == 0) {
    copy_units<std::uint32_t>(to, from, bytes / 4);
  } else {
    copy_units<std::uint16_t>(to, from, bytes / 2);
  }
}

template <Fault kFault>
KV_DEVICE int int8_code(float x, float scale) {
  constexpr float kHighest = has(kFault, Fault::append_clamp_one_short) ? 126 : 127;
  // The sum with 1.5 * 2^23 has no bits behind the point: it rounds, ties to even.
  constexpr float kRounds = 12582912.0F;
  const float exact = x * (scale == 0 ? 1.0F : 1.0F / scale);
  if (exact != exact) return 127;
  const float clamped = larger(-128.0F, smaller(exact, kHighest));
  return static_cast<int>((clamped + kRounds) - kRounds);
}

template <class E, Fault kFault>
KV_DEVICE void quantise_row(const AppendRow& row, bool per_channel) {
  const E* const from = reinterpret_cast<const E*>(row.from);
  const auto code = [&](int lane) {
    return int8_code<kFault>(to_float(from[lane]), row.scale[per_channel ? lane : 0]);
  };
  if ((reinterpret_cast<std::uintptr_t>(row.to) | static_cast<unsigned>(row.lanes)) % 4 == 0) {
    for (int lane = 4 * static_cast<int>(lane_index()); lane < row.lanes; lane += 4 * 32) {
      std::uint32_t word = 0;
      for (int i = 0; i < 4; ++i) {
        word |= (static_cast<std::uint32_t>(code(lane + i)) & 255u) << 8 * i;
      }
      *reinterpret_cast<std::uint32_t*>(row.to + lane) = word;
    }
  } else {
    for (int lane = static_cast<int>(lane_index()); lane < row.lanes; lane += 32) {
      row.to[lane] = static_cast<unsigned char>(code(lane));
    }
  }
}

/// Key (0) or value (1) row of one token and head.
template <class E, Fault kFault>
KV_DEVICE AppendRow append_row(const AppendParameters& p, int which, std::int64_t entry,
                               std::int64_t token, std::int64_t head) {
  const AppendEntry& e = p.entries[entry];
  const int lanes = which == 0 ? p.head_size : p.value_head_size;
  const float* const scale = which == 0 ? p.key_scale : p.value_scale;
  const std::int64_t element = scale == nullptr ? static_cast<std::int64_t>(sizeof(E)) : 1;
  const std::int64_t stride = which == 0 ? e.key_head_stride : e.value_head_stride;
  const std::int64_t from_head = has(kFault, Fault::append_wrong_head) ? 0 : head;
  const std::int64_t number = (entry * p.tokens + token) * p.kv_heads + from_head;
  std::int64_t offset = head * stride + (e.first_row + token) * lanes * element;
  if constexpr (has(kFault, Fault::append_offset_narrow)) offset &= 0xffff;
  return {static_cast<const unsigned char*>(which == 0 ? p.key : p.value) +
              number * lanes * static_cast<std::int64_t>(sizeof(E)),
          static_cast<unsigned char*>(which == 0 ? e.key : e.value) + offset,
          scale == nullptr || !p.per_channel ? scale : scale + head * lanes, lanes};
}

template <class E, Fault kFault>
KV_KERNEL void KV_LAUNCH_BOUNDS(kAppendThreads, 1) append_kernel(AppendParameters p) {
  const std::int64_t warps = block_threads() / 32;
  const std::int64_t half = p.tokens * p.kv_heads * p.batch;
  const std::int64_t all = grid_size().x * warps;
  const std::int64_t step = has(kFault, Fault::append_written_twice) ? all / 2 : all;
  for (std::int64_t i = block_index().x * warps + warp_index(); i < 2 * half; i += step) {
    const int which = i < half ? 0 : 1;
    const std::int64_t row = which == 0 ? i : i - half;
    const std::int64_t head = row % p.kv_heads;
    const std::int64_t token = row / p.kv_heads % p.tokens;
    const std::int64_t entry = row / p.kv_heads / p.tokens;
    if (!has(kFault, Fault::append_tokens_of_the_batch) && token >= p.entries[entry].tokens) {
      continue;
    }
    const AppendRow one = append_row<E, kFault>(p, which, entry, token, head);
    constexpr std::int64_t kMore = has(kFault, Fault::append_element_too_many) ? 1 : 0;
    if (one.scale == nullptr) {
      copy_row(one.to, one.from, (one.lanes + kMore) * static_cast<std::int64_t>(sizeof(E)));
    } else {
      quantise_row<E, kFault>(one, p.per_channel);
    }
  }
}

template <Fault kFault = Fault::none>
void launch_append(Queue& queue, const AppendParameters& p) {
  constexpr std::int64_t kMostBlocks = 4096;
  constexpr std::int64_t kWarps = kAppendThreads / 32;
  const std::int64_t rows = 2 * p.tokens * p.kv_heads * p.batch;
  if (rows == 0) return;
  const std::int64_t blocks = (rows + kWarps - 1) / kWarps;
  LaunchShape shape;
  shape.grid.x = static_cast<std::uint32_t>(blocks < kMostBlocks ? blocks : kMostBlocks);
  shape.threads = kAppendThreads;
  switch (p.element) {
    case Element::f32:
      return launch(queue, append_kernel<float, kFault>, shape, p);
    case Element::f16:
      return launch(queue, append_kernel<F16, kFault>, shape, p);
    case Element::bf16:
      return launch(queue, append_kernel<BF16, kFault>, shape, p);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
