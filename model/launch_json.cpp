// Reading and writing launches.
#include "model/launch_json.h"

namespace kvcheck::model {

void read_launch(const Json& json, LaunchSpec& launch) {
  Reader reader(json, "launch");
  using enum LaunchOrder;
  reader.read("order", launch.order, {lockstep, random, reverse, priority, starve});
  reader.read("seed", launch.seed);
  reader.read("kernel", launch.kernel,
              {LaunchKernel::any, LaunchKernel::unfused, LaunchKernel::decode,
               LaunchKernel::decode_matrix, LaunchKernel::prefill});
  reader.read("threads", launch.threads);
  reader.read("split_positions", launch.split_positions);
  reader.finish();
}

Json launch_json(const LaunchSpec& launch) {
  return {{"order", to_string(launch.order)},
          {"seed", launch.seed},
          {"kernel", to_string(launch.kernel)},
          {"threads", launch.threads},
          {"split_positions", launch.split_positions}};
}

}  // namespace kvcheck::model
