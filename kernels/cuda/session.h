// A session on a machine: the step that every target of kernels/cuda answers.
#pragma once

#include <memory>

#include "kernels/cuda/machine.h"
#include "kernels/target.h"

namespace kvcheck::kernels::device {

/// \pre check_config(config) is empty and the target's claims hold
std::unique_ptr<Session> make_session(std::unique_ptr<Machine> machine,
                                      const SessionConfig& config);

/// What sessions of make_session take and promise; name, version, arithmetic and what the machine
/// adds are left open. \param quantised int8 caches alone
Capabilities session_claims(bool quantised);

}  // namespace kvcheck::kernels::device
