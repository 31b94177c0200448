// The request that opens a session: its head, and the tensors that a session is given once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/process/protocol.h"

namespace kvcheck::kernels {

/// The parameters that come as tensors, in the order of the body; their bytes stay the config's.
std::vector<NamedTensor> session_tensors(const SessionConfig& config);

/// Fields that came after the first release of the protocol are written only where they are not at
/// their default, so that a reader that does not know one refuses just the sessions that use it.
std::string open_head(std::int64_t id, std::int64_t session, const SessionConfig& config);

}  // namespace kvcheck::kernels
