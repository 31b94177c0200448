// Frames: what travels between the tool and a target, request and answer alike.
//
// A frame is a prefix of 16 bytes (magic, length of the head, length of the body; little-endian),
// a JSON head, and a body of raw little-endian tensors in the order that the head lists them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>
#include <sys/uio.h>

#include "kernels/target.h"

namespace kvcheck::kernels {

inline constexpr std::string_view kFrameMagic = "KVC1";
inline constexpr std::size_t kPrefixBytes = 16;
inline constexpr std::uint64_t kHeadLimit = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kBodyLimit = std::uint64_t{1} << 31;

/// The other end sent what the protocol does not allow; the message says what and what instead.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Which way a frame goes; for messages to whoever wrote it.
enum class FrameKind { request, answer };

struct FramePrefix {
  std::uint64_t head_bytes = 0;
  std::uint64_t body_bytes = 0;
};

/// \pre head_bytes <= kHeadLimit, body_bytes <= kBodyLimit
std::array<std::byte, kPrefixBytes> encode_prefix(const FramePrefix& prefix);

/// \throws ProtocolError for a wrong magic or lengths over the limits
FramePrefix decode_prefix(std::span<const std::byte, kPrefixBytes> bytes, FrameKind kind);

/// A tensor of a frame, by name; name and bytes stay the caller's.
struct NamedTensor {
  std::string_view name;
  const Tensor* tensor = nullptr;
};

/// A head as compact JSON and the tensors behind it.
struct FrameContent {
  std::string head;
  std::vector<NamedTensor> tensors;
};

/// A tensor as a head announces it.
struct TensorHead {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

/// A frame on its way out.
class OutgoingFrame {
 public:
  /// Head and tensors must stay until the frame is done. `what` names it in messages: "step".
  /// \throws std::length_error over the limits
  OutgoingFrame(std::string_view what, std::string_view head, std::span<const NamedTensor> tensors);
  OutgoingFrame(const OutgoingFrame&) = delete;
  OutgoingFrame& operator=(const OutgoingFrame&) = delete;

  bool done() const { return next_ == parts_.size(); }

  /// Writes as much as the descriptor takes at once; false leaves the reason in errno.
  bool write_to(int descriptor);

 private:
  std::array<std::byte, kPrefixBytes> prefix_;
  std::vector<iovec> parts_;
  std::size_t next_ = 0;
};

}  // namespace kvcheck::kernels
