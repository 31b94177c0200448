// Child process with pipes on its standard streams, in a process group of its own.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace kvcheck::kernels {

class ChildProcess {
 public:
  /// A program without a slash is looked for in PATH.
  /// \throws std::runtime_error with the reason when it cannot be started
  ChildProcess(const std::string& program, const std::vector<std::string>& arguments);
  /// Kills what still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Ends of the pipes on this side; none of them blocks. -1 once closed.
  int input() const { return input_; }
  int output() const { return output_; }
  int errors() const { return errors_; }

  void close_input();
  void close_errors();

  /// "exit code 3" or "signal 11 (Segmentation fault)"; empty when it still runs after `patience`.
  std::optional<std::string> wait(std::chrono::milliseconds patience);

  /// Ends the child and every process of its group, at once.
  void kill();

 private:
  bool reap(bool block);

  pid_t pid_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
  std::optional<int> status_;  // Of waitpid, once it has ended.
};

}  // namespace kvcheck::kernels
