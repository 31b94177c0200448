// Rows of a cache in a device's memory, step by step, worked out by hand.
#include "kernels/cuda/device_cache.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cpu/element.h"
#include "kernels/cuda/simt_machine.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels::device {
namespace {

/// A cache of one head of one lane whose keys hold their position and whose values its negative.
class Cache {
 public:
  explicit Cache(const SessionConfig& config)
      : config_(config),
        kernels_(simt_kernels()),
        machine_(kernels_, {simt::Order::random, 1}),
        cache(machine_, config_) {}

  /// Up to where attention would run.
  void place(const Counts& tokens) {
    const std::int64_t most = *std::max_element(tokens.begin(), tokens.end());
    StepRequest request;
    request.tokens = request.queries = tokens;
    Numbers key, value;
    for (std::size_t b = 0; b < tokens.size(); ++b) {
      for (std::int64_t i = 0; i < most; ++i) {
        const auto position = static_cast<double>(cache.lengths()[b] + i);
        key.push_back(i < tokens[b] ? position : 99);
        value.push_back(i < tokens[b] ? -position : 99);
      }
    }
    request.key = tensor_of(config_.element_type, {config_.batch, most, 1, 1}, key);
    request.value = tensor_of(config_.element_type, {config_.batch, most, 1, 1}, value);
    cache.plan(tokens);
    cache.place(request);
  }
  void settle() {
    cache.settle();
    const auto failure = machine_.finish();
    EXPECT_FALSE(failure.has_value()) << failure->detail;
    cache.release_step();
  }
  void append(const Counts& tokens) {
    place(tokens);
    settle();
  }
  Numbers keys() const { return numbers_of(cache.present().key); }
  Numbers values() const { return numbers_of(cache.present().value); }
  /// The keys of a view's live rows.
  Numbers keys_in(const EntryView& view) {
    std::vector<float> read(static_cast<std::size_t>(view.live));
    machine_.read(static_cast<const std::byte*>(view.key), std::as_writable_bytes(std::span(read)));
    return {read.begin(), read.end()};
  }

 private:
  SessionConfig config_;
  KernelTable kernels_;
  SimtMachine machine_;

 public:
  DeviceCache cache;
};

TEST(DeviceCache, FullKeepsRowsInTheOrderOfPositions) {
  SessionConfig config = full_cache();
  config.capacity = 5;
  Cache c(config);
  c.append({2});
  c.append({1});
  EXPECT_EQ(c.keys(), (Numbers{0, 1, 2, 0, 0}));
  EXPECT_EQ(c.values(), (Numbers{0, -1, -2, 0, 0}));
  EXPECT_EQ(c.cache.lengths(), Counts{3});
  const EntryView view = c.cache.view(0);
  EXPECT_EQ(view.live, 3);
  EXPECT_EQ(view.first_position, 0);
  EXPECT_EQ(c.keys_in(view), (Numbers{0, 1, 2}));
}

TEST(DeviceCache, BlockDropsAWholeBlockWhereItIsFull) {
  Cache c(block_cache(6, 4));  // Blocks of 3 rows.
  c.append({6});
  EXPECT_EQ(c.keys(), (Numbers{0, 1, 2, 3, 4, 5}));
  c.append({1});
  const EntryView view = c.cache.view(0);
  EXPECT_EQ(view.first_position, 3);
  EXPECT_EQ(view.live, 4);
  EXPECT_EQ(c.keys_in(view), (Numbers{3, 4, 5, 6}));
}

TEST(DeviceCache, AStagedStepIsReadWholeAndWrittenBack) {
  Cache c(block_cache(6, 4));
  c.append({6});
  // Position 6 sees 3 to 6, and 10 tokens leave no room for them: T = 10 keeps 4 to 9 or fewer.
  c.place({4});
  const EntryView staged = c.cache.view(0);
  EXPECT_EQ(staged.first_position, 0);
  EXPECT_EQ(c.keys_in(staged), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  c.settle();
  const EntryView kept = c.cache.view(0);
  EXPECT_EQ(kept.first_position, 6);
  EXPECT_EQ(c.keys_in(kept), (Numbers{6, 7, 8, 9}));
}

TEST(DeviceCache, EntriesOfABatchHaveLengthsOfTheirOwn) {
  SessionConfig config = full_cache();
  config.batch = 2;
  config.capacity = 4;
  Cache c(config);
  c.append({1, 3});
  c.append({2, 0});
  EXPECT_EQ(c.cache.lengths(), (Counts{3, 3}));
  EXPECT_EQ(c.keys(), (Numbers{0, 1, 2, 0, 0, 1, 2, 0}));
}

TEST(DeviceCache, RollsBackToWhatIsStillThere) {
  Cache c(block_cache(6, 4));
  c.append({7});
  const Counts one{1}, four{4};
  // T = 7 holds 3 to 6; at T = 6 it would be 0 to 5.
  EXPECT_TRUE(c.cache.why_not_rollback(one).has_value());
  c.append({2});
  EXPECT_FALSE(c.cache.why_not_rollback(one).has_value());
  c.cache.rollback(one);
  EXPECT_EQ(c.cache.lengths(), Counts{8});
  EXPECT_TRUE(c.cache.why_not_rollback(four).has_value());
  c.append({1});
  EXPECT_EQ(c.keys_in(c.cache.view(0)), (Numbers{3, 4, 5, 6, 7, 8}));
}

TEST(DeviceCache, AttentionsGrowsAndShrinksWithItsLength) {
  Cache c(attention());
  c.append({3});
  EXPECT_EQ(c.cache.rows(), 3);
  c.append({2});
  EXPECT_EQ(c.keys(), (Numbers{0, 1, 2, 3, 4}));
  const Counts four{4};
  c.cache.rollback(four);
  EXPECT_EQ(c.cache.rows(), 1);
  EXPECT_EQ(c.keys(), Numbers{0});
}

TEST(DeviceCache, PoisonFillsTheRowsBehindTheFirstOnes) {
  SessionConfig config = full_cache();
  config.batch = 2;
  config.capacity = 3;
  config.initial_poison = 5;
  Cache c(config);
  EXPECT_EQ(c.keys(), (Numbers{5, 5, 5, 5, 5, 5}));
  c.cache.poison({-1, {1, 3}});
  EXPECT_EQ(c.keys(), (Numbers{5, -1, -1, 5, 5, 5}));
  EXPECT_EQ(c.values(), c.keys());
  c.append({1, 2});
  EXPECT_EQ(c.keys(), (Numbers{0, -1, -1, 0, 1, 5}));
}

TEST(DeviceCache, TakesAPastAsItIs) {
  SessionConfig config = full_cache();
  config.capacity = 4;
  Cache c(config);
  const Tensor rows = tensor_of(ElementType::f32, {1, 1, 4, 1}, {7, 8, 9, -3});
  c.cache.load({{2}, {rows, rows}});
  EXPECT_EQ(c.cache.lengths(), Counts{2});
  c.append({1});
  EXPECT_EQ(c.keys(), (Numbers{7, 8, 2, -3}));
}

TEST(DeviceCache, ElementsAreThoseOfTheSession) {
  EXPECT_EQ(element_of(ElementType::f32), Element::f32);
  EXPECT_EQ(element_of(ElementType::f16), Element::f16);
  EXPECT_EQ(element_of(ElementType::bf16), Element::bf16);
}

}  // namespace
}  // namespace kvcheck::kernels::device
