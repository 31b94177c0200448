// The tables of launches of both worlds.
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/kernel_table.h"

namespace kvcheck::kernels::device {
namespace {

TEST(Launchers, TheSimtWorldHasEveryKernel) {
  const KernelTable& table = simt_kernels();
  EXPECT_NE(table.append, nullptr);
  EXPECT_NE(table.move, nullptr);
  EXPECT_NE(table.unfused, nullptr);
}

TEST(Launchers, TheGpuWorldHasThemOrSaysWhyNot) {
  const KernelTable* const table = gpu_kernels();
  const std::string why = why_no_gpu_kernels();
  EXPECT_EQ(table == nullptr, !why.empty()) << why;
  if (table == nullptr) return;
  // Functions of another world under the same names.
  EXPECT_NE(table->append, simt_kernels().append);
  EXPECT_NE(table->move, nullptr);
  EXPECT_NE(table->unfused, nullptr);
}

}  // namespace
}  // namespace kvcheck::kernels::device
