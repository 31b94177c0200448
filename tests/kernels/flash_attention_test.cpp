// Tiled attention on rows laid out by hand: means, single keys, and rows that no one may see.
#include "kernels/cpu/flash/flash_attention.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

#include "tests/kernels/flash_sequence.h"

namespace kvcheck::kernels::flash {
namespace {

/// One KV head of f32 rows and two query heads; keys and values of eight and 24 lanes.
class Buffer {
 public:
  static constexpr std::int64_t kKeys = 8, kValues = 24, kHeads = 2;

  explicit Buffer(std::int64_t rows) : rows_(rows), attention_(shape(), *kernels_here()[0], 1) {
    // Rows without a position hold NaN.
    key_.assign(static_cast<std::size_t>(rows * kKeys), kNaN);
    value_.assign(static_cast<std::size_t>(rows * kValues), kNaN);
  }

  void set(std::int64_t row, float key, float value) {
    std::fill_n(key_.begin() + row * kKeys, kKeys, key);
    std::fill_n(value_.begin() + row * kValues, kValues, value);
  }

  /// Rows [first_row, first_row + live) of the buffer hold positions first_position and on; one
  /// query with `query` in every lane sees `range`. The first lane, which all lanes equal.
  float attend(std::int64_t first_row, std::int64_t first_position, std::int64_t live,
               KeyRange range, float query) {
    const Floats queries(static_cast<std::size_t>(kHeads * kKeys), query);
    Floats output(static_cast<std::size_t>(kHeads * kValues), -1);
    const EntryRows entry{{bytes(key_) + first_row * kKeys * 4, 0, kKeys * 4},
                          {bytes(value_) + first_row * kValues * 4, 0, kValues * 4},
                          rows_ - first_row,
                          live,
                          first_position};
    FlashStep step;
    const Counts asked{1};
    step.entries = {&entry, 1};
    step.queries = asked;
    step.max_queries = 1;
    step.ranges = {&range, 1};
    step.query =
        RowSource::dense(reinterpret_cast<const std::byte*>(queries.data()), 1, kHeads, kKeys * 4);
    step.output = bytes(output);
    attention_.run(step);
    for (const float lane : output) EXPECT_TRUE(same_bits({lane}, {output[0]}));
    return output[0];
  }

 private:
  static FlashShape shape() {
    FlashShape shape;
    shape.query_heads = kHeads;
    shape.head_size = kKeys;
    shape.value_head_size = kValues;
    return shape;
  }
  static std::byte* bytes(Floats& numbers) { return reinterpret_cast<std::byte*>(numbers.data()); }

  std::int64_t rows_;
  Floats key_, value_;
  FlashAttention attention_;
};

/// Around 1, 8, 16, 64, 128, 512 and 1024, and one length with three whole chunks.
const std::int64_t kLengths[] = {1,   2,   7,   8,   9,   15,  16,  17,   63,   64,   65,  127,
                                 128, 129, 511, 512, 513, 575, 577, 1023, 1024, 1025, 1536};

/// Equal logits: the output is the mean of the values, whose sum f32 holds exactly. The reciprocal
/// of the count and its product with the sum are rounded.
void expect_mean(float output, std::int64_t from, std::int64_t until) {
  const double mean = static_cast<double>(from + until - 1) / 2;
  EXPECT_NEAR(output, mean, mean * 0x1.01p-23) << from << " to " << until;
}

TEST(FlashMeans, AreThoseOfWhatIsSeenAtEveryEdge) {
  for (const std::int64_t length : kLengths) {
    Buffer buffer(length + 3);
    for (std::int64_t i = 0; i < length; ++i) buffer.set(i, 1, static_cast<float>(i));
    expect_mean(buffer.attend(0, 0, length, {0, length}, 0), 0, length);
    for (const std::int64_t begin : kLengths) {
      if (begin >= length) break;
      expect_mean(buffer.attend(0, 0, length, {begin, length}, 0), begin, length);
      expect_mean(buffer.attend(0, 0, length, {0, begin}, 0), 0, begin);
      expect_mean(buffer.attend(0, 0, length, {begin, begin + 1}, 0), begin, begin + 1);
    }
  }
}

TEST(FlashMeans, FollowPositionsThatDoNotBeginAtRowZero) {
  for (const std::int64_t first : {1, 5, 63, 64, 100, 511, 512, 1000}) {
    for (const std::int64_t live : {1, 3, 60, 64, 65, 130, 520}) {
      Buffer buffer(live + 9);
      for (std::int64_t i = 0; i < live; ++i) buffer.set(4 + i, 1, static_cast<float>(first + i));
      // A range that reaches beyond the rows that there are: what is not there is not seen.
      expect_mean(buffer.attend(4, first, live, {0, first + live + 50}, 0), first, first + live);
    }
  }
}

TEST(FlashWeights, OfASingleLargeLogitGiveItsValue) {
  // Logits 8 * 32 * 1 against 0: exp(-256) is 0 in f32. The large one meets sums before and after.
  constexpr std::int64_t kLength = 1100;
  Buffer buffer(kLength);
  for (std::int64_t i = 0; i < kLength; ++i) buffer.set(i, 0, static_cast<float>(i));
  for (const std::int64_t at : kLengths) {
    if (at >= kLength) break;
    buffer.set(at, 1, static_cast<float>(at));
    EXPECT_EQ(buffer.attend(0, 0, kLength, {0, kLength}, 32), static_cast<float>(at));
    buffer.set(at, 0, static_cast<float>(at));
  }
}

TEST(FlashWeights, OfTwoKeysFollowTheirLogits) {
  // Logits 0 and 8 * 0.125 * 0.693147 = ln 2: weights 1/3 and 2/3, in one tile or in two chunks.
  for (const std::int64_t apart : {1, 63, 64, 511, 512, 900}) {
    Buffer buffer(apart + 1);
    buffer.set(0, 0, 3);
    for (std::int64_t i = 1; i < apart; ++i) buffer.set(i, -1000, 77);
    buffer.set(apart, 0.125f, 6);
    EXPECT_NEAR(buffer.attend(0, 0, apart + 1, {0, apart + 1}, 0.69314718f), 5, 4e-6) << apart;
  }
}

TEST(FlashRows, ThatNoQueryMaySeeHaveNoInfluence) {
  constexpr std::int64_t kLength = 700;
  const auto filled = [](float key, float value, std::int64_t seen_from, std::int64_t seen_until) {
    Buffer buffer(kLength + 80);
    for (std::int64_t i = 0; i < kLength; ++i) {
      const bool seen = seen_from <= i && i < seen_until;
      buffer.set(i, seen ? 0.01f * static_cast<float>(i % 13) : key,
                 seen ? static_cast<float>(i % 7) - 3 : value);
    }
    return buffer;
  };
  const std::pair<std::int64_t, std::int64_t> ranges[] = {
      {0, 1},     {0, 65},    {3, 60},    {63, 65},   {64, 128},
      {100, 101}, {500, 530}, {511, 513}, {512, 700}, {650, 700}};
  for (const auto& [from, until] : ranges) {
    const float clean = filled(0, 0, from, until).attend(0, 0, kLength, {from, until}, 1);
    for (const float bad : {kNaN, kInfinity, -kInfinity, 3e38f}) {
      const float dirty = filled(bad, bad, from, until).attend(0, 0, kLength, {from, until}, 1);
      EXPECT_TRUE(same_bits({clean}, {dirty})) << from << ' ' << until << ' ' << bad;
    }
  }
}

TEST(FlashRows, OfNaNThatAreSeenGiveTheOneNaN) {
  for (const std::int64_t at : {0, 62, 63, 64, 511, 512, 599}) {
    for (const bool in_key : {false, true}) {
      for (const std::uint32_t bits : {0x7fc00000u, 0xffc00001u, 0x7f800001u, 0xffffffffu}) {
        Buffer buffer(600);
        for (std::int64_t i = 0; i < 600; ++i) buffer.set(i, 1, 1);
        float bad = 0;
        std::memcpy(&bad, &bits, sizeof bad);
        buffer.set(at, in_key ? bad : 1, in_key ? 1 : bad);
        EXPECT_TRUE(same_bits({buffer.attend(0, 0, 600, {0, 600}, 1)}, {kNaN})) << at << in_key;
      }
    }
  }
}

TEST(FlashRows, OfNaNThatAreAloneInATileGiveTheOneNaN) {
  // Of all keys that a query sees, or of those in a tile.
  for (const auto& [at, length] :
       {std::pair<std::int64_t, std::int64_t>{0, 1}, {64, 65}, {0, 513}, {0, 65}, {511, 512}}) {
    for (const std::int64_t begin : {std::int64_t{0}, at}) {
      for (const bool in_key : {false, true}) {
        Buffer buffer(length);
        for (std::int64_t i = 0; i < length; ++i) buffer.set(i, 1, 1);
        buffer.set(at, in_key ? kNaN : 1, in_key ? 1 : kNaN);
        const float output = buffer.attend(0, 0, length, {begin, length}, 1);
        EXPECT_TRUE(same_bits({output}, {kNaN})) << at << ' ' << begin << ' ' << length << in_key;
        EXPECT_TRUE(same_bits({buffer.attend(0, 0, length, {at, at + 1}, 1)}, {kNaN}))
            << at << ' ' << length << in_key;
      }
    }
  }
}

TEST(FlashRows, OfNaNThatAreAloneInAChunkGiveTheOneNaN) {
  // The only seen key of the last chunk or of the first: its logit is NaN, and no maximum is found.
  for (const auto& [at, begin, end] :
       {std::array<std::int64_t, 3>{512, 0, 513}, {512, 400, 513}, {511, 511, 514}}) {
    Buffer buffer(514);
    for (std::int64_t i = 0; i < 514; ++i) buffer.set(i, 1, 1);
    buffer.set(at, kNaN, 1);
    EXPECT_TRUE(same_bits({buffer.attend(0, 0, 514, {begin, end}, 1)}, {kNaN})) << at;
  }
}

TEST(FlashRows, OfNaNOnlyGiveTheOneNaN) {
  for (const std::int64_t length : {1, 8, 64, 65, 513}) {
    Buffer buffer(length);
    for (std::int64_t i = 0; i < length; ++i) buffer.set(i, kNaN, 1);
    EXPECT_TRUE(same_bits({buffer.attend(0, 0, length, {0, length}, 1)}, {kNaN})) << length;
  }
}

TEST(FlashRows, ThatAreNoneGiveZero) {
  Buffer buffer(10);
  EXPECT_TRUE(same_bits({buffer.attend(0, 0, 0, {0, 0}, 1)}, {0.0f}));
  for (std::int64_t i = 0; i < 10; ++i) buffer.set(i, 1, 1);
  EXPECT_TRUE(same_bits({buffer.attend(0, 0, 10, {10, 12}, 1)}, {0.0f}));
  EXPECT_TRUE(same_bits({buffer.attend(0, 0, 10, {4, 4}, 1)}, {0.0f}));
  EXPECT_TRUE(same_bits({buffer.attend(0, 0, 10, {5, 2}, 1)}, {0.0f}));
}

}  // namespace
}  // namespace kvcheck::kernels::flash
