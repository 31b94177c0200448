// Kernels that compute nothing and whose bank conflicts are known: those of attention have none,
// and that two counters agree on none says little of either.
#pragma once

#include "kernels/cuda/queue.h"

namespace kvcheck::kernels::device {

/// How a probe comes to shared memory: by loads and stores of 4 bytes, of 16 bytes, by cp.async, by
/// ldmatrix.
enum class Probe { words, packets, copies, matrices };

inline constexpr unsigned kProbeThreads = 128, kProbeBlocks = 2;
inline constexpr int kProbeRounds = 16;
/// Bytes from one lane's place in shared memory to the next one's.
inline constexpr int kProbeStride = 32;

struct ProbeParameters {
  const unsigned* from;  ///< [kProbeThreads, 4], aligned to 16 bytes.
  unsigned* to;          ///< [kProbeBlocks, kProbeThreads]
};

using ProbeLaunch = void (*)(Queue&, Probe, const ProbeParameters&);

/// Not in builds without the SIMT runtime.
void simt_probe(Queue& queue, Probe probe, const ProbeParameters& p);
/// Only where gpu_kernels() are there.
void gpu_probe(Queue& queue, Probe probe, const ProbeParameters& p);

}  // namespace kvcheck::kernels::device
