// Names of launches.
#include "model/launch.h"

namespace kvcheck::model {

std::string_view to_string(LaunchOrder order) {
  switch (order) {
    case LaunchOrder::lockstep:
      return "lockstep";
    case LaunchOrder::random:
      return "random";
    case LaunchOrder::reverse:
      return "reverse";
    case LaunchOrder::priority:
      return "priority";
    case LaunchOrder::starve:
      return "starve";
  }
  return "?";
}

std::string_view to_string(LaunchKernel kernel) {
  switch (kernel) {
    case LaunchKernel::any:
      return "any";
    case LaunchKernel::unfused:
      return "unfused";
    case LaunchKernel::decode:
      return "decode";
    case LaunchKernel::decode_matrix:
      return "decode_matrix";
    case LaunchKernel::prefill:
      return "prefill";
  }
  return "?";
}

}  // namespace kvcheck::model
