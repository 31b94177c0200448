// Kernels with nothing wrong, each in need of something that the checks must understand.
#include <array>
#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "tests/kernels/simt/watched_kernels.h"

namespace kvcheck::kernels::device {
namespace {

using simt::Buffers;

constexpr unsigned kThreads = 64;

/// Exchange between warps, twice through the same stage.
KV_KERNEL void stage_reused(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index();
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    stage[t] = p.input[t] + static_cast<float>(i);
    sync_block();
    sum += stage[t ^ 32u];
    sync_block();
  }
  p.output[t] = sum;
}

/// Exchange within a warp; in the second part each half of a warp goes its own way.
KV_KERNEL void warp_stage(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index();
  stage[t] = p.input[t];
  sync_warp();
  float sum = stage[t ^ 31u];
  sync_warp();
  if (lane_index() < 16) {
    stage[t] = sum;
    sync_warp(0x0000ffffu);
    sum += stage[t ^ 1u];
  } else {
    stage[t] = sum + 1;
    sync_warp(0xffff0000u);
    sum += stage[t ^ 8u];
  }
  p.output[t] = sum;
}

/// Order that goes from lane to lane: 0 and 1 meet, then 1 and 2.
KV_KERNEL void chain_of_lanes(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes) + warp_index();
  const unsigned lane = lane_index();
  if (lane == 0) {
    stage[0] = p.input[0];
    sync_warp(0x3u);
  } else if (lane == 1) {
    sync_warp(0x3u);
    sync_warp(0x6u);
  } else if (lane == 2) {
    sync_warp(0x6u);
    p.output[thread_index()] = stage[0];
  }
}

/// Two tiles on their way while one is used.
KV_KERNEL void copies_ahead(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  constexpr unsigned kTile = kThreads * 16;
  float sum = 0;
  const auto ask = [&](unsigned tile) {
    if (tile < 4 && t < 16) {
      copy_async(bytes + (tile % 2) * kTile + t * 16, p.input + tile * 64 + t * 4, 16);
    }
    commit_copies();
  };
  ask(0);
  for (unsigned tile = 0; tile < 4; ++tile) {
    ask(tile + 1);
    wait_copies<1>();
    sync_block();
    sum += reinterpret_cast<const float*>(bytes + (tile % 2) * kTile)[t ^ 33u];
    sync_block();
  }
  p.output[t] = sum;
}

/// Rows move within global memory: all are on the stage before any is stored.
KV_KERNEL void move_rows(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  if (t < 32) copy_async(bytes + t * 16, p.cache + 16 + t * 4, 16);
  commit_copies();
  wait_copies<0>();
  sync_block();
  simt::next_line_is(0);
  if (t >= 32) store_packet(p.cache + (t - 32) * 4, load_packet(bytes + (t - 32) * 16));
}

/// A copy of fewer bytes fills the rest with zeros, which may be read.
KV_KERNEL void short_copy(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  if (t == 0) copy_async(bytes, p.input, 8);
  if (t == 1) copy_async(bytes + 16, p.input + 4, 0);
  commit_copies();
  wait_copies<0>();
  sync_block();
  if (t < 8) p.output[t] = reinterpret_cast<const float*>(bytes)[t];
}

/// Elements of 2 bytes and of 1, each written and read by a thread of its own.
KV_KERNEL void narrow_neighbours(Buffers p) {
  KV_SHARED_BYTES(bytes);
  std::uint16_t* const halves = reinterpret_cast<std::uint16_t*>(bytes);
  std::uint8_t* const quarters = bytes + 128;
  std::uint16_t* const rows = reinterpret_cast<std::uint16_t*>(p.output);
  const unsigned t = thread_index();
  halves[t] = static_cast<std::uint16_t>(t);
  quarters[t] = static_cast<std::uint8_t>(t);
  halves[t] = static_cast<std::uint16_t>(halves[t] + quarters[t]);
  simt::next_line_is(0);
  rows[t] = halves[t];
}

/// Blocks share a counter and nothing else.
KV_KERNEL void counter_of_blocks(Buffers p) {
  simt::next_line_is(1);
  atomic_add(p.counter, 1u);
  simt::next_line_is(0);
  p.output[block_index().x * block_threads() + thread_index()] = p.input[thread_index()];
}

/// A value goes through global memory, within a block and with a barrier.
KV_KERNEL void through_scratch(Buffers p) {
  const unsigned t = thread_index();
  simt::next_line_is(1);
  p.scratch[t] = p.input[t];
  sync_block();
  simt::next_line_is(0);
  p.output[t] = p.scratch[t ^ 63u];
}

/// Each thread changes what is its own, several times.
KV_KERNEL void in_place(Buffers p) {
  const unsigned t = block_index().x * block_threads() + thread_index();
  for (int i = 0; i < 3; ++i) p.cache[t] = p.cache[t] * 0 + static_cast<float>(i);
}

// Large enough that a compiler does not keep it in registers.
constexpr std::array<float, 64> kTable = [] {
  std::array<float, 64> table{};
  for (std::size_t i = 0; i < 64; ++i) table[i] = static_cast<float>(i * i % 37);
  return table;
}();

__attribute__((noinline)) void fill(float* values, const float* table, unsigned seed) {
  for (unsigned i = 0; i < 16; ++i) values[i] = table[(seed + i) % 64];
}

/// The thread's own stack, by a pointer, and read-only data of the program.
KV_KERNEL void stack_and_constants(Buffers p) {
  float values[16];
  fill(values, kTable.data(), thread_index());
  p.output[thread_index()] = values[thread_index() % 16];
}

template <auto kernel, unsigned kBlocks = 1>
void run(simt::SimtQueue& queue, const Buffers& buffers) {
  launch(queue, kernel, {.grid = {kBlocks}, .threads = kThreads, .shared_bytes = 4096}, buffers);
}

constexpr simt::WatchedKernel kKernels[] = {
    {"stage_reused", run<&stage_reused>},
    {"warp_stage", run<&warp_stage>},
    {"chain_of_lanes", run<&chain_of_lanes>},
    {"copies_ahead", run<&copies_ahead>},
    {"move_rows", run<&move_rows>},
    {"short_copy", run<&short_copy>},
    {"narrow_neighbours", run<&narrow_neighbours>},
    {"counter_of_blocks", run<&counter_of_blocks, 4>},
    {"through_scratch", run<&through_scratch>},
    {"in_place", run<&in_place, 4>},
    {"stack_and_constants", run<&stack_and_constants>},
};

}  // namespace
}  // namespace kvcheck::kernels::device

namespace kvcheck::kernels::simt {

std::span<const WatchedKernel> right_kernels() { return device::kKernels; }

}  // namespace kvcheck::kernels::simt
