// The request that opens a session: its head, and the tensors that a session is given once.
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/process/protocol.h"

namespace kvcheck::kernels {

/// Fields that came after the first release of the protocol are written only where they are not at
/// their default, so that a reader that does not know one refuses just the sessions that use it.
FrameContent open_request(std::int64_t id, std::int64_t session, const SessionConfig& config);

/// The same, read by the other end. Shapes are not looked at. A field that is not known is refused.
/// \throws ProtocolError naming what is missing or of the wrong type
std::variant<SessionConfig, Refusal> decode_open(const Fields& head, RequestTensors& tensors);

}  // namespace kvcheck::kernels
