// Kernels in which two threads race, each for one reason; marked as in wrong_kernels.cpp.
#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "tests/kernels/simt/watched_kernels.h"

namespace kvcheck::kernels::device {
namespace {

using simt::Buffers;
using simt::DefectKind;
using simt::next_line_is;
using simt::Other;

constexpr unsigned kThreads = 64;

KV_KERNEL void missing_barrier(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index();
  stage[t] = 0;
  sync_block();
  next_line_is(1);
  stage[t] = p.input[t];
  next_line_is(0);
  const float other = stage[t ^ 32u];
  p.output[t] = other;
}

KV_KERNEL void stage_reused_early(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index();
  float sum = 0;
  for (int i = 0; i < 2; ++i) {
    next_line_is(0);
    stage[t] = static_cast<float>(i);
    sync_block();
    next_line_is(1);
    sum += stage[t ^ 32u];
  }
  p.output[t] = sum;
}

KV_KERNEL void missing_warp_barrier(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index();
  stage[t] = 0;
  sync_warp();
  next_line_is(1);
  stage[t] = p.input[t];
  next_line_is(0);
  const float other = stage[t ^ 1u];
  p.output[t] = other;
}

/// A barrier of half the warp does not order it with the other half.
KV_KERNEL void barrier_of_too_few(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index();
  stage[t] = 0;
  sync_warp();
  next_line_is(1);
  stage[t] = p.input[t];
  sync_warp(lane_index() < 16 ? 0x0000ffffu : 0xffff0000u);
  next_line_is(0);
  const float other = stage[t ^ 16u];
  p.output[t] = other;
}

/// A shuffle does not order accesses to memory.
KV_KERNEL void shuffle_as_barrier(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index();
  stage[t] = 0;
  sync_warp();
  next_line_is(1);
  stage[t] = p.input[t];
  const unsigned all = ballot(kAllLanes, true);
  next_line_is(0);
  const float other = stage[t ^ 1u];
  p.output[t] = other + static_cast<float>(all & 1);
}

/// All threads store the same value, which is a race all the same.
KV_KERNEL void same_value(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  next_line_is(0);
  stage[0] = 1;
  sync_block();
  p.output[thread_index()] = stage[0];
}

KV_KERNEL void atomic_and_plain(Buffers p) {
  next_line_is(1);
  atomic_add(p.counter, 1u);
  next_line_is(0);
  const unsigned count = *p.counter;
  p.output[thread_index()] = static_cast<float>(count);
}

KV_KERNEL void blocks_write_one_row(Buffers p) {
  next_line_is(0);
  p.cache[thread_index()] = p.input[thread_index()];
}

KV_KERNEL void read_of_another_block(Buffers p) {
  const unsigned t = thread_index(), b = block_index().x;
  next_line_is(1);
  p.cache[b * kThreads + t] = p.input[t];
  sync_block();
  next_line_is(0);
  const float other = p.cache[(b ^ 1u) * kThreads + t];
  p.output[b * kThreads + t] = other;
}

KV_KERNEL void waited_without_barrier(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  reinterpret_cast<float*>(bytes)[t * 4] = 0;
  sync_block();
  next_line_is(1);
  copy_async(bytes + t * 16, p.input + t * 4, 16);
  commit_copies();
  wait_copies<0>();
  next_line_is(0);
  const float value = reinterpret_cast<float*>(bytes)[(t ^ 32u) * 4];
  p.output[t] = value;
}

/// The barrier orders the call, not the copy, which may read as late as the wait.
KV_KERNEL void source_overwritten(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  next_line_is(0);
  copy_async(bytes + t * 16, p.cache + t * 4, 16);
  commit_copies();
  sync_block();
  next_line_is(1);
  p.cache[(t ^ 32u) * 4] = 0;
  wait_copies<0>();
  p.output[t] = 0;
}

KV_KERNEL void copy_into_used_stage(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  reinterpret_cast<float*>(bytes)[t * 4] = 0;
  sync_block();
  next_line_is(1);
  const float value = reinterpret_cast<float*>(bytes)[(t ^ 32u) * 4];
  next_line_is(0);
  copy_async(bytes + t * 16, p.input + t * 4, 16);
  commit_copies();
  wait_copies<0>();
  p.output[t] = value;
}

template <auto kernel, unsigned kBlocks = 1>
void run(simt::SimtQueue& queue, const Buffers& buffers) {
  launch(queue, kernel, {.grid = {kBlocks}, .threads = kThreads, .shared_bytes = 4096}, buffers);
}

constexpr simt::WrongKernel kKernels[] = {
    {{"missing_barrier", run<&missing_barrier>},
     DefectKind::data_race,
     Other::line_1,
     "of shared memory"},
    {{"stage_reused_early", run<&stage_reused_early>},
     DefectKind::data_race,
     Other::line_1,
     "of the 4096"},
    {{"missing_warp_barrier", run<&missing_warp_barrier>}, DefectKind::data_race, Other::line_1},
    {{"barrier_of_too_few", run<&barrier_of_too_few>}, DefectKind::data_race, Other::line_1},
    {{"shuffle_as_barrier", run<&shuffle_as_barrier>}, DefectKind::data_race, Other::line_1},
    {{"same_value", run<&same_value>}, DefectKind::data_race, Other::same_line, "byte 0 "},
    {{"atomic_and_plain", run<&atomic_and_plain>},
     DefectKind::data_race,
     Other::line_1,
     "'counter'"},
    {{"blocks_write_one_row", run<&blocks_write_one_row, 2>},
     DefectKind::data_race,
     Other::same_line,
     " of block "},
    {{"read_of_another_block", run<&read_of_another_block, 2>},
     DefectKind::data_race,
     Other::line_1,
     " of block "},
    {{"waited_without_barrier", run<&waited_without_barrier>},
     DefectKind::data_race,
     Other::line_1},
    {{"source_overwritten", run<&source_overwritten>},
     DefectKind::data_race,
     Other::line_1,
     "of 'cache'"},
    {{"copy_into_used_stage", run<&copy_into_used_stage>}, DefectKind::data_race, Other::line_1},
};

}  // namespace
}  // namespace kvcheck::kernels::device

namespace kvcheck::kernels::simt {

std::span<const WrongKernel> racing_kernels() { return device::kKernels; }

}  // namespace kvcheck::kernels::simt
