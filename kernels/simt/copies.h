// Asynchronous copies of one thread: under way from their issue until the thread has waited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simt/random.h"
#include "kernels/simt/schedule.h"
#include "kernels/simt/site.h"

namespace kvcheck::kernels::simt {

class CopyQueue {
 public:
  struct Copy {
    std::byte* shared;
    const std::byte* global;
    int bytes;  ///< That are read; the rest of the 16 becomes zero.
    Site site;
    std::int64_t group = 0;
    bool landed = false;
    bool drifts = false;  ///< Lands at any switch of the thread; otherwise when it is waited for.
  };

  void clear();
  bool empty() const { return copies_.empty(); }

  /// Source and destination are read and written at one moment between now and the wait: at the
  /// last one in lockstep, at once in reverse order, and where the order draws, at one drawn.
  void issue(Copy copy, Order order, Random& random);
  void commit() { ++group_; }
  /// Finishes all committed groups but the newest `pending`. `finished` is called for each copy.
  template <class Finished>
  void wait(int pending, Finished finished);
  /// The thread gives way to others: perhaps something lands.
  void drift(Random& random);

  /// The oldest copy that was not waited for; null = none.
  const Copy* unfinished() const { return copies_.empty() ? nullptr : &copies_.front(); }

 private:
  static void land(Copy& copy);

  std::vector<Copy> copies_;  // In the order of issue, so also of groups.
  std::int64_t group_ = 0;    // Of copies that are not committed yet.
};

template <class Finished>
void CopyQueue::wait(int pending, Finished finished) {
  std::size_t done = 0;
  while (done < copies_.size() && copies_[done].group < group_ - pending) {
    land(copies_[done]);
    finished(copies_[done]);
    ++done;
  }
  copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace kvcheck::kernels::simt
