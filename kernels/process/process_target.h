// Process target: a foreign program that speaks the kvcheck protocol on its standard streams.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "kernels/target.h"

namespace kvcheck::kernels {

struct ProcessOptions {
  std::string label;    ///< Names the target in messages.
  std::string program;  ///< Path; without a slash it is looked for in PATH.
  std::vector<std::string> arguments;
  std::chrono::milliseconds time_limit{10000};   ///< For one request.
  std::chrono::milliseconds start_limit{60000};  ///< From the start to the end of the handshake.
};

/// Starts the program and shakes hands with it; a Failure says why there is no target.
///
/// Whatever the program does - it dies, hangs, or answers nonsense - comes back as a Failure of
/// the request; it is then ended with every process of its group and started again by the next
/// open(). A request that is itself malformed throws std::invalid_argument.
std::variant<std::unique_ptr<Target>, Failure> make_process_target(ProcessOptions options);

}  // namespace kvcheck::kernels
