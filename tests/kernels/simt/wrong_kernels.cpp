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

constexpr float kConstants[64] = {};

KV_KERNEL void constant_overwritten(Buffers p) {
  float* volatile hidden = const_cast<float*>(kConstants);  // A compiler may drop the store.
  float* const constants = hidden;
  next_line_is(0);
  constants[thread_index()] = p.input[0];
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
    {{"constant_overwritten", run<&constant_overwritten>},
     DefectKind::input_written,
     Other::none,
     "read-only data of the program"},
    {{"copy_without_wait", run<&copy_without_wait>},
     DefectKind::copy_in_flight,
     Other::line_1,
     "under way"},
    {{"waits_for_one_too_few", run<&waits_for_one_too_few>},
     DefectKind::copy_in_flight,
     Other::line_1,
     "under way"},
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
