// Writing to a process that may be gone, without a signal that ends this one.
#pragma once

#include <cerrno>

#include <signal.h>

namespace kvcheck::kernels {

/// Turns SIGPIPE into the error EPIPE of this thread, whatever the process does with the signal.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeBlock() {
    if (raised_) {
      const timespec now{};
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;
  void raised() { raised_ = true; }

 private:
  sigset_t pipe_{}, before_{};
  bool raised_ = false;
};

}  // namespace kvcheck::kernels
