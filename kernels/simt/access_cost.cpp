// Banks of shared memory, and sectors of global memory.
#include "kernels/simt/access_cost.h"

#include <algorithm>
#include <bit>

namespace kvcheck::kernels::simt {
namespace {

constexpr int kLanes = 32;
constexpr std::uint64_t kBankBytes = 4, kSectorBytes = 32;
constexpr std::size_t kBanks = 32;

/// Of the lanes [first, end).
std::int64_t wavefronts(const WarpAccess& access, int first, int end) {
  std::array<std::array<std::uint64_t, kLanes>, kBanks> words;
  std::array<std::uint8_t, kBanks> count{};
  std::uint8_t most = 0;
  for (int i = first; i < end; ++i) {
    if ((access.lanes >> i & 1) == 0) continue;
    const auto lane = static_cast<std::size_t>(i);
    const std::uint64_t last = (access.address[lane] + access.bytes[lane] - 1) / kBankBytes;
    for (std::uint64_t word = access.address[lane] / kBankBytes; word <= last; ++word) {
      const std::size_t bank = word % kBanks;
      const auto begin = words[bank].begin();
      if (std::find(begin, begin + count[bank], word) != begin + count[bank]) continue;
      if (count[bank] == kLanes) continue;
      words[bank][count[bank]++] = word;
      most = std::max(most, count[bank]);
    }
  }
  return most;
}

}  // namespace

std::int64_t bank_conflicts(const WarpAccess& access) {
  if (access.lanes == 0) return 0;
  const int widest = access.bytes[static_cast<std::size_t>(std::countr_zero(access.lanes))];
  const int together = widest > 8 ? 8 : widest > 4 ? 16 : 32;
  std::int64_t conflicts = 0;
  for (int first = 0; first < kLanes; first += together) {
    conflicts += std::max<std::int64_t>(0, wavefronts(access, first, first + together) - 1);
  }
  return conflicts;
}

Transfer transfer(const WarpAccess& access) {
  std::array<std::uint8_t, kLanes> order;
  int count = 0;
  // Nearly always in order already.
  for (std::uint8_t lane = 0; lane < kLanes; ++lane) {
    if ((access.lanes >> lane & 1) == 0) continue;
    int at = count++;
    for (; at > 0 && access.address[order[at - 1]] > access.address[lane]; --at) {
      order[at] = order[at - 1];
    }
    order[at] = lane;
  }
  Transfer result;
  std::uint64_t bytes_end = 0, sectors_end = 0;  // Behind what is counted.
  for (int i = 0; i < count; ++i) {
    const std::uint64_t begin = access.address[order[i]], end = begin + access.bytes[order[i]];
    if (end > bytes_end) {
      result.bytes += static_cast<std::int64_t>(end - std::max(begin, bytes_end));
      bytes_end = end;
    }
    const std::uint64_t behind = (end - 1) / kSectorBytes + 1;
    if (behind > sectors_end) {
      result.sectors +=
          static_cast<std::int64_t>(behind - std::max(begin / kSectorBytes, sectors_end));
      sectors_end = behind;
    }
  }
  return result;
}

}  // namespace kvcheck::kernels::simt
