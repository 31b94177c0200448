// Stacks from mmap, and jumps by Boost.Context.
#include "kernels/simt/fiber.h"

#include <new>

#include <boost/context/detail/fcontext.hpp>
#include <sys/mman.h>

namespace kvcheck::kernels::simt {
namespace context = boost::context::detail;

namespace {
constexpr std::size_t kGuard = 4096;
constexpr std::size_t kLine = 64;
}  // namespace

Stack::Stack(std::size_t number) : bytes_(kBytes - number * 5 % 64 * kLine) {
  mapping_ = ::mmap(nullptr, kGuard + kBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  if (::mprotect(mapping_, kGuard, PROT_NONE) != 0) {
    ::munmap(mapping_, kGuard + kBytes);
    throw std::bad_alloc();
  }
  begin_ = static_cast<std::byte*>(mapping_) + kGuard;
}

Stack::~Stack() { ::munmap(mapping_, kGuard + kBytes); }

/// What the side that is left tells the side that goes on.
struct Fiber::Leap {
  Fiber* from;
  Fiber* to;
};

struct FiberEntry {
  static void begin(context::transfer_t transfer) {
    const Fiber::Leap& leap = *static_cast<const Fiber::Leap*>(transfer.data);
    leap.from->context_ = transfer.fctx;
    Fiber& self = *leap.to;
    self.body_(self.argument_);
    __builtin_trap();
  }
};

void Fiber::prepare(const Stack& stack, void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  context_ = context::make_fcontext(reinterpret_cast<void*>(stack.end()),
                                    stack.end() - stack.begin(), &FiberEntry::begin);
}

void Fiber::switch_between(Fiber& from, Fiber& to) {
  Leap leap{&from, &to};
  const context::transfer_t back = context::jump_fcontext(to.context_, &leap);
  static_cast<const Leap*>(back.data)->from->context_ = back.fctx;
}

}  // namespace kvcheck::kernels::simt
