// The threads of a block that can run, and which of them runs next.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/simt/random.h"
#include "kernels/simt/schedule.h"

namespace kvcheck::kernels::simt {

class ReadySet {
 public:
  static constexpr int kMostThreads = 1024;

  /// Nothing is ready yet. Draws what the order needs: priorities, or the warp that starves.
  void begin_block(Order order, int threads, Random& random);

  void add(int thread);

  /// Takes the next thread out. \param last the thread that ran last, -1 = none
  /// \return -1 where none is ready
  int take(int last, Random& random);

  /// Whether the running thread should be preempted after so many accesses, drawn anew; 0 = never.
  std::uint32_t draw_slice(Random& random) const;
  /// Order::priority: the running thread falls behind all others.
  void lower(int thread);

 private:
  int take_in_warp_order(int last);
  int take_at_random(std::vector<int>& from, Random& random);
  int take_by_priority();
  void clear(int thread);

  Order order_ = Order::lockstep;
  int threads_ = 0;
  int starving_ = -1;                           // A warp.
  std::uint32_t warps_ = 0;                     // Bit w: warp w has a ready lane.
  std::array<std::uint32_t, 32> lanes_{};       // Of each warp.
  std::vector<int> others_, starved_;           // Random, starve.
  std::array<std::uint64_t, 32> ranks_{};       // Priority: bit = rank that is ready.
  std::array<int, kMostThreads> rank_{};        // Of each thread; the highest runs.
  std::array<int, 2 * kMostThreads> holder_{};  // Thread of each rank.
  int lowest_ = 0;                              // The next rank to fall to.
};

}  // namespace kvcheck::kernels::simt
