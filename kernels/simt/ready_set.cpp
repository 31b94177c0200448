// Bit masks for the orders that are fixed, lists for those that draw.
#include "kernels/simt/ready_set.h"

#include <bit>
#include <utility>

namespace kvcheck::kernels::simt {

void ReadySet::begin_block(Order order, int threads, Random& random) {
  order_ = order;
  threads_ = threads;
  warps_ = 0;
  lanes_.fill(0);
  others_.clear();
  starved_.clear();
  starving_ = order == Order::starve ? static_cast<int>(random.below(threads / 32)) : -1;
  if (order != Order::priority) return;
  ranks_.fill(0);
  lowest_ = kMostThreads - 1;
  for (int t = 0; t < threads; ++t) rank_[t] = kMostThreads + t;
  for (int t = threads - 1; t > 0; --t) std::swap(rank_[t], rank_[random.below(t + 1)]);
  for (int t = 0; t < threads; ++t) holder_[rank_[t]] = t;
}

void ReadySet::add(int thread) {
  switch (order_) {
    case Order::lockstep:
    case Order::reverse:
      lanes_[thread / 32] |= 1U << (thread % 32);
      warps_ |= 1U << (thread / 32);
      return;
    case Order::random:
    case Order::starve:
      (thread / 32 == starving_ ? starved_ : others_).push_back(thread);
      return;
    case Order::priority:
      ranks_[rank_[thread] / 64] |= std::uint64_t{1} << (rank_[thread] % 64);
      return;
  }
}

int ReadySet::take(int last, Random& random) {
  switch (order_) {
    case Order::lockstep:
    case Order::reverse:
      return take_in_warp_order(last);
    case Order::random:
    case Order::starve:
      return take_at_random(others_.empty() ? starved_ : others_, random);
    case Order::priority:
      return take_by_priority();
  }
  return -1;
}

int ReadySet::take_in_warp_order(int last) {
  if (warps_ == 0) return -1;
  const bool up = order_ == Order::lockstep;
  // The warp that ran goes on as long as it can, then the next one.
  const int start = last < 0 ? (up ? 0 : 31) : last / 32;
  int warp = start;
  if (lanes_[warp] == 0) {
    const std::uint32_t after = up ? warps_ & ~((2U << start) - 1) : warps_ & ((1U << start) - 1);
    const std::uint32_t from = after != 0 ? after : warps_;
    warp = up ? std::countr_zero(from) : 31 - std::countl_zero(from);
  }
  const std::uint32_t ready = lanes_[warp];
  std::uint32_t from = ready;
  if (last >= 0 && warp == start) {
    const int lane = last % 32;
    const std::uint32_t after = up ? ready & ~((2U << lane) - 1) : ready & ((1U << lane) - 1);
    if (after != 0) from = after;
  }
  const int lane = up ? std::countr_zero(from) : 31 - std::countl_zero(from);
  clear(warp * 32 + lane);
  return warp * 32 + lane;
}

void ReadySet::clear(int thread) {
  lanes_[thread / 32] &= ~(1U << (thread % 32));
  if (lanes_[thread / 32] == 0) warps_ &= ~(1U << (thread / 32));
}

int ReadySet::take_at_random(std::vector<int>& from, Random& random) {
  if (from.empty()) return -1;
  std::swap(from[random.below(from.size())], from.back());
  const int thread = from.back();
  from.pop_back();
  return thread;
}

int ReadySet::take_by_priority() {
  for (int word = static_cast<int>(ranks_.size()) - 1; word >= 0; --word) {
    if (ranks_[word] == 0) continue;
    const int bit = 63 - std::countl_zero(ranks_[word]);
    ranks_[word] &= ~(std::uint64_t{1} << bit);
    return holder_[word * 64 + bit];
  }
  return -1;
}

std::uint32_t ReadySet::draw_slice(Random& random) const {
  switch (order_) {
    case Order::lockstep:
    case Order::reverse:
      return 0;
    case Order::random:
    case Order::starve:
      return 1 + random.below(512);
    case Order::priority:
      // A few moments of a launch: one in some thousands of accesses of all threads.
      return 1 + random.below(64 * static_cast<std::uint64_t>(threads_));
  }
  return 0;
}

void ReadySet::lower(int thread) {
  if (lowest_ == 0) return;
  rank_[thread] = lowest_--;
  holder_[rank_[thread]] = thread;
}

}  // namespace kvcheck::kernels::simt
