// The optional inputs and attributes of a session.
#pragma once

#include "kernels/cpu/refusal.h"

namespace kvcheck::kernels {

/// Softcap, sinks, rotary embedding, norm, quantisation, intermediates, forms of the inputs.
/// \pre operator and shape of the session are sound
Reason check_features(const SessionConfig& config);

}  // namespace kvcheck::kernels
