// Protocol of process targets: frames and their JSON heads.
//
// A frame is a prefix of 16 bytes (magic, length of the head, length of the body; little-endian),
// a JSON head, and a body of raw little-endian tensors in the order that the head lists them.
// kernels/adapters/README.md describes every request and answer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/target.h"

namespace kvcheck::kernels {

inline constexpr int kProtocol = 1;
inline constexpr std::string_view kFrameMagic = "KVC1";
inline constexpr std::size_t kPrefixBytes = 16;
inline constexpr std::uint64_t kHeadLimit = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kBodyLimit = std::uint64_t{1} << 31;

/// The other end sent what the protocol does not allow; the message says what and what instead.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FramePrefix {
  std::uint64_t head_bytes = 0;
  std::uint64_t body_bytes = 0;
};

/// \pre head_bytes <= kHeadLimit, body_bytes <= kBodyLimit
std::array<std::byte, kPrefixBytes> encode_prefix(const FramePrefix& prefix);

/// \throws ProtocolError for a wrong magic or lengths over the limits
FramePrefix decode_prefix(std::span<const std::byte, kPrefixBytes> bytes);

/// A tensor of a request, by name; the bytes stay the caller's.
struct NamedTensor {
  std::string_view name;
  const Tensor* tensor = nullptr;
};

/// Heads of requests, as compact JSON; session_head.h has that of open. Numbers that JSON lacks
/// are the strings "nan", "inf" and "-inf".
std::string hello_head(std::int64_t id);
std::string step_head(std::int64_t id, std::int64_t session, const StepRequest& request,
                      bool want_rows, std::span<const NamedTensor> tensors);
std::string rollback_head(std::int64_t id, std::int64_t session,
                          std::span<const std::int64_t> tokens);
std::string load_head(std::int64_t id, std::int64_t session, std::span<const std::int64_t> lengths,
                      std::span<const NamedTensor> tensors);
std::string present_head(std::int64_t id, std::int64_t session);
std::string close_head(std::int64_t id, std::int64_t session);

/// A tensor as the head of an answer announces it.
struct TensorHead {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

/// The head of an answer.
struct AnswerHead {
  enum class Kind { ok, refused, error };
  Kind kind = Kind::ok;
  std::string text;                 ///< Reason of a refusal, detail of an error.
  std::vector<TensorHead> tensors;  ///< In the order of the body; empty unless ok.
};

/// \throws ProtocolError when the head is not JSON, belongs to another request, is of an unknown
///         kind, or its tensors do not take body_bytes
AnswerHead decode_answer(std::string_view head, std::int64_t id, std::uint64_t body_bytes);

/// The answer to hello.
/// \throws ProtocolError naming the field that is missing or of the wrong type, and when the
///         adapter speaks another protocol
Capabilities decode_hello(std::string_view head);

}  // namespace kvcheck::kernels
