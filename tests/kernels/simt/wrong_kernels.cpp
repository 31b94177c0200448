// Kernels with one mistake each. next_line_is(0) stands before the statement that a defect must
// name, next_line_is(1) before the one that it must name beside it.
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

KV_KERNEL void one_past_the_end(Buffers p) {
  const unsigned t = thread_index();
  next_line_is(0);
  p.output[t + 193] = p.input[t];
}

KV_KERNEL void before_the_begin(Buffers p) {
  const unsigned t = thread_index();
  next_line_is(0);
  const float value = p.input[static_cast<std::int64_t>(t) - 1];
  p.output[t] = value;
}

KV_KERNEL void behind_shared_memory(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  next_line_is(0);
  store_packet(bytes + 4096 - 63 * 16 + t * 16, Packet{{1, 2, 3, 4}});
  p.output[t] = 0;
}

KV_KERNEL void misaligned_packet(Buffers p) {
  next_line_is(0);
  const Packet packet = load_packet(p.input + 1 + thread_index());
  p.output[thread_index()] = static_cast<float>(packet.word[0]);
}

KV_KERNEL void misaligned_number(Buffers p) {
  KV_SHARED_BYTES(bytes);
  next_line_is(0);
  *reinterpret_cast<float*>(bytes + 2 + thread_index() * 8) = 1;
  p.output[thread_index()] = 1;
}

KV_KERNEL void misaligned_copy(Buffers p) {
  KV_SHARED_BYTES(bytes);
  next_line_is(0);
  copy_async(bytes + thread_index() * 16, p.input + 2 + thread_index() * 2, 16);
  commit_copies();
  wait_copies<0>();
  p.output[thread_index()] = 1;
}

KV_KERNEL void uninitialised_tail(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index();
  if (t < 60) stage[t] = p.input[t];
  sync_block();
  next_line_is(0);
  const float other = stage[t ^ 32u];
  p.output[t] = other;
}

/// Half of the word is there.
KV_KERNEL void uninitialised_half(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  reinterpret_cast<std::uint16_t*>(bytes)[t * 2] = 1;
  next_line_is(0);
  const float value = reinterpret_cast<float*>(bytes)[t];
  p.output[t] = value;
}

/// Shared memory does not outlive its block.
KV_KERNEL void value_of_last_block(Buffers p) {
  KV_SHARED_BYTES(bytes);
  float* const stage = reinterpret_cast<float*>(bytes);
  const unsigned t = thread_index(), b = block_index().x;
  if (b == 0) stage[t] = p.input[t];
  next_line_is(0);
  const float value = stage[t];
  p.output[b * kThreads + t] = value;
}

KV_KERNEL void scratch_never_written(Buffers p) {
  const unsigned t = thread_index();
  if (t > 0) p.scratch[t] = 1;
  next_line_is(0);
  const float value = p.scratch[t];
  p.output[t] = value;
}

KV_KERNEL void output_written_twice(Buffers p) {
  const unsigned t = thread_index();
  next_line_is(1);
  p.output[t] = 1;
  sync_block();
  next_line_is(0);
  p.output[t ^ 63u] = 2;
}

KV_KERNEL void input_overwritten(Buffers p) {
  next_line_is(0);
  p.input[thread_index()] = 1;
}

KV_KERNEL void copy_without_wait(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  next_line_is(1);
  copy_async(bytes + t * 16, p.input + t * 4, 16);
  commit_copies();
  sync_block();
  next_line_is(0);
  const float value = reinterpret_cast<float*>(bytes)[t];
  wait_copies<0>();
  p.output[t] = value;
}

/// The last group, which holds the tile, may still be under way.
KV_KERNEL void waits_for_one_too_few(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  copy_async(bytes + t * 16, p.input + t * 4, 16);
  commit_copies();
  next_line_is(1);
  copy_async(bytes + 1024 + t * 16, p.input + t * 4, 16);
  commit_copies();
  wait_copies<1>();
  sync_block();
  next_line_is(0);
  const float value = reinterpret_cast<float*>(bytes + 1024)[t];
  wait_copies<0>();
  p.output[t] = value;
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

KV_KERNEL void two_copies_to_one_place(Buffers p) {
  KV_SHARED_BYTES(bytes);
  const unsigned t = thread_index();
  next_line_is(1);
  copy_async(bytes + t * 16, p.input + t * 4, 16);
  next_line_is(0);
  copy_async(bytes + t * 16, p.input, 16);
  commit_copies();
  wait_copies<0>();
  p.output[t] = 1;
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
    {{"one_past_the_end", run<&one_past_the_end>},
     DefectKind::out_of_bounds,
     Other::none,
     "an access of 4 bytes ends 4 bytes behind 'output' of 1024 bytes"},
    {{"before_the_begin", run<&before_the_begin>},
     DefectKind::out_of_bounds,
     Other::none,
     "begins 4 bytes before 'input' of 1024 bytes"},
    {{"behind_shared_memory", run<&behind_shared_memory>},
     DefectKind::out_of_bounds,
     Other::none,
     "ends 16 bytes behind the shared memory of 4096 bytes"},
    {{"misaligned_packet", run<&misaligned_packet>},
     DefectKind::misaligned,
     Other::none,
     " bytes past a multiple of 16"},
    {{"misaligned_number", run<&misaligned_number>},
     DefectKind::misaligned,
     Other::none,
     "2 bytes past a multiple of 4"},
    {{"misaligned_copy", run<&misaligned_copy>},
     DefectKind::misaligned,
     Other::none,
     "8 bytes past a multiple of 16"},
    {{"uninitialised_tail", run<&uninitialised_tail>},
     DefectKind::uninitialised_read,
     Other::none,
     " of 4096 holds nothing yet"},
    {{"uninitialised_half", run<&uninitialised_half>},
     DefectKind::uninitialised_read,
     Other::none,
     "holds nothing yet"},
    {{"value_of_last_block", run<&value_of_last_block, 2>},
     DefectKind::uninitialised_read,
     Other::none,
     "holds nothing yet"},
    {{"scratch_never_written", run<&scratch_never_written>},
     DefectKind::uninitialised_read,
     Other::none,
     "byte 0 of the 1024 of 'scratch' holds nothing yet"},
    {{"output_written_twice", run<&output_written_twice>},
     DefectKind::written_twice,
     Other::line_1,
     "of 'output'"},
    {{"input_overwritten", run<&input_overwritten>},
     DefectKind::input_written,
     Other::none,
     "of 'input'"},
    {{"copy_without_wait", run<&copy_without_wait>},
     DefectKind::copy_in_flight,
     Other::line_1,
     "under way"},
    {{"waits_for_one_too_few", run<&waits_for_one_too_few>},
     DefectKind::copy_in_flight,
     Other::line_1,
     "under way"},
    {{"waited_without_barrier", run<&waited_without_barrier>},
     DefectKind::data_race,
     Other::line_1},
    {{"copy_into_used_stage", run<&copy_into_used_stage>}, DefectKind::data_race, Other::line_1},
    {{"two_copies_to_one_place", run<&two_copies_to_one_place>},
     DefectKind::copy_in_flight,
     Other::line_1,
     "is written while a copy"},
};

}  // namespace
}  // namespace kvcheck::kernels::device

namespace kvcheck::kernels::simt {

std::span<const WrongKernel> wrong_kernels() { return device::kKernels; }

}  // namespace kvcheck::kernels::simt
