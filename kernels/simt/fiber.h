// Stacks, and the switch from one to another: all that the runtime needs of Boost.Context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kvcheck::kernels::simt {

/// A stack with an unmapped page below it, so that an overflow ends the program instead of
/// writing over the neighbour.
class Stack {
 public:
  static constexpr std::size_t kBytes = 128 * 1024;  // Only what is touched becomes memory.

  /// Stacks of different numbers begin at different places within a page, so that the first
  /// frames of many threads do not fight for the same lines of a processor's cache.
  explicit Stack(std::size_t number);  ///< \throws std::bad_alloc
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(begin_); }
  std::uintptr_t end() const { return begin() + bytes_; }

 private:
  void* mapping_;
  std::byte* begin_;  // The lowest byte.
  std::size_t bytes_;
};

/// Where execution goes on: the context of a thread of its own stack, or of whoever started one.
class Fiber {
 public:
  /// The next switch to this fiber calls body(argument) on the stack. It must never return.
  void prepare(const Stack& stack, void (*body)(void*), void* argument);

  /// Leaves `from` and goes on with `to`; returns when something switches to `from` again.
  static void switch_between(Fiber& from, Fiber& to);

 private:
  struct Leap;
  friend struct FiberEntry;
  void* context_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace kvcheck::kernels::simt
