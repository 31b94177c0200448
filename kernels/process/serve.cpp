// Requests of a stream, answered by a target.
#include "kernels/process/serve.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "kernels/process/answer_head.h"
#include "kernels/process/server.h"
#include "kernels/process/sigpipe_block.h"

namespace kvcheck::kernels {
namespace {

/// Reads so many bytes; false when the requests have ended before the first.
/// \throws ProtocolError when they end later
bool read_exactly(int descriptor, void* where, std::size_t count) {
  std::size_t got = 0;
  while (got < count) {
    const ssize_t now = ::read(descriptor, static_cast<std::byte*>(where) + got, count - got);
    if (now > 0) {
      got += static_cast<std::size_t>(now);
    } else if (now < 0 && errno == EINTR) {
      continue;
    } else if (now < 0) {
      throw ProtocolError(fmt::format("no request can be read: {}", std::strerror(errno)));
    } else if (got == 0) {
      return false;
    } else {
      throw ProtocolError(fmt::format("the requests ended after {} of {} bytes", got, count));
    }
  }
  return true;
}

void read_rest(int descriptor, void* where, std::size_t count) {
  if (read_exactly(descriptor, where, count)) return;
  throw ProtocolError("the requests ended in the middle of a frame");
}

struct Incoming {
  nlohmann::json head;
  RequestTensors tensors;
};

/// The next request; empty when they have ended. `id` is set as soon as it is known.
std::optional<Incoming> next_request(int descriptor, std::int64_t& id) {
  std::array<std::byte, kPrefixBytes> bytes{};
  if (!read_exactly(descriptor, bytes.data(), bytes.size())) return std::nullopt;
  const FramePrefix prefix = decode_prefix(bytes, FrameKind::request);
  std::string text(prefix.head_bytes, '\0');
  read_rest(descriptor, text.data(), text.size());
  Incoming incoming;
  incoming.head = parse_head(text, FrameKind::request);
  const Fields fields(incoming.head, "the request");
  id = fields.get<std::int64_t>("id");
  for (TensorHead& head : decode_tensors(fields, prefix.body_bytes)) {
    Tensor tensor{head.type, std::move(head.shape), {}};
    tensor.bytes.resize(head.bytes);
    read_rest(descriptor, tensor.bytes.data(), tensor.bytes.size());
    incoming.tensors.add(std::move(head.name), std::move(tensor));
  }
  return incoming;
}

/// False when nobody reads any more.
bool write_answer(int descriptor, const FrameContent& answer) {
  OutgoingFrame frame("the answer", answer.head, answer.tensors);
  SigpipeBlock block;
  while (!frame.done()) {
    if (frame.write_to(descriptor) || errno == EINTR) continue;
    if (errno == EPIPE) block.raised();
    return false;
  }
  return true;
}

/// A descriptor above the standard streams, which no other program inherits.
int moved_up(int descriptor) {
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  if (moved >= 0) return moved;
  throw std::runtime_error(
      fmt::format("descriptor {} cannot be kept for frames: {}", descriptor, std::strerror(errno)));
}

}  // namespace

FrameStreams take_standard_streams() {
  const FrameStreams streams{moved_up(STDIN_FILENO), moved_up(STDOUT_FILENO)};
  if (const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC); nothing >= 0) {
    ::dup2(nothing, STDIN_FILENO);
    ::close(nothing);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  // What was printed before is no frame either.
  std::fflush(stdout);
  return streams;
}

int serve(Target& target, const FrameStreams& streams) {
  Server server(target);
  while (true) {
    std::int64_t id = 0;  // Of an error in a request that cannot be read.
    Answer<ServerResult> answer = ServerResult{};
    try {
      auto incoming = next_request(streams.requests, id);
      if (!incoming) return 0;
      answer = server.answer(Fields(incoming->head, "the request"), incoming->tensors);
      if (auto* result = std::get_if<ServerResult>(&answer)) {
        if (!write_answer(streams.answers, result->content(id))) return 1;
        continue;
      }
    } catch (const std::exception& error) {  // Whatever a target throws must reach the other end.
      answer = Failure{Failure::Kind::crash, error.what()};
    }
    const auto* refusal = std::get_if<Refusal>(&answer);
    const FrameContent content = refusal != nullptr ? refused_answer(id, *refusal)
                                                    : error_answer(id, std::get<Failure>(answer));
    if (!write_answer(streams.answers, content) || refusal == nullptr) return 1;
  }
}

}  // namespace kvcheck::kernels
