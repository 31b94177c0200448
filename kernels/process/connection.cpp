// Frames over pipes that do not block, with one deadline for a request and its answer.
#include "kernels/process/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "kernels/process/sigpipe_block.h"

namespace kvcheck::kernels {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr std::size_t kErrorBytes = 4096;
constexpr std::size_t kLastWords = 300;
constexpr milliseconds kEndPatience{1000};  // From the end of the output to the end of the child.
constexpr milliseconds kExitPatience{300};  // From the end of its input.

struct TimedOut {};
struct OutputEnded {};

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Connection::Connection(std::string label, const std::string& program,
                       const std::vector<std::string>& arguments)
    : label_(std::move(label)), child_(program, arguments), buffer_(kBufferBytes) {}

Connection::~Connection() {
  if (broken_) return;
  child_.close_input();
  child_.wait(kExitPatience);
}

Reply Connection::ask(const Request& request) {
  if (broken_) throw Broken{*broken_};
  const auto deadline = Clock::now() + request.limit;
  received_ = 0;
  try {
    send(request, deadline);
    Reply reply = receive(request, deadline);
    if (reply.head.kind != AnswerHead::Kind::error) return reply;
    drain_errors();
    fail({reply.head.failure, fmt::format("{} reports an error in {}: {}{}", label_, request.what,
                                          reply.head.text, last_words())});
  } catch (const ProtocolError& error) {
    drain_errors();
    fail({Failure::Kind::nonsense, fmt::format("{} answered {} with nonsense: {}{}", label_,
                                               request.what, error.what(), last_words())});
  } catch (const TimedOut&) {
    const std::string part =
        received_ > 0 ? fmt::format(" (only {} bytes of an answer came)", received_) : "";
    fail({Failure::Kind::hang,
          fmt::format("{} did not answer {} within {} ms{} and was ended; look for an endless loop "
                      "or a deadlock, or give it more time{}",
                      label_, request.what, request.limit.count(), part, last_words())});
  } catch (const OutputEnded&) {
    Failure failure = ended_early();
    failure.detail =
        fmt::format("{} {} while it was to answer {}", label_, failure.detail, request.what) +
        last_words();
    fail(std::move(failure));
  }
}

/// How the child left; the label and the request are the caller's to add.
Failure Connection::ended_early() {
  const std::string part =
      received_ > 0 ? fmt::format(" after {} bytes of an answer", received_) : "";
  const auto ended = child_.wait(kEndPatience);
  drain_errors();
  if (!ended) {
    return {Failure::Kind::nonsense, fmt::format("closed its standard output{} but runs on", part)};
  }
  const bool cut = *ended == "exit code 0" && received_ > 0;
  return {cut ? Failure::Kind::nonsense : Failure::Kind::crash,
          fmt::format("ended ({}){}", *ended, part)};
}

void Connection::fail(Failure failure) {
  child_.kill();
  broken_ = failure;
  throw Broken{std::move(failure)};
}

void Connection::send(const Request& request, Clock::time_point deadline) {
  OutgoingFrame frame(request.what, request.content.head, request.content.tensors);
  SigpipeBlock block;
  while (!frame.done()) {
    if (frame.write_to(child_.input()) || errno == EINTR) continue;
    if (!would_block()) {
      // Its input is closed: it has died, or it has said why it stops.
      if (errno == EPIPE) block.raised();
      return;
    }
    wait_for(child_.input(), POLLOUT, deadline);
  }
}

Reply Connection::receive(const Request& request, Clock::time_point deadline) {
  std::array<std::byte, kPrefixBytes> encoded{};
  read_exactly(encoded.data(), encoded.size(), deadline);
  const FramePrefix prefix = decode_prefix(encoded, FrameKind::answer);
  Reply reply;
  reply.text.resize(prefix.head_bytes);
  read_exactly(reinterpret_cast<std::byte*>(reply.text.data()), reply.text.size(), deadline);
  reply.head = decode_answer(reply.text, request.id, prefix.body_bytes);
  if (reply.head.kind == AnswerHead::Kind::ok) request.check(reply.head.tensors);
  for (const TensorHead& head : reply.head.tensors) {
    Tensor tensor{head.type, head.shape, {}};
    tensor.bytes.resize(head.bytes);
    read_exactly(tensor.bytes.data(), tensor.bytes.size(), deadline);
    reply.tensors.push_back(std::move(tensor));
  }
  return reply;
}

void Connection::read_exactly(std::byte* where, std::size_t count, Clock::time_point deadline) {
  while (count > 0) {
    if (begin_ == end_) {
      if (count >= buffer_.size()) {
        const std::size_t got = read_some(where, count, deadline);
        where += got;
        count -= got;
        continue;
      }
      begin_ = 0;
      end_ = read_some(buffer_.data(), buffer_.size(), deadline);
    }
    const std::size_t taken = std::min(count, end_ - begin_);
    std::memcpy(where, buffer_.data() + begin_, taken);
    begin_ += taken;
    where += taken;
    count -= taken;
  }
}

std::size_t Connection::read_some(std::byte* where, std::size_t most, Clock::time_point deadline) {
  while (true) {
    wait_for(child_.output(), POLLIN, deadline);
    const ssize_t got = ::read(child_.output(), where, most);
    if (got > 0) {
      received_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
    if (got == 0) throw OutputEnded{};
    if (errno != EINTR && !would_block()) throw OutputEnded{};
  }
}

/// Returns when the descriptor is ready; meanwhile takes what the child writes to standard error,
/// so that it never waits for a reader.
void Connection::wait_for(int descriptor, short events, Clock::time_point deadline) {
  while (true) {
    // The clock is looked at before every wait, whatever is ready: neither a child that floods
    // standard error nor one that answers byte by byte may stop it.
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) throw TimedOut{};
    std::array<pollfd, 2> watched{{{descriptor, events, 0}, {child_.errors(), POLLIN, 0}}};
    const int timeout = static_cast<int>(std::min<std::int64_t>(left, 1 << 30));
    const int ready = ::poll(watched.data(), watched.size(), timeout);
    if (ready > 0 && watched[1].revents != 0) drain_errors();
    if (ready > 0 && watched[0].revents != 0) return;
  }
}

void Connection::drain_errors() {
  std::array<char, 4096> chunk;
  // A pipe holds 64 KiB; a child that writes faster than this reads gets its turn again.
  for (int i = 0; i < 16 && child_.errors() >= 0; ++i) {
    const ssize_t got = ::read(child_.errors(), chunk.data(), chunk.size());
    if (got < 0) return;
    if (got == 0) {
      child_.close_errors();
      return;
    }
    errors_.append(chunk.data(), static_cast<std::size_t>(got));
    if (errors_.size() > kErrorBytes) errors_.erase(0, errors_.size() - kErrorBytes);
  }
}

/// "; standard error ends with ..." with the last line that holds anything; else empty.
std::string Connection::last_words() const {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto last = errors_.find_last_not_of(kBlank);
  if (last == std::string::npos) return "";
  auto first = errors_.find_last_of("\r\n", last);
  first = first == std::string::npos ? 0 : first + 1;
  std::string line = errors_.substr(first, last - first + 1);
  line.erase(0, std::min(line.find_first_not_of(kBlank), line.size()));
  // Reports are UTF-8; a foreign program may write anything.
  for (char& c : line) {
    if (c < ' ' || c > '~') c = c == '\t' ? ' ' : '?';
  }
  if (line.size() > kLastWords) line = line.substr(0, kLastWords) + "...";
  return fmt::format("; standard error ends with: {}", line);
}

}  // namespace kvcheck::kernels
