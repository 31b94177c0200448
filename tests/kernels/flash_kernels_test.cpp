// The tables of tile kernels: which there are, how one is chosen, and what their entries do alone.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/flash/elements.h"
#include "kernels/cpu/flash/workspace.h"
#include "tests/kernels/flash_sequence.h"

namespace kvcheck::kernels::flash {
namespace {

/// KVCHECK_ISA for the time of a test.
class Asked {
 public:
  explicit Asked(const char* isa) {
    if (const char* before = std::getenv("KVCHECK_ISA")) before_ = before;
    setenv("KVCHECK_ISA", isa, 1);
  }
  ~Asked() {
    if (before_.empty()) {
      unsetenv("KVCHECK_ISA");
    } else {
      setenv("KVCHECK_ISA", before_.c_str(), 1);
    }
  }

 private:
  std::string before_;
};

TEST(Kernels, EndWithTheOneThatRunsAnywhere) {
  const auto& here = kernels_here();
  ASSERT_FALSE(here.empty());
  EXPECT_STREQ(here.back()->isa, "scalar");
  std::vector<std::string> names;
  for (const Kernels* kernels : here) names.push_back(kernels->isa);
  std::vector<std::string> known;
  for (const char* isa : {"avx512", "avx2", "scalar"}) {
    if (std::count(names.begin(), names.end(), isa) > 0) known.push_back(isa);
  }
  EXPECT_EQ(names, known);  // Widest first, each once, no other.
}

TEST(Kernels, AreChosenByNameThenByTheEnvironmentThenByWidth) {
  EXPECT_STREQ(kernels_for("scalar")->isa, "scalar");
  EXPECT_EQ(kernels_for("neon"), nullptr);
  {
    const Asked asked("scalar");
    EXPECT_STREQ(kernels_for("")->isa, "scalar");
    for (const Kernels* kernels : kernels_here()) EXPECT_EQ(kernels_for(kernels->isa), kernels);
  }
  const Asked nothing("none");
  EXPECT_EQ(kernels_for(""), nullptr);
}

TEST(Kernels, LoadQueriesExactlyAndPadThemWithZeros) {
  for (const Kernels* kernels : kernels_here()) {
    for (const std::int64_t lanes : {1, 3, 7, 8, 9, 15, 16, 17, 40, 65}) {
      const std::int64_t padded = (lanes + 7) / 8 * 8;
      Floats floats(static_cast<std::size_t>(lanes)), scales(floats.size());
      std::vector<Half> halves(floats.size());
      std::vector<Bfloat> bfloats(floats.size());
      for (std::size_t i = 0; i < floats.size(); ++i) {
        floats[i] = static_cast<float>(static_cast<int>(37 * i % 256) - 128);
        scales[i] = static_cast<float>(i % 5);
        halves[i] = to_half(floats[i]);
        bfloats[i] = to_bfloat(floats[i]);
      }
      const void* const rows[] = {floats.data(), halves.data(), bfloats.data()};
      for (int type = 0; type < 3; ++type) {
        for (const bool scaled : {false, true}) {
          Floats to(static_cast<std::size_t>(padded) + 1, 99), expected = floats;
          kernels->load_query[type](static_cast<const std::byte*>(rows[type]),
                                    scaled ? scales.data() : nullptr, 0.25f, lanes, padded,
                                    to.data());
          for (std::size_t i = 0; i < floats.size(); ++i) {
            expected[i] *= scaled ? scales[i] * 0.25f : 0.25f;
          }
          expected.resize(static_cast<std::size_t>(padded), 0);
          expected.push_back(99);
          EXPECT_EQ(to, expected) << kernels->isa << type << ' ' << lanes << scaled;
        }
      }
    }
  }
}

TEST(Kernels, LoadEveryHalfAndBfloat) {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  const auto* rows = reinterpret_cast<const std::byte*>(bits.data());
  for (const Kernels* kernels : kernels_here()) {
    Floats halves(65536), bfloats(65536);
    kernels->load_query[1](rows, nullptr, 1, 65536, 65536, halves.data());
    kernels->load_query[2](rows, nullptr, 1, 65536, 65536, bfloats.data());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const Half half{bits[i]};
      const Bfloat bfloat{bits[i]};
      if (std::isnan(halves[i])) {
        ASSERT_TRUE(std::isnan(element_at(&half, 0)));
      } else {
        ASSERT_TRUE(same_bits({halves[i]}, {element_at(&half, 0)})) << kernels->isa << i;
      }
      if (!std::isnan(bfloats[i])) {
        ASSERT_TRUE(same_bits({bfloats[i]}, {element_at(&bfloat, 0)})) << kernels->isa << i;
      }
    }
  }
}

/// Two rows of 16 lanes.
struct Rows {
  static constexpr UnitShape kShape{2, 8, 16};
  Floats memory = Floats(static_cast<std::size_t>(kShape.partial_floats()), 0);
  Partial partial() { return partial_at(memory.data(), kShape); }
  void set(int row, float maximum, float sum, float output) {
    partial().maximum[row] = maximum;
    std::fill_n(partial().sums + row * kSumLanes, kSumLanes, sum);
    std::fill_n(partial().output + row * 16, 16, output);
  }
};

TEST(Merge, RescalesTheSideWithTheSmallerMaximum) {
  for (const Kernels* kernels : kernels_here()) {
    Rows into, chunk;
    into.set(0, 2, 3, 5);
    chunk.set(0, 2, 4, 7);  // The same maximum: plain sums.
    into.set(1, 1000, 1, 1);
    chunk.set(1, 0, 9, 9);  // exp(-1000) is 0.
    kernels->merge_rows(into.partial(), chunk.partial(), 2, 16);
    EXPECT_EQ(into.partial().sums[15], 7);
    EXPECT_EQ(into.partial().output[3], 12);
    EXPECT_EQ(into.partial().maximum[1], 1000);
    EXPECT_EQ(into.partial().sums[16], 1);
    EXPECT_EQ(into.partial().output[16], 1);
    // ln 2 higher: what was there counts half.
    into.set(0, 0, 2, 4);
    chunk.set(0, 0.69314718f, 1, 1);
    kernels->merge_rows(into.partial(), chunk.partial(), 1, 16);
    EXPECT_NEAR(into.partial().sums[0], 2, 1e-6);
    EXPECT_NEAR(into.partial().output[0], 3, 1e-6);
  }
}

TEST(Merge, OfRowsWithoutKeysChangesNothing) {
  for (const Kernels* kernels : kernels_here()) {
    Rows into, chunk;
    into.set(0, -kInfinity, 0, 0);
    chunk.set(0, -kInfinity, 0, 0);
    into.set(1, -3, 2, -5);
    chunk.set(1, -kInfinity, 0, 0);
    kernels->merge_rows(into.partial(), chunk.partial(), 2, 16);
    EXPECT_EQ(into.partial().maximum[0], -kInfinity);
    EXPECT_EQ(into.partial().sums[0], 0);
    EXPECT_EQ(into.partial().sums[16], 2);
    chunk.set(0, 4, 2, 6);  // And the first keys are taken as they are.
    kernels->merge_rows(into.partial(), chunk.partial(), 1, 16);
    EXPECT_EQ(into.partial().maximum[0], 4);
    EXPECT_EQ(into.partial().sums[0], 2);
    EXPECT_EQ(into.partial().output[15], 6);
  }
}

TEST(Finish, DividesByTheSumOfAllLanesAndTheSink) {
  for (const Kernels* kernels : kernels_here()) {
    Rows rows;
    Floats to(16, -1);
    const auto finish = [&](const float* sink) {
      return kernels->finish_row(rows.partial(), 0, sink, 16, to.data());
    };
    rows.set(0, 3, 0.5f, 12);  // 16 lanes of 0.5: 8.
    EXPECT_EQ(finish(nullptr), 8);
    EXPECT_EQ(to, Floats(16, 1.5f));
    rows.set(0, 3, 0.5f, 12);
    const float sink = 3;  // One more weight of 1.
    EXPECT_EQ(finish(&sink), 9);
    EXPECT_NEAR(to[15], 12.0 / 9, 1e-6);
    rows.set(0, -kInfinity, 0, 0);  // A sink alone.
    EXPECT_EQ(finish(&sink), 1);
    EXPECT_TRUE(same_bits(to, Floats(16, 0)));
    rows.set(0, -kInfinity, 0, 0);
    EXPECT_EQ(finish(nullptr), 0);
    EXPECT_TRUE(same_bits(to, Floats(16, 0)));
  }
}

}  // namespace
}  // namespace kvcheck::kernels::flash
