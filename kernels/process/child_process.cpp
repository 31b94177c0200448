// Starting, ending and reaping of child processes.
#include "kernels/process/child_process.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/error.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/group.hpp>
#include <boost/process/posix.hpp>
#include <boost/process/search_path.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvcheck::kernels {
namespace {

namespace bp = boost::process;

void close_descriptor(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

/// A pipe that no other child inherits. Both ends lie above the standard streams, so that putting
/// one in place of a standard stream cannot overwrite another.
class Pipe {
 public:
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail();
    for (int i = 0; i < 2; ++i) {
      ends_[i] = ::fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
      ::close(ends[i]);
    }
    if (ends_[0] < 0 || ends_[1] < 0) fail();
  }
  ~Pipe() {
    close_descriptor(ends_[0]);
    close_descriptor(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  /// Hands over one end, made non-blocking.
  int take(int end) {
    ::fcntl(ends_[end], F_SETFL, ::fcntl(ends_[end], F_GETFL) | O_NONBLOCK);
    return std::exchange(ends_[end], -1);
  }

 private:
  [[noreturn]] static void fail() {
    throw std::runtime_error(fmt::format("no pipe could be made: {}", std::strerror(errno)));
  }
  int ends_[2] = {-1, -1};
};

}  // namespace

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& arguments) {
  std::string path = program;
  if (program.find('/') == std::string::npos) {
    path = bp::search_path(program).string();
    if (path.empty()) throw std::runtime_error(fmt::format("{} is not in PATH", program));
  }
  Pipe input, output, errors;
  bp::group group;
  std::error_code failed;
  bp::child child(bp::exe = path, bp::args = arguments, bp::posix::fd.bind(0, input.reader()),
                  bp::posix::fd.bind(1, output.writer()), bp::posix::fd.bind(2, errors.writer()),
                  group, bp::error(failed));
  if (failed) {
    throw std::runtime_error(fmt::format("{} cannot be started: {}", path, failed.message()));
  }
  pid_ = child.id();
  child.detach();
  group.detach();
  input_ = input.take(1);
  output_ = output.take(0);
  errors_ = errors.take(0);
}

ChildProcess::~ChildProcess() {
  kill();
  close_input();
  close_descriptor(output_);
  close_errors();
}

void ChildProcess::close_input() { close_descriptor(input_); }
void ChildProcess::close_errors() { close_descriptor(errors_); }

bool ChildProcess::reap(bool block) {
  while (!status_) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, block ? 0 : WNOHANG);
    if (ended == pid_) {
      status_ = status;
    } else if (ended == 0) {
      return false;
    } else if (errno != EINTR) {
      status_ = 0;  // Someone else has reaped it; how it ended is lost.
    }
  }
  return true;
}

std::optional<std::string> ChildProcess::wait(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  auto pause = std::chrono::milliseconds(1);
  while (!reap(false)) {
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
  if (WIFSIGNALED(*status_)) {
    const int signal = WTERMSIG(*status_);
    return fmt::format("signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("exit code {}", WEXITSTATUS(*status_));
}

void ChildProcess::kill() {
  if (pid_ < 0) return;
  // The group may outlive its leader: what the child itself has started ends with it.
  ::kill(-pid_, SIGKILL);
  if (!status_) {
    ::kill(pid_, SIGKILL);
    reap(true);
  }
  pid_ = -1;
}

}  // namespace kvcheck::kernels
