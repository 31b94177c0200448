// The counters are those worked out by hand, under every order.
#include "kernels/simt/counters.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/kernels/simt/counted_kernels.h"
#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::simt {
namespace {

void expect_equal(const Counters& seen, const Counters& expected) {
  EXPECT_EQ(seen.shared_accesses, expected.shared_accesses);
  EXPECT_EQ(seen.bank_conflicts, expected.bank_conflicts);
  EXPECT_EQ(seen.global_loads, expected.global_loads);
  EXPECT_EQ(seen.global_load_bytes, expected.global_load_bytes);
  EXPECT_EQ(seen.global_load_sectors, expected.global_load_sectors);
  EXPECT_EQ(seen.global_stores, expected.global_stores);
  EXPECT_EQ(seen.global_store_bytes, expected.global_store_bytes);
  EXPECT_EQ(seen.global_store_sectors, expected.global_store_sectors);
  EXPECT_EQ(seen.block_barriers, expected.block_barriers);
  EXPECT_EQ(seen.matrix_products, expected.matrix_products);
}

TEST(Counters, AreThoseWorkedOutByHand) {
  for (const CountedKernel& kernel : counted_kernels()) {
    for (const Order order : kAllOrders) {
      SCOPED_TRACE(std::string(kernel.name) + ", " + std::string(to_string(order)));
      TestQueue test({order, 5});
      std::byte* const from = test.memory.allocate(kCountedBytes, Use::input, "from");
      std::byte* const to = test.memory.allocate(kCountedBytes, Use::read_write, "to");
      std::memset(from, 0, kCountedBytes);
      kernel.run(test.queue, {from, to});
      expect_equal(test.queue.counters(), kernel.expected);
      for (const Defect& defect : test.queue.take_defects()) ADD_FAILURE() << defect.sentence();
    }
  }
}

TEST(Counters, CanBeLeftOut) {
  const CountedKernel& kernel = counted_kernels().front();
  TestQueue test({}, {.memory = true, .counters = false});
  kernel.run(test.queue, {test.memory.allocate(kCountedBytes, Use::input, "from"),
                          test.memory.allocate(kCountedBytes, Use::read_write, "to")});
  expect_equal(test.queue.counters(), {});
}

TEST(Counters, Add) {
  Counters sum{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  sum.add({10, 20, 30, 40, 50, 60, 70, 80, 90, 100});
  expect_equal(sum, {11, 22, 33, 44, 55, 66, 77, 88, 99, 110});
}

}  // namespace
}  // namespace kvcheck::kernels::simt
