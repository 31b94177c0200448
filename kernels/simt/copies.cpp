// When asynchronous copies land.
#include "kernels/simt/copies.h"

#include <cstring>

#include "kernels/simt/monitor.h"

namespace kvcheck::kernels::simt {

void CopyQueue::clear() {
  copies_.clear();
  group_ = 0;
}

void CopyQueue::issue(Copy copy, Order order, Random& random) {
  copy.group = group_;
  bool at_once = order == Order::reverse;
  if (order != Order::lockstep && order != Order::reverse) {
    const std::uint32_t draw = random.below(4);
    at_once = draw == 0;
    copy.drifts = draw >= 2;
  }
  if (at_once) land(copy);
  copies_.push_back(copy);
}

void CopyQueue::land(Copy& copy) {
  if (copy.landed) return;
  std::memcpy(copy.shared, copy.global, static_cast<std::size_t>(copy.bytes));
  std::memset(copy.shared + copy.bytes, 0, kCopyBytes - static_cast<std::size_t>(copy.bytes));
  copy.landed = true;
}

void CopyQueue::drift(Random& random) {
  if (copies_.empty()) return;
  Copy& copy = copies_[random.below(copies_.size())];
  if (copy.drifts && random.below(2) == 0) land(copy);
}

}  // namespace kvcheck::kernels::simt
