// The loops: registers alone, and loads alone.
#include "kernels/bench/canary.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <vector>

#include <sys/mman.h>

#include "kernels/bench/statistics.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvcheck::kernels::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kIterations = 20000;
constexpr std::size_t kPage = std::size_t{2} << 20;
constexpr std::size_t kBlock = 256;  // Bytes that one iteration of a reading loop takes.

/// Keeps a value alive without a store that would be timed.
template <class T>
void keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

double nanoseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

struct Loops {
  double (*fma)();  // Floating-point operations of one burst.
  void (*read)(const std::byte* from, std::size_t bytes);
};

double plain_fma() {
  constexpr int kSums = 16;
  float sums[kSums] = {};
  keep(sums);
  for (std::int64_t i = 0; i < kIterations; ++i) {
    for (float& sum : sums) sum = sum * 0.5f + 1.0f;
  }
  keep(sums);
  return 2.0 * kSums * static_cast<double>(kIterations);
}

void plain_read(const std::byte* from, std::size_t bytes) {
  std::uint64_t sum = 0, word = 0;
  for (std::size_t at = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {
    std::memcpy(&word, from + at, sizeof(word));
    sum ^= word;
  }
  keep(sum);
}

#if defined(__x86_64__)
// Ten chains: two FMA units with a latency of four or five cycles want at least that many. The
// compiler must not know that they begin alike, or it makes one of them.
#define KVCHECK_TEN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)

__attribute__((target("avx2,fma"))) double avx2_fma() {
  const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1.0f);
#define KVCHECK_DECLARE(n) \
  __m256 sum##n = one;     \
  asm volatile("" : "+x"(sum##n));
#define KVCHECK_STEP(n) sum##n = _mm256_fmadd_ps(sum##n, half, one);
#define KVCHECK_KEEP(n) keep(sum##n);
  KVCHECK_TEN(KVCHECK_DECLARE)
  for (std::int64_t i = 0; i < kIterations; ++i) {
    KVCHECK_TEN(KVCHECK_STEP)
  }
  KVCHECK_TEN(KVCHECK_KEEP)
#undef KVCHECK_DECLARE
#undef KVCHECK_STEP
  return 2.0 * 8 * 10 * static_cast<double>(kIterations);
}

__attribute__((target("avx512f"))) double avx512_fma() {
  const __m512 half = _mm512_set1_ps(0.5f), one = _mm512_set1_ps(1.0f);
#define KVCHECK_DECLARE(n) \
  __m512 sum##n = one;     \
  asm volatile("" : "+v"(sum##n));
#define KVCHECK_STEP(n) sum##n = _mm512_fmadd_ps(sum##n, half, one);
  KVCHECK_TEN(KVCHECK_DECLARE)
  for (std::int64_t i = 0; i < kIterations; ++i) {
    KVCHECK_TEN(KVCHECK_STEP)
  }
  KVCHECK_TEN(KVCHECK_KEEP)
#undef KVCHECK_DECLARE
#undef KVCHECK_STEP
#undef KVCHECK_KEEP
#undef KVCHECK_TEN
  return 2.0 * 16 * 10 * static_cast<double>(kIterations);
}

__attribute__((target("avx2"))) void avx2_read(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kWay = 32;
  __m256i sums[4] = {};
  for (std::size_t at = 0; at + kBlock <= bytes; at += kBlock) {
    const auto* block = reinterpret_cast<const __m256i*>(from + at);
    // Without it the sums lie in memory, and their latency is what is measured.
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kBlock / kWay; ++i) {
      sums[i % 4] = _mm256_xor_si256(sums[i % 4], _mm256_load_si256(block + i));
    }
  }
  keep(sums);
}

__attribute__((target("avx512f"))) void avx512_read(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kWay = 64;
  __m512i sums[4] = {};
  for (std::size_t at = 0; at + kBlock <= bytes; at += kBlock) {
    const auto* block = reinterpret_cast<const __m512i*>(from + at);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kBlock / kWay; ++i) {
      sums[i] = _mm512_xor_si512(sums[i], _mm512_load_si512(block + i));
    }
  }
  keep(sums);
}
#endif

Loops widest_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {avx512_fma, avx512_read};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {avx2_fma, avx2_read};
#endif
  return {plain_fma, plain_read};
}

const Loops& loops() {
  static const Loops chosen = widest_loops();
  return chosen;
}

}  // namespace

double fma_rate(double seconds) {
  const auto begin = Clock::now();
  double best = 0;
  do {
    const auto burst = Clock::now();
    const double operations = loops().fma();
    best = std::max(best, operations / nanoseconds_since(burst));
  } while (nanoseconds_since(begin) < seconds * 1e9);
  return best;
}

ReadCanary::ReadCanary(std::size_t bytes) : bytes_(std::max(bytes, kBlock)) {
  bytes_ = (bytes_ + kBlock - 1) / kBlock * kBlock;
  const std::size_t whole = (bytes_ + kPage - 1) / kPage * kPage;
  memory_ = std::aligned_alloc(kPage, whole);
  if (!memory_) throw std::bad_alloc();
  madvise(memory_, whole, MADV_HUGEPAGE);  // A wish: without it the pages are small.
  std::memset(memory_, 1, whole);          // Else every page would be the one page of zeros.
}

ReadCanary::~ReadCanary() { std::free(memory_); }

double ReadCanary::rate(double seconds) {
  constexpr std::size_t kFewest = 3, kMost = 100000;
  // Passes over a small buffer are put together, since reading the clock takes time too.
  constexpr std::size_t kAtLeast = std::size_t{1} << 20;
  const std::size_t passes = std::max<std::size_t>(1, kAtLeast / bytes_);
  const auto begin = Clock::now();
  std::vector<double> rates;
  while (rates.size() < kFewest ||
         (nanoseconds_since(begin) < seconds * 1e9 && rates.size() < kMost)) {
    const auto burst = Clock::now();
    for (std::size_t i = 0; i < passes; ++i) {
      loops().read(static_cast<const std::byte*>(memory_), bytes_);
    }
    rates.push_back(static_cast<double>(bytes_ * passes) / nanoseconds_since(burst));
  }
  return quartiles(std::move(rates)).median;
}

}  // namespace kvcheck::kernels::bench
