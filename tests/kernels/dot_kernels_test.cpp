// The bf16 dot products by hand: their arithmetic, and keys that a row may not see.
#include "kernels/cpu/flash/dot_kernels.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/kernels/dot_sequence.h"

namespace kvcheck::kernels::flash {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(DotKernels, TakeBf16Alone) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  const Kernels& kernels = *dot_kernels();
  EXPECT_STREQ(kernels.isa, "avx512_bf16");
  for (int storage = 0; storage < kStorages; ++storage) {
    EXPECT_EQ(kernels.chunk_pass[storage] != nullptr, storage == static_cast<int>(Storage::bf16));
  }
  // Unasked, no session meets them.
  for (const Kernels* here : kernels_here()) EXPECT_NE(here->isa, kernels.isa);
  EXPECT_EQ(kernels_for("avx512_bf16"), nullptr);
}

TEST(DotKernels, EqualLogitsGiveTheMeanOfTheValues) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  DotSequence sequence(DotSequence::one_head(3));
  const Floats queries(9, 0.0f);
  EXPECT_EQ(sequence.append(queries, Floats(9, 1.0f), {1, 2, 3, 3, 4, 5, 8, 9, 10}),
            (Floats{1, 2, 3, 2, 3, 4, 4, 5, 6}));
}

TEST(DotKernels, WeightsAreRoundedToBf16InTheSumAsWell) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  DotSequence sequence(DotSequence::one_head(1));
  // Logits 0 and -1. exp(-1) = 0.36788 lies between 0.3671875 and 0.369140625, nearer the first.
  const float output = sequence.append({1, 1}, {0, -1}, {0, 1})[1];
  EXPECT_EQ(output, 0.3671875f * (1 / 1.3671875f));
  // Without the rounding of the sum it would be 0.3671875 / 1.36788.
  EXPECT_GT(std::abs(output - 0.3671875f / 1.36788f), 1e-4f);
}

/// The logit of one key, raw.
float logit(std::int64_t lanes, const Floats& query, const Floats& key, float scale = 1) {
  SessionConfig config = DotSequence::one_head(lanes);
  config.scale = scale;
  FlashAttention attention({1, 1, 1, lanes, lanes, Storage::bf16}, *dot_kernels(), 1);
  std::vector<Bfloat> rows;
  for (const Floats& row : {key, query}) {
    for (const float number : row) rows.push_back(to_bfloat(number));
  }
  auto* const bytes = reinterpret_cast<std::byte*>(rows.data());
  const RowView view{bytes, lanes * 2, lanes * 2};
  const EntryRows entry{view, view, 0, 1};
  const std::int64_t one = 1;
  const KeyRange range{0, 1};
  FlashStep step;
  step.entries = {&entry, 1};
  step.queries = {&one, 1};
  step.max_queries = 1;
  step.ranges = {&range, 1};
  step.query = RowSource::dense(bytes + lanes * 2, 1, 1, lanes * 2);
  step.query_type = Storage::bf16;
  step.scale = scale;
  float found = kNaN;
  attention.products(step, [&](auto, auto, auto, auto, const float* logits, auto visible) {
    if (visible == 1) found = logits[0];
  });
  return found;
}

TEST(DotKernels, LanesAreSummedInOneChainOddOnesFirst) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  constexpr float tiny = 0x1p-24f, more = 0x1.02p-24f;
  // 1 + more rounds up to 1 + 2^-23, and a tie from there goes to the even 1 + 2^-22. The even lane
  // first, or the pair before the rest, end at 1 + 2^-23.
  EXPECT_EQ(logit(4, {1, 1, 1, 1}, {1, 0, tiny, more}), 1 + 0x1p-22f);
  EXPECT_EQ(logit(4, {1, 1, 1, 1}, {1, 0, more, tiny}), 1 + 0x1p-23f);
  // 1.0078125^2 = 1 + 2^-6 + 2^-14 needs 15 bits, which a product in f32 keeps.
  EXPECT_EQ(logit(2, {0x1.02p0f, 1}, {0x1.02p0f, -1}), 0x1.01p-6f);
  EXPECT_EQ(logit(3, {1, 2, 4}, {1, 10, 100}, 0.5f), 210.5f);
}

TEST(DotKernels, SubnormalOperandsCountAsZero) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  EXPECT_EQ(logit(1, {0x1p100f}, {0x1p-127f}), 0);
  EXPECT_EQ(logit(1, {0x1p100f}, {0x1p-126f}), 0x1p-26f);
}

TEST(DotKernels, RoundsQueriesOfF32) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  const float query[] = {1 + 0x1p-8f, 3, 1 + 0x1.8p-7f};  // A tie to 1, and one to 1 + 2^-6.
  float pairs[8];
  dot_kernels()->load_query[0](reinterpret_cast<const std::byte*>(query), nullptr, 5, 3, 8, pairs);
  std::uint32_t words[4];
  std::memcpy(words, pairs, sizeof words);
  EXPECT_EQ(words[0], 0x40403f80u);
  EXPECT_EQ(words[1], 0x00003f82u);
  EXPECT_EQ(words[2], 0u);
}

TEST(DotKernels, TheUnseenHalfOfAPairHasNoInfluence) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  // Query 0 sees the even key of a pair, whose odd one holds NaN.
  DotSequence causal(DotSequence::one_head(2));
  const Floats queries{1, 1, 1, 1};
  Floats output = causal.append(queries, {0, 0, kNaN, 1}, {3, 4, kNaN, kNaN});
  EXPECT_EQ(output[0], 3);
  EXPECT_EQ(output[1], 4);
  EXPECT_TRUE(std::isnan(output[2]));
  // A window of one: query 1 sees the odd key of a pair, whose even one holds NaN.
  SessionConfig config = DotSequence::one_head(2);
  config.window_size = 1;
  DotSequence windowed(config);
  output = windowed.append(queries, {kNaN, 1, 0, 0}, {kNaN, kNaN, 3, 4});
  EXPECT_TRUE(std::isnan(output[0]));
  EXPECT_EQ(output[2], 3);
  EXPECT_EQ(output[3], 4);
}

/// Hides the positions that are given.
class Hiding final : public MaskSource {
 public:
  explicit Hiding(std::vector<std::int64_t> positions) : positions_(std::move(positions)) {}
  void fill(std::int64_t, std::int64_t, std::int64_t, std::int64_t first, std::int64_t count,
            float* added) const override {
    std::fill_n(added, count, 0.0f);
    for (const std::int64_t position : positions_) {
      if (first <= position && position < first + count) {
        added[position - first] = -std::numeric_limits<float>::infinity();
      }
    }
  }

 private:
  std::vector<std::int64_t> positions_;
};

TEST(DotKernels, AMaskHidesHalvesOfPairs) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  SessionConfig config = DotSequence::one_head(1);
  config.query_heads = 4;  // Four rows that see the same.
  DotSequence sequence(config);
  const Hiding mask({1, 2, 4, 5});
  const Floats output =
      sequence.append(Floats(32, 0), Floats(8, 1), {1, kNaN, kNaN, 2, kNaN, kNaN, 3, 6}, &mask);
  EXPECT_EQ(Floats(output.begin(), output.begin() + 12), Floats(12, 1));
  EXPECT_EQ(Floats(output.end() - 4, output.end()), Floats(4, 3));
}

TEST(DotKernels, ARowWithoutKeysIsZero) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  DotSequence sequence(DotSequence::one_head(1));
  EXPECT_EQ(sequence.append({1, 1}, {}, {}), (Floats{0, 0}));
  const Hiding all({0, 1, 2});
  EXPECT_EQ(sequence.append({1, 1}, {1, 1}, {5, 7}, &all), (Floats{0, 0}));
}

TEST(DotKernels, ExpIsWithinWhatIsDeclared) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  const auto exp = dot_kernels()->exp;
  EXPECT_EQ(exp(0), 1);
  EXPECT_EQ(exp(-0.0f), 1);
  EXPECT_EQ(exp(-std::numeric_limits<float>::infinity()), 0);
  EXPECT_TRUE(std::isnan(exp(kNaN)));
  EXPECT_EQ(exp(-87.34f), 0);
  double worst = 0;
  for (float x = -87.336f; x < 0; x += 0.0007f) {
    const double truth = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp(x) - truth) / truth);
  }
  EXPECT_LE(worst, 0x1p-17);
  EXPECT_GE(worst, 0x1p-19);  // That of the polynomial.
}

TEST(DotKernels, LogitsFarBelowTheMaximumWeighNothing) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  DotSequence sequence(DotSequence::one_head(1));
  // exp(-87.5) is subnormal; exp(-87) = 1.6e-38 is not, times 2^100 = 2.1e-8.
  EXPECT_EQ(sequence.append({1, 1}, {0, -87.5f}, {0, 0x1p100f})[1], 0);
  EXPECT_NEAR(sequence.append({1}, {-87}, {0x1p100f})[0], std::exp(-87.0) * 0x1p100, 1e-10);
}

}  // namespace
}  // namespace kvcheck::kernels::flash
