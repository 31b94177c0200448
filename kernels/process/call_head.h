// The request that runs one call of the operator itself.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/process/protocol.h"

namespace kvcheck::kernels {

/// The tensors are the inputs of the call, in its order.
FrameContent call_request(std::int64_t id, const OperatorCall& call);

/// The same, read by the other end.
/// \throws ProtocolError naming what is missing or of the wrong type
OperatorCall decode_call(const Fields& head, RequestTensors& tensors);

/// \throws ProtocolError unless the answer holds the outputs that were asked for, in that order
void check_call_answer(std::span<const TensorHead> tensors, const OperatorCall& call);

}  // namespace kvcheck::kernels
