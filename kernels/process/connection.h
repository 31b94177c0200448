// Connection: requests and answers over the pipes of one child process, each within a time limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/process/answer_head.h"
#include "kernels/process/child_process.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Thrown when a child broke. It is dead from then on.
struct Broken {
  Failure failure;
};

struct Request {
  std::string_view what;  ///< For messages: "step".
  std::int64_t id = 0;
  FrameContent content;
  std::chrono::milliseconds limit{};
  /// Looks at the head of an ok answer before memory is set aside for its tensors.
  /// Throws ProtocolError.
  std::function<void(std::span<const TensorHead>)> check;
};

struct Reply {
  AnswerHead head;
  std::string text;             ///< The head as it came.
  std::vector<Tensor> tensors;  ///< In the order of head.tensors.
};

/// One thread at a time.
class Connection {
 public:
  /// `label` names the target in messages.
  /// \throws std::runtime_error when the program cannot be started
  Connection(std::string label, const std::string& program,
             const std::vector<std::string>& arguments);
  /// Lets the child end by itself for a moment, then ends it.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::int64_t next_id() { return ++last_id_; }

  /// One request and its answer, which is ok or refused.
  /// \throws Broken when the child died, did not answer in time, answered an error or nonsense
  Reply ask(const Request& request);

  /// How the child broke; empty while it lives.
  const std::optional<Failure>& broken() const { return broken_; }

 private:
  using Clock = std::chrono::steady_clock;

  void send(const Request& request, Clock::time_point deadline);
  Reply receive(const Request& request, Clock::time_point deadline);
  void read_exactly(std::byte* where, std::size_t count, Clock::time_point deadline);
  std::size_t read_some(std::byte* where, std::size_t most, Clock::time_point deadline);
  void wait_for(int descriptor, short events, Clock::time_point deadline);
  void drain_errors();
  std::string last_words() const;
  Failure ended_early();
  [[noreturn]] void fail(Failure failure);

  std::string label_;
  ChildProcess child_;
  std::int64_t last_id_ = 0;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // Bytes of buffer_ that are not read yet.
  std::uint64_t received_ = 0;       // Bytes of the current answer.
  std::string errors_;               // The newest bytes of standard error.
  std::optional<Failure> broken_;
};

}  // namespace kvcheck::kernels
