// Counter-based random numbers: a hash of what an element is, in place of a stream.
#pragma once

#include <cstdint>

namespace kvcheck::model {

/// Mixes all 64 bits of `x`; a bijection. Constants of the SplitMix64 finalizer (Steele, Lea,
/// Flood: Fast splittable pseudorandom number generators, 2014).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

/// The hash of a longer sequence, whose beginning has `hash`.
template <class... Coordinates>
constexpr std::uint64_t continue_hash(std::uint64_t hash, Coordinates... coordinates) {
  ((hash = mix64((hash ^ static_cast<std::uint64_t>(coordinates)) + kGolden)), ...);
  return hash;
}

/// Hash of a sequence of coordinates under `seed`. Order counts; negative coordinates are allowed.
template <class... Coordinates>
constexpr std::uint64_t counter_hash(std::uint64_t seed, Coordinates... coordinates) {
  return continue_hash(mix64(seed + kGolden), coordinates...);
}

/// Element `index` of the numbers that belong to `hash`: SplitMix64 started there.
constexpr std::uint64_t nth_of(std::uint64_t hash, std::int64_t index) {
  return mix64(hash + (static_cast<std::uint64_t>(index) + 1) * kGolden);
}

/// About standard normal, in [-3.47, 3.47]: the sum of four 16-bit uniforms, scaled to variance 1.
constexpr double roughly_normal(std::uint64_t hash) {
  constexpr double kRootThree = 1.7320508075688772;
  // 32 bits, which every processor turns into doubles side by side.
  const auto sum = static_cast<std::int32_t>((hash & 0xffff) + ((hash >> 16) & 0xffff) +
                                             ((hash >> 32) & 0xffff) + (hash >> 48));
  return static_cast<double>(sum - 2 * 0xffff) / 65536.0 * kRootThree;
}

}  // namespace kvcheck::model
