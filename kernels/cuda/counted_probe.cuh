// The probes, in either world. Every one begins with a load and ends with a store of a word, and a
// barrier stands between a store to shared memory and a load of it: no compiler can leave one out.
#pragma once

#include "kernels/cuda/counted_probe.h"
#include "kernels/cuda/device.cuh"

namespace kvcheck::kernels::device {
namespace {

constexpr unsigned kProbeWords = kProbeStride / 4;

KV_DEVICE void finish_probe(const ProbeParameters& p, unsigned sum) {
  p.to[block_index().x * kProbeThreads + thread_index()] = sum;
}

/// 8 lanes of a warp meet in a bank: 7 conflicts for each load and each store.
KV_KERNEL void KV_LAUNCH_BOUNDS(kProbeThreads, 1) probe_words_kernel(ProbeParameters p) {
  KV_SHARED_BYTES(shared);
  unsigned* const words = reinterpret_cast<unsigned*>(shared);
  unsigned sum = p.from[thread_index()];
  for (int round = 0; round < kProbeRounds; ++round) {
    words[thread_index() * kProbeWords] = sum;
    sync_block();
    sum += words[(thread_index() ^ 1u) * kProbeWords];
    sync_block();
  }
  finish_probe(p, sum);
}

/// Of each 8 lanes 2 meet in a bank: 4 conflicts for each load and each store.
KV_KERNEL void KV_LAUNCH_BOUNDS(kProbeThreads, 1) probe_packets_kernel(ProbeParameters p) {
  KV_SHARED_BYTES(shared);
  const unsigned start = p.from[thread_index()];
  Packet packet{{start, start, start, start}};
  for (int round = 0; round < kProbeRounds; ++round) {
    store_packet(shared + thread_index() * kProbeStride, packet);
    sync_block();
    const Packet other = load_packet(shared + (thread_index() ^ 1u) * kProbeStride);
    KV_UNROLL
    for (int i = 0; i < 4; ++i) packet.word[i] += other.word[i];
    sync_block();
  }
  finish_probe(p, packet.word[0] + packet.word[1] + packet.word[2] + packet.word[3]);
}

/// The same for each copy; the words that were copied are read without a conflict.
KV_KERNEL void KV_LAUNCH_BOUNDS(kProbeThreads, 1) probe_copies_kernel(ProbeParameters p) {
  KV_SHARED_BYTES(shared);
  const unsigned* const words = reinterpret_cast<const unsigned*>(shared);
  const unsigned* const source = p.from + 4 * thread_index();
  unsigned sum = p.from[thread_index()];
  for (int round = 0; round < kProbeRounds; ++round) {
    copy_async(shared + thread_index() * kProbeStride, source, 16);
    copy_async(shared + thread_index() * kProbeStride + 16, source, 16);
    commit_copies();
    wait_copies<0>();
    sync_block();
    sum += words[thread_index()];
    sync_block();
  }
  finish_probe(p, sum);
}

/// The same for each ldmatrix of 4 matrices; what they read is written without a conflict.
KV_KERNEL void KV_LAUNCH_BOUNDS(kProbeThreads, 1) probe_matrices_kernel(ProbeParameters p) {
  KV_SHARED_BYTES(shared);
  unsigned* const words = reinterpret_cast<unsigned*>(shared);
  unsigned sum = p.from[thread_index()];
  for (int round = 0; round < kProbeRounds; ++round) {
    for (unsigned i = 0; i < kProbeWords; ++i) words[i * kProbeThreads + thread_index()] = sum + i;
    sync_block();
    unsigned rows[4];
    load_matrix_x4(rows, shared + thread_index() * kProbeStride);
    sum += rows[0] + rows[1] + rows[2] + rows[3];
    sync_block();
  }
  finish_probe(p, sum);
}

void launch_probe(Queue& queue, Probe probe, const ProbeParameters& p) {
  const LaunchShape shape{{kProbeBlocks, 1, 1}, kProbeThreads, kProbeThreads * kProbeStride};
  switch (probe) {
    case Probe::words:
      return launch(queue, probe_words_kernel, shape, p);
    case Probe::packets:
      return launch(queue, probe_packets_kernel, shape, p);
    case Probe::copies:
      return launch(queue, probe_copies_kernel, shape, p);
    case Probe::matrices:
      return launch(queue, probe_matrices_kernel, shape, p);
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device
