// The vocabulary of kernels/cuda/device.cuh on a GPU (sm_80 and newer).
#pragma once

#include <cstddef>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"
#include "kernels/cuda/gpu_queue.h"

#define KV_KERNEL __global__
#define KV_DEVICE __device__ __forceinline__
#define KV_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define KV_UNROLL _Pragma("unroll")
#define KV_SHARED_BYTES(name) extern __shared__ __align__(16) unsigned char name[]

namespace kvcheck::kernels::device {

// ---- Where a thread is -------------------------------------------------------------------------

KV_DEVICE unsigned thread_index() { return threadIdx.x; }
KV_DEVICE Index3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
KV_DEVICE unsigned block_threads() { return blockDim.x; }
KV_DEVICE Index3 grid_size() { return {gridDim.x, gridDim.y, gridDim.z}; }
KV_DEVICE unsigned lane_index() { return threadIdx.x % 32; }
KV_DEVICE unsigned warp_index() { return threadIdx.x / 32; }

// ---- Barriers and warp collectives -------------------------------------------------------------

KV_DEVICE void sync_block() { __syncthreads(); }
KV_DEVICE void sync_warp(unsigned mask = kAllLanes) { __syncwarp(mask); }
template <class T>
KV_DEVICE T shuffle(unsigned mask, T value, unsigned lane) {
  return __shfl_sync(mask, value, static_cast<int>(lane));
}
template <class T>
KV_DEVICE T shuffle_xor(unsigned mask, T value, unsigned bits) {
  return __shfl_xor_sync(mask, value, static_cast<int>(bits));
}
template <class T>
KV_DEVICE T shuffle_down(unsigned mask, T value, unsigned by) {
  return __shfl_down_sync(mask, value, by);
}
template <class T>
KV_DEVICE T shuffle_up(unsigned mask, T value, unsigned by) {
  return __shfl_up_sync(mask, value, by);
}
KV_DEVICE unsigned ballot(unsigned mask, bool predicate) { return __ballot_sync(mask, predicate); }
KV_DEVICE bool any_of(unsigned mask, bool predicate) { return __any_sync(mask, predicate) != 0; }
KV_DEVICE bool all_of(unsigned mask, bool predicate) { return __all_sync(mask, predicate) != 0; }
KV_DEVICE unsigned match_any(unsigned mask, unsigned value) {
  return __match_any_sync(mask, value);
}

// ---- Memory ------------------------------------------------------------------------------------

KV_DEVICE Packet load_packet(const void* from) {
  const uint4 v = *static_cast<const uint4*>(from);
  return {{v.x, v.y, v.z, v.w}};
}
/// Global memory that is read once: past the L1 cache.
KV_DEVICE Packet load_packet_once(const void* from) {
  const uint4 v = __ldcs(static_cast<const uint4*>(from));
  return {{v.x, v.y, v.z, v.w}};
}
KV_DEVICE void store_packet(void* to, const Packet& packet) {
  *static_cast<uint4*>(to) =
      make_uint4(packet.word[0], packet.word[1], packet.word[2], packet.word[3]);
}
KV_DEVICE unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
KV_DEVICE void copy_async(void* shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
}
KV_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
KV_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
KV_DEVICE unsigned atomic_add(unsigned* at, unsigned value) { return atomicAdd(at, value); }
KV_DEVICE float atomic_add(float* at, float value) { return atomicAdd(at, value); }
KV_DEVICE int atomic_max(int* at, int value) { return atomicMax(at, value); }
KV_DEVICE void fence_device() { __threadfence(); }

// ---- Matrices ----------------------------------------------------------------------------------

KV_DEVICE void load_matrix_x4(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
KV_DEVICE void load_matrix_x4_transposed(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
KV_DEVICE void load_matrix_x2(unsigned (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
KV_DEVICE void load_matrix_x2_transposed(unsigned (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

template <class E>
KV_DEVICE void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]);
template <>
KV_DEVICE void multiply_add<F16>(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
KV_DEVICE void multiply_add<BF16>(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// ---- Numbers -----------------------------------------------------------------------------------

KV_DEVICE float to_float(float x) { return x; }
KV_DEVICE float to_float(F16 x) { return __half2float(__ushort_as_half(x.bits)); }
KV_DEVICE float to_float(BF16 x) { return __bfloat162float(__ushort_as_bfloat16(x.bits)); }

template <class E>
KV_DEVICE E from_float(float x);
template <>
KV_DEVICE float from_float<float>(float x) {
  return x;
}
template <>
KV_DEVICE F16 from_float<F16>(float x) {
  return {__half_as_ushort(__float2half_rn(x))};
}
template <>
KV_DEVICE BF16 from_float<BF16>(float x) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}

template <class E>
KV_DEVICE unsigned pack(float low, float high) {
  const unsigned first = from_float<E>(low).bits;
  return first | static_cast<unsigned>(from_float<E>(high).bits) << 16;
}
template <class E>
KV_DEVICE Pair unpack(unsigned word) {
  return {to_float(E{static_cast<std::uint16_t>(word)}),
          to_float(E{static_cast<std::uint16_t>(word >> 16)})};
}

/// ex2.approx.ftz: 2 units of the last place; results below the least normal number are 0.
KV_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
KV_DEVICE float tanh_of(float x) { return tanhf(x); }
KV_DEVICE float fused(float a, float b, float c) { return fmaf(a, b, c); }
KV_DEVICE float larger(float a, float b) { return fmaxf(a, b); }
KV_DEVICE float smaller(float a, float b) { return fminf(a, b); }

// ---- Launches ----------------------------------------------------------------------------------

// Static: the same name stands for another function in the translation units of the other world.
template <class Parameters>
static void launch(Queue& to, void (*kernel)(Parameters), const LaunchShape& shape,
                   const Parameters& parameters) {
  GpuQueue& queue = static_cast<GpuQueue&>(to);
  constexpr std::uint32_t kAlwaysAllowed = 48 * 1024;
  if (shape.shared_bytes > kAlwaysAllowed) {
    queue.note(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shape.shared_bytes)));
  }
  kernel<<<dim3(shape.grid.x, shape.grid.y, shape.grid.z), shape.threads, shape.shared_bytes,
           queue.stream()>>>(parameters);
  queue.note(cudaGetLastError());
}

}  // namespace kvcheck::kernels::device
