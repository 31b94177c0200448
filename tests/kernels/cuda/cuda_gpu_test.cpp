// The targets cuda and cuda-q8: there where a GPU is, else unavailable with the reason and the
// remedy.
#include "kernels/cuda/cuda_gpu.h"

#include <gtest/gtest.h>

#include "kernels/cuda/gpu_machine.h"
#include "kernels/registry.h"

namespace kvcheck::kernels {
namespace {

TEST(CudaGpu, IsThereOrSaysWhyNot) {
  const std::string problem = cuda_problem();
  EXPECT_EQ(problem, device::gpu_problem());
  EXPECT_EQ(problem.empty(), !device::gpu_name().empty());
  EXPECT_EQ(problem.empty(), device::make_gpu_machine() != nullptr);
  for (const bool quantised : {false, true}) {
    const auto target = make_cuda(quantised);
    ASSERT_EQ(problem.empty(), target != nullptr);
    if (!target) continue;
    const Capabilities& can = target->capabilities();
    EXPECT_EQ(can.name, quantised ? "cuda-q8" : "cuda");
    EXPECT_NE(can.version.find(device::gpu_name()), std::string::npos) << can.version;
    // A device orders its threads as it likes: no order can be asked for.
    EXPECT_FALSE(can.has("schedule_bits"));
    EXPECT_TRUE(can.has("repeat_bits"));
  }
}

TEST(CudaGpu, IsListedWithItsReason) {
  for (const char* name : {"cuda", "cuda-q8"}) {
    bool listed = false;
    for (const TargetInfo& info : list_targets({})) {
      if (info.name != name) continue;
      listed = true;
      EXPECT_EQ(info.available, cuda_problem().empty()) << name;
      EXPECT_EQ(info.reason, info.available ? "" : std::string(name) + " " + cuda_problem());
    }
    EXPECT_TRUE(listed) << name;
    const auto made = make_target(name, {});
    if (const auto* unavailable = std::get_if<Unavailable>(&made)) {
      EXPECT_FALSE(unavailable->unknown) << name;
      EXPECT_EQ(unavailable->reason, std::string(name) + " " + cuda_problem());
    } else {
      EXPECT_EQ(cuda_problem(), "") << name;
    }
  }
}

TEST(CudaGpu, HasNoPlantedFaults) {
  const auto made = make_target("cuda+move_barrier_removed", {});
  ASSERT_TRUE(std::holds_alternative<Unavailable>(made));
  EXPECT_NE(std::get<Unavailable>(made).reason.find("cuda has no planted fault"),
            std::string::npos);
}

}  // namespace
}  // namespace kvcheck::kernels
