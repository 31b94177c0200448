#include "kernels/simt/sites.h"

#include <utility>

namespace kvcheck::kernels::simt {

std::uint32_t Sites::add(std::uint64_t key, std::uintptr_t code, Site site) {
  if (entries_.size() == Cell::kMostSites) return 0;
  if (entries_.size() * 2 > keys_.size()) {
    const std::vector<std::uint64_t> keys =
        std::exchange(keys_, std::vector<std::uint64_t>(keys_.size() * 2));
    const std::vector<std::uint32_t> numbers =
        std::exchange(numbers_, std::vector<std::uint32_t>(keys_.size()));
    --shift_;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] != 0) insert(keys[i], numbers[i]);
    }
  }
  const auto number = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({code, site, nullptr});
  insert(key, number);
  return number;
}

void Sites::insert(std::uint64_t key, std::uint32_t number) {
  std::size_t slot = (key * 0x9e3779b97f4a7c15u) >> shift_;
  while (keys_[slot] != 0) slot = (slot + 1) & (keys_.size() - 1);
  keys_[slot] = key;
  numbers_[slot] = number;
}

}  // namespace kvcheck::kernels::simt
