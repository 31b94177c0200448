// The vocabulary of kernels/cuda/device.cuh on a CPU. Included by kernel bodies that are compiled
// with instrumentation; everything that needs the runtime's state is out of line, in device.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/site.h"

#define KV_KERNEL
#define KV_DEVICE inline
#define KV_LAUNCH_BOUNDS(threads, blocks)
#define KV_UNROLL
#define KV_SHARED_BYTES(name) unsigned char* const name = ::kvcheck::kernels::device::shared_bytes()

namespace kvcheck::kernels::device {

using Site = simt::Site;

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

// By value, so that the fragments of a kernel stay in registers, where no access is watched.
struct Sums {
  float value[4];
};
struct Words {
  std::uint32_t word[4];
};

enum class MatrixLoad { x2, x4, x2_transposed, x4_transposed };
Words load_matrices(MatrixLoad how, const void* row, Site site);
inline void load_matrix_x4(unsigned (&r)[4], const void* row, Site site = Site::current()) {
  const Words words = load_matrices(MatrixLoad::x4, row, site);
  for (int i = 0; i < 4; ++i) r[i] = words.word[i];
}
inline void load_matrix_x4_transposed(unsigned (&r)[4], const void* row,
                                      Site site = Site::current()) {
  const Words words = load_matrices(MatrixLoad::x4_transposed, row, site);
  for (int i = 0; i < 4; ++i) r[i] = words.word[i];
}
inline void load_matrix_x2(unsigned (&r)[2], const void* row, Site site = Site::current()) {
  const Words words = load_matrices(MatrixLoad::x2, row, site);
  for (int i = 0; i < 2; ++i) r[i] = words.word[i];
}
inline void load_matrix_x2_transposed(unsigned (&r)[2], const void* row,
                                      Site site = Site::current()) {
  const Words words = load_matrices(MatrixLoad::x2_transposed, row, site);
  for (int i = 0; i < 2; ++i) r[i] = words.word[i];
}

/// `b` in the first two words. Products and sums as kernels/simt/matrix.h states them.
Sums multiply_add_f16(Sums d, Words a, Words b, Site site);
Sums multiply_add_bf16(Sums d, Words a, Words b, Site site);
template <class E>
void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                  Site site = Site::current()) {
  const Sums before{{d[0], d[1], d[2], d[3]}};
  const Words left{{a[0], a[1], a[2], a[3]}};
  const Words right{{b[0], b[1], 0, 0}};
  Sums after;
  if constexpr (std::is_same_v<E, F16>) {
    after = multiply_add_f16(before, left, right, site);
  } else {
    static_assert(std::is_same_v<E, BF16>);
    after = multiply_add_bf16(before, left, right, site);
  }
  for (int i = 0; i < 4; ++i) d[i] = after.value[i];
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

/// The power rounded correctly, which is within the 2 units of the last place that the GPU's
/// approximation promises; as there, results below the least normal number are 0.
float exp2_approx(float x);
float tanh_of(float x);  ///< Rounded correctly.
float fused(float a, float b, float c);
float larger(float a, float b);  ///< The number where one is none; +0 is above -0.
float smaller(float a, float b);

// ---- Launches ----------------------------------------------------------------------------------

/// Runs body(parameters), which calls `kernel`, as every thread. \pre the queue is a
/// simt::SimtQueue
void run_kernel(Queue& queue, void (*body)(const void*), const LaunchShape& shape,
                const void* parameters, const void* kernel);

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
  run_kernel(queue, &Call::run, shape, &call, reinterpret_cast<const void*>(kernel));
}

}  // namespace kvcheck::kernels::device
