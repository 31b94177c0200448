// Right kernels pass under every order; in each wrong one the defect is found, at its line.
#include "kernels/simt/monitor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/simt/test_launch.h"
#include "tests/kernels/simt/watched_kernels.h"

namespace kvcheck::kernels::simt {
namespace {

std::array<int, 2> lines{};

}  // namespace

void next_line_is(int which, int line) { lines[static_cast<std::size_t>(which)] = line + 1; }
int line_of(int which) { return lines[static_cast<std::size_t>(which)]; }

namespace {

struct Watched {
  TestQueue test;
  Buffers buffers;

  explicit Watched(Schedule schedule, Checks checks = {}) : test(schedule, checks) {
    constexpr std::size_t kBytes = 256 * sizeof(float);
    const auto floats = [&](Use use, const char* name) {
      return reinterpret_cast<float*>(test.memory.allocate(kBytes, use, name));
    };
    buffers = {floats(Use::input, "input"), floats(Use::output, "output"),
               floats(Use::scratch, "scratch"), floats(Use::read_write, "cache"),
               reinterpret_cast<unsigned*>(
                   test.memory.allocate(sizeof(unsigned), Use::read_write, "counter"))};
    for (int i = 0; i < 256; ++i) buffers.input[i] = static_cast<float>(i);
    *buffers.counter = 0;
  }
};

std::string sentences(const std::vector<Defect>& defects) {
  std::string text;
  for (const Defect& defect : defects) text += defect.sentence() + "\n";
  return text;
}

TEST(Monitor, RightKernelsHaveNoDefect) {
  for (const WatchedKernel& kernel : right_kernels()) {
    for (const Order order : kAllOrders) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Watched watched({order, seed});
        kernel.run(watched.test.queue, watched.buffers);
        const std::vector<Defect> defects = watched.test.queue.take_defects();
        ASSERT_TRUE(defects.empty()) << kernel.name << ", " << to_string(order) << ":\n"
                                     << sentences(defects);
      }
    }
  }
}

bool is_at(const SourcePlace& place, int line) {
  return place.file == "tests/kernels/simt/wrong_kernels.cpp" && place.line == line;
}

bool is_expected(const WrongKernel& kernel, const Defect& defect) {
  if (defect.kind != kernel.kind || defect.detail.find(kernel.words) == std::string::npos) {
    return false;
  }
  const int line = line_of(0), other = kernel.other == Other::same_line ? line : line_of(1);
  if (kernel.other == Other::none) {
    return is_at(defect.place, line) && defect.other.file.empty();
  }
  const bool either_way = kernel.kind == DefectKind::data_race && is_at(defect.place, other) &&
                          is_at(defect.other, line);
  return either_way || (is_at(defect.place, line) && is_at(defect.other, other));
}

TEST(Monitor, EveryWrongKernelIsFound) {
  for (const WrongKernel& kernel : wrong_kernels()) {
    for (const Order order : kAllOrders) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Watched watched({order, seed});
        kernel.run(watched.test.queue, watched.buffers);
        const std::vector<Defect> defects = watched.test.queue.take_defects();
        EXPECT_TRUE(std::any_of(defects.begin(), defects.end(),
                                [&](const Defect& defect) { return is_expected(kernel, defect); }))
            << kernel.name << ", " << to_string(order) << " " << seed << ", lines " << line_of(0)
            << " and " << line_of(1) << ":\n"
            << sentences(defects);
      }
    }
  }
}

TEST(Monitor, DefectsAreTheSameInEveryRun) {
  for (const WrongKernel& kernel : wrong_kernels()) {
    std::vector<std::string> runs;
    for (int run = 0; run < 2; ++run) {
      Watched watched({Order::random, 7});
      kernel.run(watched.test.queue, watched.buffers);
      runs.push_back(sentences(watched.test.queue.take_defects()));
    }
    EXPECT_EQ(runs[0], runs[1]) << kernel.name;
  }
}

}  // namespace
}  // namespace kvcheck::kernels::simt
