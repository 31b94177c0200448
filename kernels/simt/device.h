// The vocabulary of kernels/cuda/device.cuh on a CPU. Included by kernel bodies that are compiled
// with instrumentation; everything that needs the runtime's state is out of line, in device.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "kernels/cuda/element.h"
#include "kernels/simt/launch.h"

#define KV_KERNEL
#define KV_DEVICE inline
#define KV_LAUNCH_BOUNDS(threads, blocks)
#define KV_UNROLL
#define KV_SHARED_BYTES(name) unsigned char* const name = ::kvcheck::kernels::device::shared_bytes()

namespace kvcheck::kernels::device {

using Site = std::source_location;

// ---- Where a thread is -------------------------------------------------------------------------

unsigned thread_index();
Index3 block_index();
unsigned block_threads();
Index3 grid_size();
unsigned lane_index();
unsigned warp_index();
unsigned char* shared_bytes();

// ---- Barriers and warp collectives -------------------------------------------------------------

void sync_block(Site site = Site::current());
void sync_warp(unsigned mask = kAllLanes, Site site = Site::current());

enum class Exchange { from_lane, with_xor, from_above, from_below };
std::uint32_t exchange_bits(Exchange how, unsigned mask, std::uint32_t bits, unsigned argument,
                            Site site);

template <class T>
T exchange(Exchange how, unsigned mask, T value, unsigned argument, Site site) {
  static_assert(sizeof(T) == 4 && std::is_trivially_copyable_v<T>);
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = exchange_bits(how, mask, bits, argument, site);
  std::memcpy(&value, &bits, 4);
  return value;
}
template <class T>
T shuffle(unsigned mask, T value, unsigned lane, Site site = Site::current()) {
  return exchange(Exchange::from_lane, mask, value, lane, site);
}
template <class T>
T shuffle_xor(unsigned mask, T value, unsigned bits, Site site = Site::current()) {
  return exchange(Exchange::with_xor, mask, value, bits, site);
}
template <class T>
T shuffle_down(unsigned mask, T value, unsigned by, Site site = Site::current()) {
  return exchange(Exchange::from_above, mask, value, by, site);
}
template <class T>
T shuffle_up(unsigned mask, T value, unsigned by, Site site = Site::current()) {
  return exchange(Exchange::from_below, mask, value, by, site);
}
unsigned ballot(unsigned mask, bool predicate, Site site = Site::current());
bool any_of(unsigned mask, bool predicate, Site site = Site::current());
bool all_of(unsigned mask, bool predicate, Site site = Site::current());
unsigned match_any(unsigned mask, unsigned value, Site site = Site::current());

// ---- Memory ------------------------------------------------------------------------------------

Packet load_packet(const void* from, Site site = Site::current());
Packet load_packet_once(const void* from, Site site = Site::current());
void store_packet(void* to, const Packet& packet, Site site = Site::current());
void copy_async(void* shared, const void* global, int bytes, Site site = Site::current());
void commit_copies();
void wait_copies_until(int pending);
template <int kPending>
void wait_copies() {
  wait_copies_until(kPending);
}
unsigned atomic_add(unsigned* at, unsigned value, Site site = Site::current());
float atomic_add(float* at, float value, Site site = Site::current());
int atomic_max(int* at, int value, Site site = Site::current());
void fence_device();

// ---- Matrices ----------------------------------------------------------------------------------

void load_matrices(unsigned* out, int count, bool transposed, const void* row, Site site);
inline void load_matrix_x4(unsigned (&r)[4], const void* row, Site site = Site::current()) {
  load_matrices(r, 4, false, row, site);
}
inline void load_matrix_x4_transposed(unsigned (&r)[4], const void* row,
                                      Site site = Site::current()) {
  load_matrices(r, 4, true, row, site);
}
inline void load_matrix_x2(unsigned (&r)[2], const void* row, Site site = Site::current()) {
  load_matrices(r, 2, false, row, site);
}
inline void load_matrix_x2_transposed(unsigned (&r)[2], const void* row,
                                      Site site = Site::current()) {
  load_matrices(r, 2, true, row, site);
}

void multiply_add_f16(float* d, const unsigned* a, const unsigned* b, Site site);
void multiply_add_bf16(float* d, const unsigned* a, const unsigned* b, Site site);
template <class E>
void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                  Site site = Site::current()) {
  if constexpr (std::is_same_v<E, F16>) {
    multiply_add_f16(d, a, b, site);
  } else {
    multiply_add_bf16(d, a, b, site);
  }
}

// ---- Numbers -----------------------------------------------------------------------------------

inline float to_float(float x) { return x; }
float to_float(F16 x);
float to_float(BF16 x);
F16 f16_from(float x);
BF16 bf16_from(float x);

template <class E>
E from_float(float x) {
  if constexpr (std::is_same_v<E, F16>) {
    return f16_from(x);
  } else if constexpr (std::is_same_v<E, BF16>) {
    return bf16_from(x);
  } else {
    return x;
  }
}
template <class E>
unsigned pack(float low, float high) {
  const unsigned first = from_float<E>(low).bits;
  return first | static_cast<unsigned>(from_float<E>(high).bits) << 16;
}
template <class E>
Pair unpack(unsigned word) {
  return {to_float(E{static_cast<std::uint16_t>(word)}),
          to_float(E{static_cast<std::uint16_t>(word >> 16)})};
}

/// What the GPU's approximation promises at least: correct to 2 units of the last place; results
/// below the least normal number are 0.
float exp2_approx(float x);
float tanh_of(float x);
float fused(float a, float b, float c);
float larger(float a, float b);
float smaller(float a, float b);

// ---- Launches ----------------------------------------------------------------------------------

// Static: the same name stands for another function in the translation units of the other world.
template <class Parameters>
static void launch(Queue& queue, void (*kernel)(Parameters), const LaunchShape& shape,
                   const Parameters& parameters) {
  struct Call {
    void (*kernel)(Parameters);
    Parameters parameters;
    // The parameters are the launch's own, not memory of the device.
    __attribute__((no_sanitize("thread"))) static void run(const void* call) {
      const Call* self = static_cast<const Call*>(call);
      self->kernel(self->parameters);
    }
  };
  const Call call{kernel, parameters};
  static_cast<simt::SimtQueue&>(queue).run(&Call::run, shape, &call);
}

}  // namespace kvcheck::kernels::device
