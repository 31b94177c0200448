// The threads of one block at a time: who waits for whom, who runs next, and what is wrong when
// nobody can.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/element.h"
#include "kernels/simt/copies.h"
#include "kernels/simt/fiber.h"
#include "kernels/simt/monitor.h"
#include "kernels/simt/random.h"
#include "kernels/simt/ready_set.h"
#include "kernels/simt/schedule.h"
#include "kernels/simt/site.h"
#include "kernels/simt/thread.h"

namespace kvcheck::kernels::simt {

/// What lanes of a warp do together. Two lanes meet where operation and mask are the same.
enum class Operation : std::uint8_t {
  none,
  sync_warp,
  shuffle,
  shuffle_xor,
  shuffle_down,
  shuffle_up,
  ballot,
  any_of,
  all_of,
  match_any,
  load_matrix_x2,
  load_matrix_x4,
  load_matrix_x2_transposed,
  load_matrix_x4_transposed,
  multiply_add_f16,
  multiply_add_bf16
};

/// "shuffle_xor": as kernels call it.
const char* to_string(Operation operation);
/// "shuffle_xor with mask 0x0000ffff"
std::string mask_words(Operation operation, std::uint32_t mask);
/// ldmatrix and mma: all lanes, at one place in the source.
bool takes_whole_warp(Operation operation);

/// What a lane brings to a meeting and what it gets.
struct Exchanged {
  std::array<std::uint32_t, 10> in{};
  std::array<std::uint32_t, 4> out{};
  const void* address = nullptr;
  std::uintptr_t code = 0;
};

class Runner;

/// One CUDA thread.
struct Lane : Thread {
  enum class State : std::uint8_t { runs, ready, at_block_barrier, in_warp, exited };
  Runner* runner = nullptr;
  State state = State::ready;
  Operation operation = Operation::none;
  std::uint32_t mask = 0;
  Site site;  ///< Where it waits.
  Exchanged exchanged;
  CopyQueue copies;
  std::unique_ptr<Stack> stack;
  Fiber fiber;
};

/// Lanes of a warp that have arrived at one operation with one mask.
struct Meeting {
  Operation operation;
  std::uint32_t mask;
  std::uint32_t arrived;
  int warp;
  std::array<Lane*, 32> lanes;  ///< Null for those that have not arrived.
};

class Runner {
 public:
  /// The one of this OS thread, whose stacks are used by one launch after the other.
  static Runner& of_this_thread();

  /// Runs every block of the launch. \pre the shape is within the limits of the hardware
  void run(void (*body)(const void*), const device::LaunchShape& shape, const void* parameters,
           Order order, std::uint64_t seed, Monitor& monitor);

  // ---- For the thread that runs ----

  Lane& self() { return *self_; }
  Monitor& monitor() { return *monitor_; }
  const device::LaunchShape& shape() const { return *shape_; }
  device::Index3 block_index() const { return block_index_; }
  std::span<std::byte> shared() { return {shared_, shape_->shared_bytes}; }
  Random& random() { return random_; }
  Order order() const { return order_; }

  void block_barrier(Site site);
  /// Waits for the lanes of `mask` to come to the same operation; whoever comes last has
  /// `complete` work out what each of them gets. What the lane brings is in self().exchanged.
  void meet(Operation operation, std::uint32_t mask, Site site,
            void (*complete)(Runner&, Meeting&));
  /// Lets others run first.
  void yield();
  /// Reports a defect of the running thread at `site`.
  void report(DefectKind kind, Site site, std::string detail, const Lane* other = nullptr);
  /// The same of another thread.
  void report_of(const Lane& lane, DefectKind kind, Site site, std::string detail,
                 const Lane* other);
  /// Ends the launch: does not return.
  [[noreturn]] void give_up();

 private:
  Runner() = default;

  std::vector<std::int64_t> draw_blocks(std::int64_t count);
  void make_room();
  void run_block(std::int64_t block);
  void prepare_block(std::int64_t block);
  static void thread_main(void* lane);
  void exit_thread();
  [[noreturn]] void leave_block();
  static void preempt();

  /// Goes on with the next thread that is ready, or ends the block.
  void run_next();
  void make_ready(Lane& lane);
  void complete_block_barrier();
  /// Ends the meeting where all that can still come have come.
  bool try_finish(int warp, std::size_t index);
  void report_stuck();

  struct Waiting {
    Meeting meeting;
    void (*complete)(Runner&, Meeting&);
  };

  std::deque<Lane> lanes_;                        // Grows to the largest block; addresses stay.
  std::array<std::vector<Waiting>, 32> waiting_;  // Of each warp.
  std::array<std::uint32_t, 32> alive_{};         // Lanes of each warp that have not exited.
  Fiber outside_;
  std::unique_ptr<std::byte[]> shared_memory_;
  std::size_t shared_room_ = 0;

  void (*body_)(const void*) = nullptr;
  const void* parameters_ = nullptr;
  const device::LaunchShape* shape_ = nullptr;
  Monitor* monitor_ = nullptr;
  Order order_ = Order::lockstep;
  Random random_{0};
  ReadySet ready_;
  Lane* self_ = nullptr;
  device::Index3 block_index_;
  std::byte* shared_ = nullptr;
  int live_ = 0, arrived_ = 0;
  Lane* first_arrived_ = nullptr;  // At the block barrier.
  bool gave_up_ = false;
  std::exception_ptr failure_;
};

}  // namespace kvcheck::kernels::simt
