// What is remembered of each 4-byte word that the threads of a launch touch, and when two of them
// are ordered. Constant size for a word: the last two writers and two readers, chosen so that an
// unordered access of another warp or block is never forgotten. Of four writers of single bytes of
// a word the last two are known.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace kvcheck::kernels::simt {

/// One access to a word: when, by whom, which of its bytes, and from where in the code.
class Cell {
 public:
  static constexpr std::uint32_t kMostSites = 1u << 17;

  Cell() = default;
  Cell(std::uint32_t stamp, int thread, bool atomic, std::uint32_t site)
      : bits_(std::uint64_t{stamp} << 32 | site << 15 | static_cast<std::uint32_t>(atomic) << 14 |
              static_cast<std::uint32_t>(thread)) {}
  /// The same access with these bytes beside its own.
  Cell with(std::uint32_t mask) const {
    Cell cell = *this;
    cell.bits_ |= mask << 10;
    return cell;
  }

  std::uint32_t stamp() const { return static_cast<std::uint32_t>(bits_ >> 32); }  ///< 0 = none.
  bool later_than(std::uint32_t stamp) const {
    return bits_ > (std::uint64_t{stamp} << 32 | 0xffffffffu);
  }
  int thread() const { return static_cast<int>(bits_ & 1023); }
  int warp() const { return static_cast<int>(bits_ >> 5 & 31); }
  int lane() const { return static_cast<int>(bits_ & 31); }
  std::uint32_t mask() const { return static_cast<std::uint32_t>(bits_ >> 10 & 15); }
  bool atomic() const { return (bits_ >> 14 & 1) != 0; }
  std::uint32_t site() const { return static_cast<std::uint32_t>(bits_ >> 15) & (kMostSites - 1); }
  bool same_thread(Cell other) const { return ((bits_ ^ other.bits_) & 1023) == 0; }
  bool same_warp(Cell other) const { return ((bits_ ^ other.bits_) >> 5 & 31) == 0; }
  /// Whether each byte of `other` is one of this.
  bool covers(Cell other) const { return (other.bits_ & ~bits_ & 15u << 10) == 0; }
  bool operator==(const Cell&) const = default;

 private:
  std::uint64_t bits_ = 0;
};

struct Word {
  Cell write, write_before;  ///< Of different threads or moments where both are recent.
  Cell read, read_before;
};

/// The order that barriers, the ends of blocks and the begin of the launch make. One clock counts
/// them all; it goes on from launch to launch, so that old cells are recognised by their stamps.
class Ordering {
 public:
  /// \param now the clock as the last launch left it
  Ordering(std::uint32_t now, int warps);

  void begin_block(std::int64_t block);
  void block_barrier();
  void warp_barrier(int warp, std::uint32_t lanes);

  std::uint32_t now() const { return now_; }
  std::uint32_t launch_begin() const { return launch_begin_; }
  std::uint32_t block_begin() const { return block_begin_; }
  /// Accesses of this block up to here are done for all its threads.
  std::uint32_t last_barrier() const { return last_barrier_; }
  /// Whether an earlier access of this launch is done before whatever `cell`'s thread does now.
  bool before(Cell earlier, Cell cell) const;
  /// The block that ran at a time in this launch.
  std::int64_t block_at(std::uint32_t stamp) const;

 private:
  struct Warp {
    std::uint32_t last_full = 0;  ///< Last barrier of all lanes.
    /// [lane][other]: up to when the lane knows what the other did; empty before the first barrier
    /// of some lanes only.
    std::vector<std::array<std::uint32_t, 32>> known;
  };
  struct Block {
    std::uint32_t begin;
    std::int64_t number;
  };
  std::uint32_t now_, launch_begin_, block_begin_, last_barrier_;
  std::vector<Warp> warps_;
  std::vector<Block> blocks_;
};

/// The two cells of readers, or of writers, after one more.
inline void remember(Cell& last, Cell& before, Cell cell, bool write, std::uint32_t fence,
                     const Ordering& ordering) {
  const bool covers = cell.covers(last);
  const std::uint32_t begin = ordering.block_begin();
  if (last.same_thread(cell) && last.later_than(begin) && last.atomic() == cell.atomic() &&
      (covers || last.stamp() == cell.stamp())) {
    last = cell.with(covers ? 0 : last.mask());
    return;
  }
  // A writer that covers the last one stands for it. Of readers, one of another block or warp than
  // the others is worth most: a writer among those others races with it.
  const bool keeps = covers && before.later_than(fence) &&
                     (write || (!before.later_than(begin) && last.later_than(begin)) ||
                      (!before.same_warp(cell) && last.same_warp(cell)));
  if (!keeps) before = last;
  last = cell;
}

/// An earlier access that is not ordered with one that is made now.
struct Race {
  Cell earlier;
  bool wrote = false;
  bool found() const { return earlier.stamp() != 0; }
};

/// The recorded access that races with `cell`, if one does.
Race find_race(const Word& word, Cell cell, bool write, std::uint32_t fence,
               const Ordering& ordering);

/// Records an access. Stamps up to `fence` are of no interest: ordered before everything.
[[gnu::always_inline]] inline Race note(Word& word, Cell cell, bool write, std::uint32_t fence,
                                        const Ordering& ordering) {
  Race race;
  const bool written = word.write.later_than(fence) || word.write_before.later_than(fence);
  if (written || (write && (word.read.later_than(fence) || word.read_before.later_than(fence)))) {
    race = find_race(word, cell, write, fence, ordering);
  }
  Cell& last = write ? word.write : word.read;
  if (!last.later_than(fence)) {
    last = cell;
  } else if (last != cell) {
    remember(last, write ? word.write_before : word.read_before, cell, write, fence, ordering);
  }
  return race;
}

}  // namespace kvcheck::kernels::simt
