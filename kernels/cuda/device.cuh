// The vocabulary that kernel bodies are written in; the one place where the two worlds part.
//
// On a GPU it is a thin layer over CUDA and PTX (device_gpu.cuh). On a CPU it is the SIMT runtime
// (kernels/simt/device.h), which executes the same bodies on fibers and checks what they do. Both
// give, in namespace device:
//
//   thread_index() block_index() block_threads() grid_size() lane_index() warp_index()
//   sync_block()                        every thread of the block, the same call
//   sync_warp(mask)                     every lane of the mask
//   shuffle(mask, v, lane) shuffle_xor(mask, v, bits) shuffle_down(mask, v, by) shuffle_up
//   ballot(mask, p) any_of(mask, p) all_of(mask, p) match_any(mask, v)
//   load_packet(p) load_packet_once(p) store_packet(p, v)     16 bytes, aligned; once = streaming
//   copy_async(shared, global, bytes)   16 bytes aligned; bytes 0..16 are read, the rest is zero
//   commit_copies() wait_copies<N>()    at most N groups of this thread stay under way
//   atomic_add(p, v) atomic_max(p, v) fence_device()
//   load_matrix_x4(r, row) load_matrix_x4_transposed(r, row) and _x2       ldmatrix, 8x8 of 16 bits
//   multiply_add<E>(d, a, b)            d[4] += a[4] b[2]: mma.m16n8k16, E = F16 or BF16, f32 sums
//   to_float(e) from_float<E>(x) pack<E>(low, high) unpack<E>(word)        nearest, ties to even
//   exp2_approx(x) tanh_of(x) fused(a, b, c) larger(a, b) smaller(a, b)
//
// KV_KERNEL begins a kernel, KV_DEVICE a function that kernels call, KV_SHARED_BYTES(name) names
// the dynamic shared memory (16-byte aligned), KV_LAUNCH_BOUNDS(threads, blocks) limits registers,
// KV_UNROLL stands before a loop whose indices have to be constants, so that arrays are registers.
// launch(queue, kernel, shape, parameters) starts a kernel of one parameter structure.
//
// Kernels and their functions lie in an anonymous namespace: one program holds both worlds' copies.
#pragma once

#include "kernels/cuda/element.h"

#if defined(__CUDACC__)
#include "kernels/cuda/device_gpu.cuh"
#else
#include "kernels/simt/device.h"
#endif
