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
struct Cell {
  std::uint32_t stamp = 0;  ///< Ordering::now() of the access; 0 = none.
  std::uint32_t packed = 0;

  static constexpr std::uint32_t kMostSites = 1u << 17;
  static Cell of(std::uint32_t stamp, int thread, std::uint32_t mask, bool atomic,
                 std::uint32_t site) {
    return {stamp, site << 15 | static_cast<std::uint32_t>(atomic) << 14 | mask << 10 |
                       static_cast<std::uint32_t>(thread)};
  }
  int thread() const { return static_cast<int>(packed & 1023); }
  int warp() const { return static_cast<int>(packed >> 5 & 31); }
  int lane() const { return static_cast<int>(packed & 31); }
  std::uint32_t mask() const { return packed >> 10 & 15; }
  bool atomic() const { return (packed >> 14 & 1) != 0; }
  std::uint32_t site() const { return packed >> 15; }
  bool same_thread(Cell other) const { return ((packed ^ other.packed) & 1023) == 0; }
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
void remember(Cell& last, Cell& before, Cell cell, bool write, std::uint32_t fence,
              const Ordering& ordering);

/// An earlier access that is not ordered with one that is made now.
struct Race {
  Cell earlier;
  bool wrote = false;
  bool found() const { return earlier.stamp != 0; }
};

/// The recorded access that races with `cell`, if one does.
Race find_race(const Word& word, Cell cell, bool write, std::uint32_t fence,
               const Ordering& ordering);

/// Records an access. Stamps up to `fence` are of no interest: ordered before everything.
inline Race note(Word& word, Cell cell, bool write, std::uint32_t fence, const Ordering& ordering) {
  Race race;
  const bool written = word.write.stamp > fence || word.write_before.stamp > fence;
  if (written || (write && (word.read.stamp > fence || word.read_before.stamp > fence))) {
    race = find_race(word, cell, write, fence, ordering);
  }
  Cell& last = write ? word.write : word.read;
  Cell& before = write ? word.write_before : word.read_before;
  if (last.stamp <= fence) {
    last = cell;
  } else if (last.stamp != cell.stamp || last.packed != cell.packed) {
    remember(last, before, cell, write, fence, ordering);
  }
  return race;
}

}  // namespace kvcheck::kernels::simt
