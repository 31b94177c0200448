// The request that runs one call of the operator itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/process/protocol.h"

namespace kvcheck::kernels {

/// The inputs of a call, in the order of the body; their bytes stay the call's.
std::vector<NamedTensor> call_tensors(const OperatorCall& call);

std::string call_head(std::int64_t id, const OperatorCall& call);

/// \throws ProtocolError unless the answer holds the outputs that were asked for, in that order
void check_call_answer(std::span<const TensorHead> tensors, const OperatorCall& call);

}  // namespace kvcheck::kernels
