// The instructions and calls of a launch that touched memory, numbered as they first did so.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/simt/shadow.h"
#include "kernels/simt/site.h"

namespace kvcheck::kernels::simt {

struct Region;

/// What the counters tell apart.
enum class Traffic : std::uint8_t { shared, global_load, global_store };

/// One number for each instruction and kind of traffic: a copy has two.
class Sites {
 public:
  struct Entry {
    std::uintptr_t code = 0;
    Site site;
    Region* region = nullptr;  ///< Where it touched global memory last.
  };

  std::uint32_t number(std::uintptr_t code, Site site, Traffic traffic) {
    const std::uint64_t key = key_of(code, site) << 2 | static_cast<std::uint64_t>(traffic);
    std::size_t slot = (key * 0x9e3779b97f4a7c15u) >> shift_;
    while (keys_[slot] != key) {
      if (keys_[slot] == 0) return add(key, code, site);
      slot = (slot + 1) & (keys_.size() - 1);
    }
    return numbers_[slot];
  }
  Entry& operator[](std::uint32_t number) { return entries_[number]; }

 private:
  static std::uint64_t key_of(std::uintptr_t code, Site site) {
    if (code != 0) return code;
    return reinterpret_cast<std::uintptr_t>(site.file_name()) * 31 +
           static_cast<std::uint64_t>(site.line()) + 1;
  }
  std::uint32_t add(std::uint64_t key, std::uintptr_t code, Site site);
  void insert(std::uint64_t key, std::uint32_t number);

  int shift_ = 64 - 10;
  std::vector<std::uint64_t> keys_ = std::vector<std::uint64_t>(1024);  // 0 = free.
  std::vector<std::uint32_t> numbers_ = std::vector<std::uint32_t>(1024);
  std::vector<Entry> entries_ = std::vector<Entry>(1);  // Number 0 stands for those too many.
};

}  // namespace kvcheck::kernels::simt
