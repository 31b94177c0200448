// Each kernel makes one access, or says how many, and stands beside what it costs.
#include "tests/kernels/simt/counted_kernels.h"

#include <cstdint>

#include "kernels/cuda/device.cuh"

namespace kvcheck::kernels::device {
namespace {

using Buffers = simt::CountedBuffers;

// ---- Shared memory -----------------------------------------------------------------------------

/// Lane i stores a T at byte i * kStride.
template <class T, unsigned kStride>
KV_KERNEL void store_shared(Buffers) {
  KV_SHARED_BYTES(bytes);
  *reinterpret_cast<T*>(bytes + lane_index() * kStride) = 1;
}

template <unsigned kStride>
KV_KERNEL void store_shared_packets(Buffers) {
  KV_SHARED_BYTES(bytes);
  store_packet(bytes + lane_index() * kStride, Packet{{1, 2, 3, 4}});
}

/// One store by lane 0, one load of the same word by all lanes.
KV_KERNEL void load_one_word(Buffers p) {
  KV_SHARED_BYTES(bytes);
  unsigned* const words = reinterpret_cast<unsigned*>(bytes);
  if (lane_index() == 0) words[0] = 1;
  sync_warp();
  if (words[0] == 2) *p.to = std::byte{1};
}

/// 32 stores of 16 bytes in 4 KiB, then one load of matrices.
template <unsigned kStride, bool kFour>
KV_KERNEL void load_matrix_rows(Buffers p) {
  KV_SHARED_BYTES(bytes);
  for (unsigned i = 0; i < 8; ++i) {
    store_packet(bytes + (i * 32 + lane_index()) * 16, Packet{{1, 2, 3, 4}});
  }
  sync_warp();
  if constexpr (kFour) {
    unsigned r[4];
    load_matrix_x4(r, bytes + lane_index() * kStride);
    if (r[0] == 77) *p.to = std::byte{1};
  } else {
    unsigned r[2];
    load_matrix_x2(r, bytes + lane_index() % 16 * kStride);
    if (r[0] == 77) *p.to = std::byte{1};
  }
}

// ---- Global memory -----------------------------------------------------------------------------

/// Lane i loads a T at byte kFirst + i * kStride.
template <class T, unsigned kStride, unsigned kFirst = 0>
KV_KERNEL void load_global(Buffers p) {
  const T value = *reinterpret_cast<const T*>(p.from + kFirst + lane_index() * kStride);
  if (value == static_cast<T>(77)) *p.to = std::byte{1};
}

KV_KERNEL void load_global_packets(Buffers p) {
  if (load_packet(p.from + lane_index() * 16).word[0] == 77) *p.to = std::byte{1};
}

KV_KERNEL void load_global_backwards(Buffers p) {
  const float value = reinterpret_cast<const float*>(p.from)[31 - lane_index()];
  if (value == 77) *p.to = std::byte{1};
}

template <class T, unsigned kStride>
KV_KERNEL void store_global(Buffers p) {
  *reinterpret_cast<T*>(p.to + lane_index() * kStride) = 1;
}

KV_KERNEL void store_global_packets(Buffers p) {
  store_packet(p.to + lane_index() * 16, Packet{{1, 2, 3, 4}});
}

KV_KERNEL void copy_packets(Buffers p) {
  KV_SHARED_BYTES(bytes);
  copy_async(bytes + lane_index() * 16, p.from + lane_index() * 16, 16);
  commit_copies();
  wait_copies<0>();
}

/// The last 8 lanes copy nothing, those before them 4 bytes.
KV_KERNEL void copy_short_packets(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned lane = lane_index();
  copy_async(bytes + lane * 16, p.from + lane * 16, lane < 16 ? 16 : lane < 24 ? 4 : 0);
  commit_copies();
  wait_copies<0>();
}

// ---- Lanes that go different ways --------------------------------------------------------------

KV_KERNEL void half_of_the_lanes(Buffers p) {
  if (lane_index() < 16) reinterpret_cast<float*>(p.to)[lane_index()] = 1;
}

/// Lane i goes round i / 8 + 1 times, so that 32, 24, 16 and 8 lanes store.
KV_KERNEL void loops_of_different_length(Buffers p) {
  float* const rows = reinterpret_cast<float*>(p.to);
  const unsigned lane = lane_index();
  for (unsigned i = 0; i <= lane / 8; ++i) rows[i * 32 + lane] = 1;
}

/// One instruction, three times, with barriers between.
KV_KERNEL void three_times(Buffers p) {
  float* const rows = reinterpret_cast<float*>(p.to);
  for (unsigned i = 0; i < 3; ++i) {
    rows[i * 32 + lane_index()] = 1;
    sync_block();
  }
}

KV_KERNEL void two_products(Buffers) {
  float d[4] = {0, 0, 0, 0};
  const unsigned a[4] = {0, 0, 0, 0}, b[2] = {0, 0};
  for (int i = 0; i < 2; ++i) multiply_add<F16>(d, a, b);
}

template <auto kernel>
void run(simt::SimtQueue& queue, const Buffers& buffers) {
  launch(queue, kernel, {.grid = {}, .threads = 32, .shared_bytes = 4096}, buffers);
}

constexpr simt::CountedKernel kKernels[] = {
    // 32 lanes of 4 bytes together; stride 2 leaves 16 banks for 32 words, stride 32 one.
    {"words", run<&store_shared<float, 4>>, {.shared_accesses = 1}},
    {"words, stride 2", run<&store_shared<float, 8>>, {.shared_accesses = 1, .bank_conflicts = 1}},
    {"words, stride 4", run<&store_shared<float, 16>>, {.shared_accesses = 1, .bank_conflicts = 3}},
    {"words, stride 32",
     run<&store_shared<float, 128>>,
     {.shared_accesses = 1, .bank_conflicts = 31}},
    {"words, stride 31", run<&store_shared<float, 124>>, {.shared_accesses = 1}},
    {"halves", run<&store_shared<std::uint16_t, 2>>, {.shared_accesses = 1}},
    {"bytes", run<&store_shared<std::uint8_t, 1>>, {.shared_accesses = 1}},
    {"one word", run<&load_one_word>, {.shared_accesses = 2}},
    // 16 lanes of 8 bytes: 32 words, or 32 words on every other pair of banks.
    {"doubles", run<&store_shared<double, 8>>, {.shared_accesses = 1}},
    {"doubles, stride 2",
     run<&store_shared<double, 16>>,
     {.shared_accesses = 1, .bank_conflicts = 2}},
    // 8 lanes of 16 bytes, four times.
    {"packets", run<&store_shared_packets<16>>, {.shared_accesses = 1}},
    {"packets, stride 2",
     run<&store_shared_packets<32>>,
     {.shared_accesses = 1, .bank_conflicts = 4}},
    {"packets, rows of 128 bytes",
     run<&store_shared_packets<112 + 16>>,
     {.shared_accesses = 1, .bank_conflicts = 28}},
    {"packets, rows of 112 bytes", run<&store_shared_packets<112>>, {.shared_accesses = 1}},
    {"matrix rows", run<&load_matrix_rows<16, true>>, {.shared_accesses = 9}},
    {"matrix rows of 128 bytes",
     run<&load_matrix_rows<128, true>>,
     {.shared_accesses = 9, .bank_conflicts = 28}},
    {"two matrices, rows of 128 bytes",
     run<&load_matrix_rows<128, false>>,
     {.shared_accesses = 9, .bank_conflicts = 14}},

    {"load words",
     run<&load_global<float, 4>>,
     {.global_loads = 1, .global_load_bytes = 128, .global_load_sectors = 4}},
    {"load words backwards",
     run<&load_global_backwards>,
     {.global_loads = 1, .global_load_bytes = 128, .global_load_sectors = 4}},
    {"load words from byte 4",
     run<&load_global<float, 4, 4>>,
     {.global_loads = 1, .global_load_bytes = 128, .global_load_sectors = 5}},
    {"load words, stride 2",
     run<&load_global<float, 8>>,
     {.global_loads = 1, .global_load_bytes = 128, .global_load_sectors = 8}},
    {"load words, stride 32",
     run<&load_global<float, 128>>,
     {.global_loads = 1, .global_load_bytes = 128, .global_load_sectors = 32}},
    {"load one word",
     run<&load_global<float, 0>>,
     {.global_loads = 1, .global_load_bytes = 4, .global_load_sectors = 1}},
    {"load halves",
     run<&load_global<std::uint16_t, 2>>,
     {.global_loads = 1, .global_load_bytes = 64, .global_load_sectors = 2}},
    {"load bytes",
     run<&load_global<std::uint8_t, 1>>,
     {.global_loads = 1, .global_load_bytes = 32, .global_load_sectors = 1}},
    {"load doubles",
     run<&load_global<double, 8>>,
     {.global_loads = 1, .global_load_bytes = 256, .global_load_sectors = 8}},
    {"load packets",
     run<&load_global_packets>,
     {.global_loads = 1, .global_load_bytes = 512, .global_load_sectors = 16}},
    {"store words",
     run<&store_global<float, 4>>,
     {.global_stores = 1, .global_store_bytes = 128, .global_store_sectors = 4}},
    {"store words, stride 8",
     run<&store_global<float, 32>>,
     {.global_stores = 1, .global_store_bytes = 128, .global_store_sectors = 32}},
    {"store halves",
     run<&store_global<std::uint16_t, 2>>,
     {.global_stores = 1, .global_store_bytes = 64, .global_store_sectors = 2}},
    {"store packets",
     run<&store_global_packets>,
     {.global_stores = 1, .global_store_bytes = 512, .global_store_sectors = 16}},
    {"copy packets",
     run<&copy_packets>,
     {.shared_accesses = 1,
      .global_loads = 1,
      .global_load_bytes = 512,
      .global_load_sectors = 16}},
    // 256 bytes in 8 sectors, then 8 times 4 bytes, two in a sector.
    {"copy short packets",
     run<&copy_short_packets>,
     {.shared_accesses = 1,
      .global_loads = 1,
      .global_load_bytes = 288,
      .global_load_sectors = 12}},

    {"half of the lanes",
     run<&half_of_the_lanes>,
     {.global_stores = 1, .global_store_bytes = 64, .global_store_sectors = 2}},
    {"loops of different length",
     run<&loops_of_different_length>,
     {.global_stores = 4, .global_store_bytes = 320, .global_store_sectors = 10}},
    {"three times",
     run<&three_times>,
     {.global_stores = 3,
      .global_store_bytes = 384,
      .global_store_sectors = 12,
      .block_barriers = 3}},
    {"two products", run<&two_products>, {.matrix_products = 2}},
};

}  // namespace
}  // namespace kvcheck::kernels::device

namespace kvcheck::kernels::simt {

std::span<const CountedKernel> counted_kernels() { return device::kKernels; }

}  // namespace kvcheck::kernels::simt
