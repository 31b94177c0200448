// Prefixes of frames, and frames as parts for writev.
#include "kernels/process/frame.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <limits.h>

#include "kernels/process/fields.h"

namespace kvcheck::kernels {
namespace {

void store_little_endian(std::byte* where, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) where[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t load_little_endian(const std::byte* where, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(where[i]) << (8 * i);
  return value;
}

bool over_limits(const FramePrefix& prefix) {
  return prefix.head_bytes > kHeadLimit || prefix.body_bytes > kBodyLimit;
}

iovec part(const void* data, std::size_t bytes) { return {const_cast<void*>(data), bytes}; }

}  // namespace

std::array<std::byte, kPrefixBytes> encode_prefix(const FramePrefix& prefix) {
  std::array<std::byte, kPrefixBytes> bytes{};
  std::memcpy(bytes.data(), kFrameMagic.data(), kFrameMagic.size());
  store_little_endian(bytes.data() + 4, prefix.head_bytes, 4);
  store_little_endian(bytes.data() + 8, prefix.body_bytes, 8);
  return bytes;
}

FramePrefix decode_prefix(std::span<const std::byte, kPrefixBytes> bytes, FrameKind kind) {
  const bool answer = kind == FrameKind::answer;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kFrameMagic.size()) != kFrameMagic) {
    throw ProtocolError(fmt::format(
        "{} must start with {} but starts with \"{}\"; {}", answer ? "an answer" : "a request",
        kFrameMagic, shown(text, kPrefixBytes),
        answer ? "write nothing but frames to standard output, and messages to standard error"
               : "kernels/adapters/README.md describes frames"));
  }
  const FramePrefix prefix{load_little_endian(bytes.data() + 4, 4),
                           load_little_endian(bytes.data() + 8, 8)};
  if (over_limits(prefix)) {
    throw ProtocolError(fmt::format(
        "the {} announces a head of {} and a body of {} bytes; the limits are {} and {}",
        answer ? "answer" : "request", prefix.head_bytes, prefix.body_bytes, kHeadLimit,
        kBodyLimit));
  }
  return prefix;
}

OutgoingFrame::OutgoingFrame(std::string_view what, std::string_view head,
                             std::span<const NamedTensor> tensors) {
  FramePrefix prefix{head.size(), 0};
  for (const auto& [name, tensor] : tensors) prefix.body_bytes += tensor->bytes.size();
  if (over_limits(prefix)) {
    throw std::length_error(
        fmt::format("{} takes a head of {} and a body of {} bytes; the limits are {} and {}", what,
                    prefix.head_bytes, prefix.body_bytes, kHeadLimit, kBodyLimit));
  }
  prefix_ = encode_prefix(prefix);
  parts_ = {part(prefix_.data(), prefix_.size()), part(head.data(), head.size())};
  for (const auto& [name, tensor] : tensors) {
    if (!tensor->bytes.empty()) parts_.push_back(part(tensor->bytes.data(), tensor->bytes.size()));
  }
}

bool OutgoingFrame::write_to(int descriptor) {
  const auto count = std::min<std::size_t>(parts_.size() - next_, IOV_MAX);
  const ssize_t result = ::writev(descriptor, &parts_[next_], static_cast<int>(count));
  if (result < 0) return false;
  auto written = static_cast<std::size_t>(result);
  while (next_ < parts_.size() && written >= parts_[next_].iov_len) {
    written -= parts_[next_++].iov_len;
  }
  if (written > 0) {
    parts_[next_].iov_base = static_cast<std::byte*>(parts_[next_].iov_base) + written;
    parts_[next_].iov_len -= written;
  }
  return true;
}

}  // namespace kvcheck::kernels
