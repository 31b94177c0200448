// kvcheck_counted_steps: the launches of counted_steps.h, in either world, for device_check.sh.
//
//   kvcheck_counted_steps simt    what the SIMT runtime counts of each launch: JSON, a line each
//   kvcheck_counted_steps gpu     the same launches on a GPU, for a profiler to count
//
// Exit code 0: done; 1: a kernel failed; 77: there is no GPU for `gpu`; 254: another command line.
#include <exception>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "kernels/cuda/counted_steps.h"
#include "kernels/cuda/gpu_machine.h"

namespace kvcheck::kernels::device {
namespace {

constexpr int kFailed = 1, kSkipped = 77, kUsage = 254;

int fail(int code, const std::string& words) {
  std::cerr << "kvcheck_counted_steps: " << words << "\n";
  return code;
}

int on_simt() {
  for (const CountedLaunch& launch : simt_counted_launches()) {
    const simt::Counters& c = launch.counters;
    const nlohmann::ordered_json line{{"step", launch.step},
                                      {"kernel", launch.kernel},
                                      {"global_load_sectors", c.global_load_sectors},
                                      {"global_store_sectors", c.global_store_sectors},
                                      {"bank_conflicts", c.bank_conflicts},
                                      {"global_loads", c.global_loads},
                                      {"global_load_bytes", c.global_load_bytes},
                                      {"global_stores", c.global_stores},
                                      {"global_store_bytes", c.global_store_bytes},
                                      {"shared_accesses", c.shared_accesses},
                                      {"block_barriers", c.block_barriers},
                                      {"matrix_products", c.matrix_products}};
    std::cout << line.dump() << "\n";
  }
  return std::cout.flush() ? 0 : fail(kFailed, "cannot write the counts");
}

int on_gpu() {
  if (const std::string problem = gpu_problem(); !problem.empty()) return fail(kSkipped, problem);
  const auto machine = make_gpu_machine();
  const auto steps = counted_steps(*machine, gpu_probe);
  if (const auto failure = machine->finish()) return fail(kFailed, failure->detail);
  for (const CountedStep& step : steps) {
    step.call(machine->kernels());
    if (const auto failure = machine->finish()) {
      return fail(kFailed, step.name + ": " + failure->detail);
    }
  }
  return 0;
}

}  // namespace
}  // namespace kvcheck::kernels::device

int main(int count, char** words) {
  using namespace kvcheck::kernels::device;
  const std::string command = count == 2 ? words[1] : "";
  try {
    if (command == "simt") return on_simt();
    if (command == "gpu") return on_gpu();
    return fail(kUsage, "usage: kvcheck_counted_steps simt|gpu");
  } catch (const std::exception& error) {
    return fail(kFailed, error.what());
  }
}
