// The optional inputs and attributes of a session.
#pragma once

#include "kernels/cpu/refusal.h"

namespace kvcheck::kernels {

/// Softcap, sinks, rotary embedding, norm, quantisation, intermediates, forms of the inputs, launches.
/// \pre operator and shape of the session are sound
Reason check_features(const SessionConfig& config);

/// What the session asks for and the target does not claim, of that which some target here lacks.
Reason check_claimed_features(const Capabilities& can, const SessionConfig& config);

}  // namespace kvcheck::kernels
