// The cache of cpu-naive: plans, rows after every step, splits, rollback, lengths at their limit.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cpu/cache.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// Positions first .. first + count - 1.
Numbers positions(std::int64_t first, std::int64_t count) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(first + i));
  return numbers;
}

EntryPlan plan_of(std::int64_t past, std::int64_t tokens) {
  const SessionConfig config = block_cache(6, 4);
  KvCache cache(config);
  cache.load({{past},
              {Tensor::zeros(ElementType::f32, {1, 1, 6, 1}),
               Tensor::zeros(ElementType::f32, {1, 1, 6, 1})}});
  return cache.plan(Counts{tokens})[0];
}

TEST(Eviction, FollowsTheWorkedTableOfSixRowsAndWindowFour) {
  const Eviction eviction = Eviction::blocks(6, 4);
  const std::int64_t resident[] = {0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4};
  for (std::int64_t length = 0; length <= 16; ++length) {
    EXPECT_EQ(eviction.resident(length), resident[length]) << "T = " << length;
  }
}

TEST(Eviction, OfMinOverflowKeepsWhatFits) {
  const Eviction eviction = Eviction::min_overflow(6, 4);
  for (std::int64_t length = 0; length <= 16; ++length) {
    EXPECT_EQ(eviction.resident(length), std::min<std::int64_t>(length, 6));
    EXPECT_EQ(eviction.max_exact_rollback(length), length <= 6 ? length : 0);
    for (std::int64_t tokens = 0; tokens <= length; ++tokens) {
      EXPECT_EQ(eviction.rollback_is_exact(length, tokens),
                tokens == 0 || tokens == length || length <= 6);
    }
  }
  EXPECT_EQ(eviction.required(2), 2);
  EXPECT_EQ(eviction.required(9), 3);
}

TEST(Eviction, KeepsTheWindowAndFitsTheBufferAtAnyLength) {
  for (std::int64_t capacity = 1; capacity <= 7; ++capacity) {
    for (std::int64_t window = 1; window <= capacity; ++window) {
      const Eviction eviction = Eviction::blocks(capacity, window);
      for (const std::int64_t start : {std::int64_t{0}, std::int64_t{2147483600}}) {
        for (std::int64_t length = start; length < start + 48; ++length) {
          EXPECT_GE(eviction.resident(length), std::min(length, window));
          EXPECT_LE(eviction.resident(length), std::min(length, capacity));
        }
      }
    }
  }
}

TEST(Eviction, LargestExactRollbackIsTheLastExactOne) {
  for (std::int64_t capacity = 1; capacity <= 6; ++capacity) {
    for (std::int64_t window = 1; window <= capacity; ++window) {
      const Eviction eviction = Eviction::blocks(capacity, window);
      for (std::int64_t length = 0; length <= 30; ++length) {
        for (std::int64_t tokens = 0; tokens <= length; ++tokens) {
          EXPECT_EQ(eviction.rollback_is_exact(length, tokens),
                    tokens <= eviction.max_exact_rollback(length))
              << "C " << capacity << " W " << window << " T " << length << " k " << tokens;
        }
      }
    }
  }
}

TEST(EntryPlan, FollowsTheExamplesOfTheContract) {
  struct Example {
    std::int64_t past, tokens, before, after, dropped;
    bool staged;
  };
  const Example examples[] = {
      {6, 1, 6, 4, 3, false}, {6, 3, 6, 6, 3, false}, {5, 2, 5, 4, 3, true}, {0, 8, 0, 5, 3, true},
      {3, 4, 3, 4, 3, true},  {7, 2, 4, 6, 0, false}, {8, 8, 5, 4, 9, true}};
  for (const Example& example : examples) {
    SCOPED_TRACE(testing::Message() << "P " << example.past << " S " << example.tokens);
    const EntryPlan plan = plan_of(example.past, example.tokens);
    EXPECT_EQ(plan.resident_before, example.before);
    EXPECT_EQ(plan.resident_after, example.after);
    EXPECT_EQ(plan.dropped, example.dropped);
    EXPECT_EQ(plan.staged, example.staged);
    EXPECT_EQ(plan.append_row, example.staged ? example.before : example.after - example.tokens);
    EXPECT_EQ(plan.write_back_from, example.staged ? example.dropped : 0);
  }
}

TEST(EntryPlan, StagesExactlyWhenAnEvictionTakesRowsThatTheFirstQueryReads) {
  for (std::int64_t past = 0; past <= 20; ++past) {
    for (std::int64_t tokens = 0; tokens <= 12; ++tokens) {
      const EntryPlan plan = plan_of(past, tokens);
      // Position of the oldest key of the first query, against the oldest resident after the step.
      const bool reads_evicted =
          tokens > 0 && std::max<std::int64_t>(0, past - 3) < past + tokens - plan.resident_after;
      EXPECT_EQ(plan.staged, reads_evicted) << "P " << past << " S " << tokens;
    }
  }
}

TEST(EntryPlan, MovesRowsOnlyInTheStepThatCompacts) {
  for (std::int64_t past = 0; past < 16; ++past) {
    const bool compacts = past == 6 || past == 9 || past == 12 || past == 15;
    EXPECT_EQ(plan_of(past, 1).moved, compacts ? 3 : 0) << "P " << past;
  }
}

TEST(BlockCache, HoldsThePositionsOfTheWorkedTableAfterEveryStep) {
  Sequence sequence(block_cache(6, 4));
  const std::int64_t first[] = {0, 0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 12};
  for (std::int64_t length = 1; length <= 16; ++length) {
    const std::int64_t oldest_seen = std::max<std::int64_t>(0, length - 4);
    const Numbers mean{static_cast<double>(oldest_seen + length - 1) / 2};
    EXPECT_EQ(sequence.append({1}), mean) << "T = " << length;
    const std::int64_t from = first[length - 1];
    EXPECT_EQ(sequence.keys(length - from), positions(from, length - from)) << "T = " << length;
    EXPECT_EQ(sequence.values(length - from), positions(from, length - from)) << "T = " << length;
  }
}

TEST(MinOverflowCache, ShiftsWithEveryOverflow) {
  SessionConfig config = block_cache(6, 4);
  config.layout = "min_overflow";
  Sequence sequence(config);
  for (std::int64_t length = 1; length <= 16; ++length) {
    const std::int64_t oldest_seen = std::max<std::int64_t>(0, length - 4);
    const Numbers mean{static_cast<double>(oldest_seen + length - 1) / 2};
    EXPECT_EQ(sequence.append({1}), mean) << "T = " << length;
    const std::int64_t from = std::max<std::int64_t>(0, length - 6);
    EXPECT_EQ(sequence.keys(length - from), positions(from, length - from)) << "T = " << length;
  }
  EXPECT_FALSE(sequence.rollback({1}));
  // P = 16, S = 3: in place, since {11..15} hold the window of the query at 16. S = 4 stages.
  EXPECT_EQ(sequence.append({3}), (Numbers{14.5, 15.5, 16.5}));
  EXPECT_EQ(sequence.append({4}), (Numbers{17.5, 18.5, 19.5, 20.5}));
  EXPECT_EQ(sequence.values(6), positions(17, 6));
}

TEST(BlockCache, CompactsOverlappingRowsInOrder) {
  Sequence sequence(block_cache(5, 4));  // G = 2: three rows move by two.
  sequence.append({5});
  sequence.append({1});
  EXPECT_EQ(sequence.keys(4), (Numbers{2, 3, 4, 5}));
  EXPECT_EQ(sequence.values(4), (Numbers{2, 3, 4, 5}));
}

TEST(BlockCache, StagedStepWritesTheSurvivingTailBack) {
  Sequence sequence(block_cache(6, 4));
  // Queries 0..7 over windows of four: means of {0}, {0,1}, {0..2}, {0..3}, {1..4}, ...
  EXPECT_EQ(sequence.append({8}), (Numbers{0, 0.5, 1, 1.5, 2.5, 3.5, 4.5, 5.5}));
  EXPECT_EQ(sequence.keys(5), positions(3, 5));
  EXPECT_EQ(sequence.append({8}), (Numbers{6.5, 7.5, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5}));
  EXPECT_EQ(sequence.values(4), positions(12, 4));
}

/// Outputs and resident rows of `length` tokens appended in the steps of `split`.
struct Trace {
  std::vector<std::byte> outputs, keys, values;
  bool operator==(const Trace&) const = default;
};

Trace trace_of(const SessionConfig& config, const Counts& split, std::int64_t resident) {
  Sequence sequence(config);
  Trace trace;
  const auto add = [](std::vector<std::byte>& to, const std::byte* from, std::size_t bytes) {
    to.insert(to.end(), from, from + bytes);
  };
  std::int64_t past = 0;
  for (const std::int64_t tokens : split) {
    StepRequest request = sequence.request({tokens}, {tokens});
    const std::size_t lanes = static_cast<std::size_t>(tokens * config.head_size);
    Numbers query(lanes), key(lanes), value(lanes);
    for (std::size_t i = 0; i < lanes; ++i) {
      const double at = static_cast<double>(past * config.head_size) + static_cast<double>(i);
      query[i] = std::sin(1 + at);
      key[i] = std::cos(3 * at);
      value[i] = std::sin(7 * at);
    }
    request.query = tensor_of(config.element_type, request.query.shape, query);
    request.key = tensor_of(config.element_type, request.key.shape, key);
    request.value = tensor_of(config.element_type, request.value.shape, value);
    const auto answer = sequence.session().step(request);
    const Tensor& output = *std::get<StepResult>(answer).output;
    add(trace.outputs, output.bytes.data(), output.bytes.size());
    past += tokens;
  }
  const CacheRows rows = std::get<CacheRows>(sequence.session().present());
  const auto bytes =
      static_cast<std::size_t>(resident * config.head_size) * element_bytes(config.element_type);
  add(trace.keys, rows.key.bytes.data(), bytes);
  add(trace.values, rows.value.bytes.data(), bytes);
  return trace;
}

/// Calls `visit` with every way to write `length` as a sum of steps.
template <class Visit>
void for_every_split(std::int64_t length, Counts& steps, const Visit& visit) {
  if (length == 0) return visit(steps);
  for (std::int64_t tokens = 1; tokens <= length; ++tokens) {
    steps.push_back(tokens);
    for_every_split(length - tokens, steps, visit);
    steps.pop_back();
  }
}

class SplitBits : public testing::TestWithParam<ElementType> {};

TEST_P(SplitBits, EverySplitGivesTheSameOutputsAndResidentRows) {
  SessionConfig block = block_cache(6, 4);
  block.head_size = block.value_head_size = 3;
  block.element_type = GetParam();
  SessionConfig full = full_cache(4);
  full.head_size = full.value_head_size = 3;
  full.element_type = GetParam();
  SessionConfig separate = block;
  separate.share_buffers = false;
  const std::int64_t length = 10;
  const Trace whole = trace_of(block, {length}, 4);
  const Trace whole_full = trace_of(full, {length}, 10);
  EXPECT_EQ(whole.outputs, whole_full.outputs);
  Counts steps;
  for_every_split(length, steps, [&](const Counts& split) {
    EXPECT_EQ(trace_of(block, split, 4), whole) << testing::PrintToString(split);
    EXPECT_EQ(trace_of(separate, split, 4), whole) << testing::PrintToString(split);
    EXPECT_EQ(trace_of(full, split, 10), whole_full) << testing::PrintToString(split);
  });
}

INSTANTIATE_TEST_SUITE_P(ElementTypes, SplitBits,
                         testing::Values(ElementType::f32, ElementType::f16, ElementType::bf16,
                                         ElementType::f64),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST(SplitBits, AnyCapacityGivesTheSameOutputs) {
  SessionConfig config = block_cache(4, 4);
  config.head_size = config.value_head_size = 3;
  const Trace tight = trace_of(config, {3, 1, 5, 2, 1}, 0);
  for (std::int64_t capacity = 5; capacity <= 14; ++capacity) {
    config.capacity = capacity;
    EXPECT_EQ(trace_of(config, {3, 1, 5, 2, 1}, 0), tight) << "C = " << capacity;
  }
}

TEST(Rollback, IsExactWhereTheRowsAreStillInPlace) {
  Sequence sequence(block_cache(6, 4));
  sequence.append({12});
  ASSERT_TRUE(sequence.rollback({2}));
  EXPECT_EQ(sequence.keys(4), positions(6, 4));
  // Generation 1 marks the replacement: position 10 is 10.5 now.
  EXPECT_EQ(sequence.append({1}), (Numbers{(7 + 8 + 9 + 10.5) / 4}));
  EXPECT_EQ(sequence.keys(5), (Numbers{6, 7, 8, 9, 10.5}));
}

TEST(Rollback, RefusesWhatIsNotExactAndChangesNothing) {
  Sequence sequence(block_cache(6, 4));
  sequence.append({12});
  const auto answer = sequence.session().rollback(Counts{3});
  ASSERT_TRUE(std::holds_alternative<Refusal>(answer));
  EXPECT_EQ(std::get<Refusal>(answer).reason,
            "rollback[0] = 3: rows that length 9 needs are gone at length 12; drop at most 2 "
            "tokens, or run the entry again from its start");
  EXPECT_EQ(sequence.keys(6), positions(6, 6));
  EXPECT_EQ(sequence.append({1}), (Numbers{10.5}));  // {9..12}
}

TEST(Rollback, NeverGoesBelowZeroNorAboveTheLength) {
  Sequence sequence(full_cache());
  sequence.append({3});
  EXPECT_FALSE(sequence.rollback({4}));
  EXPECT_FALSE(sequence.rollback({-1}));
  EXPECT_TRUE(sequence.rollback({3}));
  EXPECT_EQ(sequence.append({2}), (Numbers{0.5, 1}));  // Positions 0 and 1 of generation 1.
}

TEST(Rollback, ShortensTheConcatenatedCache) {
  Sequence sequence(attention());
  sequence.append({4});
  ASSERT_TRUE(sequence.rollback({3}));
  const CacheRows rows = std::get<CacheRows>(sequence.session().present());
  EXPECT_EQ(rows.key.shape, (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(sequence.append({1}), (Numbers{0.75}));  // {0, 1.5}
}

TEST(Lengths, NearTheLimitOfInt32StayExact) {
  SessionConfig config = block_cache(6, 4);
  config.element_type = ElementType::f64;
  Sequence sequence(config);
  // T - C = 3 * 715827878, so all six rows are resident.
  sequence.load({2147483640}, {2147483634});
  EXPECT_EQ(sequence.append({1}), (Numbers{2147483638.5}));  // {637..640}, compacts to four rows.
  EXPECT_EQ(sequence.append({6}).back(), 2147483644.5);      // {643..646}, staged.
  EXPECT_EQ(sequence.keys(4), positions(2147483643, 4));
  const auto answer = sequence.session().step(sequence.request({1}, {1}));
  EXPECT_EQ(std::get<Refusal>(answer).reason,
            "tokens[0] = 1: makes the entry longer than 2147483647; append fewer");
  EXPECT_EQ(sequence.values(4), positions(2147483643, 4));
}

TEST(SeparateBuffers, FillUnspecifiedRowsOfThePresentWithZero) {
  SessionConfig config = full_cache();
  config.capacity = 5;
  config.share_buffers = false;
  config.initial_poison = 7;
  Sequence sequence(config);
  sequence.append({2});
  EXPECT_EQ(sequence.append({1}), (Numbers{1}));
  EXPECT_EQ(sequence.keys(5), (Numbers{0, 1, 2, 0, 0}));
}

TEST(SharedBuffer, KeepsUnspecifiedRows) {
  SessionConfig config = full_cache();
  config.capacity = 4;
  config.initial_poison = 7;
  Sequence sequence(config);
  sequence.append({1});
  EXPECT_EQ(sequence.keys(4), (Numbers{0, 7, 7, 7}));
  StepRequest request = sequence.request({1}, {1});
  request.poison = PoisonRows{-3, {2}};
  sequence.run(request);
  EXPECT_EQ(sequence.values(4), (Numbers{0, 1, -3, -3}));
}

}  // namespace
}  // namespace kvcheck::kernels
