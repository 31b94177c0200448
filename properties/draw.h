// Draws from RapidCheck's splittable random source.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <rapidcheck/Random.h>

namespace kvcheck::properties {

/// A stream of choices; the order of calls is part of what a seed means.
class Draw {
 public:
  explicit Draw(const rc::Random& random) : random_(random) {}

  std::uint64_t bits() { return random_.next(); }

  /// Uniform in [low, high]. \pre low <= high
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(bits() % span);
  }

  bool percent(int chance) { return between(0, 99) < chance; }

  template <class T>
  const T& pick(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }

  std::int64_t pick(std::initializer_list<std::int64_t> choices) {
    return *(choices.begin() + between(0, static_cast<std::int64_t>(choices.size()) - 1));
  }

 private:
  rc::Random random_;
};

}  // namespace kvcheck::properties
