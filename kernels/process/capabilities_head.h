// The answer to hello: who a target is and what it claims, for both ends.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// The fields of the answer.
nlohmann::json hello_fields(const Capabilities& claims);

/// \throws ProtocolError naming the field that is missing or of the wrong type, and when the
///         adapter speaks another protocol
Capabilities decode_hello(std::string_view head);

}  // namespace kvcheck::kernels
