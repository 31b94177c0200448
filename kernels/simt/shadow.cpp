// Order between accesses, and what of them is kept.
#include "kernels/simt/shadow.h"

#include <algorithm>

namespace kvcheck::kernels::simt {

Ordering::Ordering(std::uint32_t now, int warps)
    : now_(now + 1),
      launch_begin_(now),
      block_begin_(now),
      last_barrier_(now),
      warps_(static_cast<std::size_t>(warps)) {}

void Ordering::begin_block(std::int64_t block) {
  block_begin_ = last_barrier_ = now_++;
  blocks_.push_back({block_begin_, block});
}

void Ordering::block_barrier() { last_barrier_ = now_++; }

void Ordering::warp_barrier(int warp, std::uint32_t lanes) {
  Warp& of = warps_[static_cast<std::size_t>(warp)];
  if (lanes == 0xffffffffu) {
    of.last_full = now_++;
    return;
  }
  of.known.resize(32);
  std::array<std::uint32_t, 32> joined{};
  for (int lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const auto& known = of.known[static_cast<std::size_t>(lane)];
    for (std::size_t i = 0; i < 32; ++i) joined[i] = std::max(joined[i], known[i]);
    joined[static_cast<std::size_t>(lane)] = now_;
  }
  for (int lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) != 0) of.known[static_cast<std::size_t>(lane)] = joined;
  }
  ++now_;
}

bool Ordering::before(Cell earlier, Cell cell) const {
  if (earlier.stamp <= block_begin_) return earlier.stamp <= launch_begin_;
  if (earlier.stamp <= last_barrier_ || earlier.same_thread(cell)) return true;
  if (earlier.warp() != cell.warp()) return false;
  const Warp& warp = warps_[static_cast<std::size_t>(cell.warp())];
  if (earlier.stamp <= warp.last_full) return true;
  return !warp.known.empty() &&
         earlier.stamp <= warp.known[static_cast<std::size_t>(cell.lane())]
                                    [static_cast<std::size_t>(earlier.lane())];
}

std::int64_t Ordering::block_at(std::uint32_t stamp) const {
  const auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), stamp,
      [](std::uint32_t value, const Block& block) { return value <= block.begin; });
  return after == blocks_.begin() ? 0 : std::prev(after)->number;
}

void remember(Cell& last, Cell& before, Cell cell, bool write, std::uint32_t fence,
              const Ordering& ordering) {
  const bool covers = (last.mask() & ~cell.mask()) == 0;
  if (last.same_thread(cell) && last.stamp > ordering.block_begin() &&
      last.atomic() == cell.atomic() && (covers || last.stamp == cell.stamp)) {
    if (!covers) cell.packed |= last.packed & 15u << 10;
    last = cell;
    return;
  }
  // A writer that covers the last one stands for it. Of readers, one of another block or warp than
  // the others is worth most: a writer among those others races with it.
  const bool other_block =
      before.stamp <= ordering.block_begin() && last.stamp > ordering.block_begin();
  const bool other_warp = before.warp() != cell.warp() && last.warp() == cell.warp();
  const bool keeps = before.stamp > fence && covers && (write || other_block || other_warp);
  if (!keeps) before = last;
  last = cell;
}

Race find_race(const Word& word, Cell cell, bool write, std::uint32_t fence,
               const Ordering& ordering) {
  const auto races = [&](Cell earlier) {
    return earlier.stamp > fence && (earlier.mask() & cell.mask()) != 0 &&
           !(earlier.atomic() && cell.atomic()) && !ordering.before(earlier, cell);
  };
  if (races(word.write)) return {word.write, true};
  if (races(word.write_before)) return {word.write_before, true};
  if (!write) return {};
  if (races(word.read)) return {word.read, false};
  if (races(word.read_before)) return {word.read_before, false};
  return {};
}

}  // namespace kvcheck::kernels::simt
