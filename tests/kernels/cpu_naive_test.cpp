// Outputs of cpu-naive against values worked out by hand.
#include "kernels/cpu/naive/cpu_naive.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// Means of the first n positions, n = 1..count.
Numbers prefix_means(std::int64_t count) {
  Numbers means;
  for (std::int64_t n = 0; n < count; ++n) means.push_back(static_cast<double>(n) / 2);
  return means;
}

TEST(CpuNaive, NamesItselfAndWhatItPromises) {
  const auto target = make_cpu_naive();
  const Capabilities& can = target->capabilities();
  EXPECT_EQ(can.name, "cpu-naive");
  EXPECT_EQ(can.version, "0.1.0");
  EXPECT_TRUE(can.outputs && can.rows && !can.visible);
  for (const char* feature :
       {"mask_boolean",     "mask_additive",  "nonpad_kv_seqlen", "queries_differ",
        "separate_buffers", "batched_chunks", "ragged_prompt",    "ragged_prompt_block",
        "idle_entries",     "load",           "queryless_append", "rollback",
        "checks_rollback",  "split_bits",     "window_bits",      "capacity_bits",
        "company_bits",     "rollback_bits",  "repeat_bits",      "nan_safe"}) {
    EXPECT_TRUE(can.has(feature)) << feature;
  }
}

TEST(Gqa, CausalQueriesSeeThePositionsUpToTheirOwn) {
  Sequence sequence(full_cache());
  EXPECT_EQ(sequence.append({4}), prefix_means(4));
  EXPECT_EQ(sequence.append({1}), (Numbers{2}));
}

TEST(Gqa, NonCausalQueriesSeeTheWholeLength) {
  SessionConfig config = full_cache();
  config.causal = false;
  Sequence sequence(config);
  EXPECT_EQ(sequence.append({3}), (Numbers{1, 1, 1}));
  EXPECT_EQ(sequence.append({2}), (Numbers{2, 2}));
}

TEST(Gqa, WindowCountsTheQuerysOwnKey) {
  EXPECT_EQ(Sequence(full_cache(2)).append({4}), (Numbers{0, 0.5, 1.5, 2.5}));
  EXPECT_EQ(Sequence(full_cache(1)).append({4}), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(Sequence(full_cache(0)).append({4}), (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(Sequence(full_cache(2)).append_one_by_one(4), (Numbers{0, 0.5, 1.5, 2.5}));
}

TEST(Gqa, ConsecutiveQueryHeadsShareAKvHead) {
  SessionConfig config = full_cache();
  config.query_heads = 4;
  config.kv_heads = 2;
  EXPECT_EQ(Sequence(config).append({1}), (Numbers{0, 0, 100, 100}));
}

TEST(Gqa, WeightsFollowTheScaledDotProducts) {
  SessionConfig config = full_cache();
  config.head_size = config.value_head_size = 4;
  // Logits of the last query: scale * 4 lanes * q * k = 2 * k for scale 1/sqrt(4) and q = 1.
  for (const double scale : {0.0, 0.25}) {
    config.scale = scale;
    Sequence sequence(config);
    StepRequest request = sequence.request({2}, {2});
    request.query = tensor_of(ElementType::f32, {1, 2, 1, 4}, Numbers(8, 1));
    const double logit = scale == 0 ? 2 : 1;
    const double weight = std::exp(logit) / (1 + std::exp(logit));
    const Numbers output = sequence.run(request);
    EXPECT_EQ(output[0], 0);
    EXPECT_NEAR(output[4], weight, 1e-6);  // Value 0 at position 0, value 1 at position 1.
  }
}

TEST(Gqa, LargeLogitsStayFinite) {
  Sequence sequence(full_cache());
  StepRequest request = sequence.request({3}, {3});
  request.query = tensor_of(ElementType::f32, {1, 3, 1, 1}, Numbers(3, 1e4));
  EXPECT_EQ(sequence.run(request), (Numbers{0, 1, 2}));
}

TEST(Gqa, HalfTypesRoundOnceAtTheStore) {
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    SessionConfig config = full_cache();
    config.element_type = type;
    Sequence sequence(config);
    StepRequest request = sequence.request({3}, {3});
    request.value = tensor_of(type, {1, 3, 1, 1}, {1, 1, 2});
    const double third = type == ElementType::f16 ? 1365 * 0x1p-10 : 171 * 0x1p-7;
    EXPECT_EQ(sequence.run(request), (Numbers{1, 1, third})) << to_string(type);
  }
}

TEST(Gqa, DoubleSessionsComputeInDouble) {
  SessionConfig config = full_cache();
  config.element_type = ElementType::f64;
  Sequence sequence(config);
  StepRequest request = sequence.request({3}, {3});
  request.value = tensor_of(ElementType::f64, {1, 3, 1, 1}, {1, 1, 2});
  EXPECT_EQ(sequence.run(request)[2], 4.0 / 3);
}

TEST(Gqa, QuerylessAppendAnswersNothingAndKeepsTheRows) {
  for (SessionConfig config : {full_cache(4), block_cache(6, 4)}) {
    Sequence sequence(config);
    EXPECT_EQ(sequence.append({5}, {0}), Numbers{});
    EXPECT_EQ(sequence.append({2}), (Numbers{3.5, 4.5}));
  }
}

TEST(Gqa, RaggedAndIdleEntriesEqualSingleRunsBitForBit) {
  for (SessionConfig config : {full_cache(3), block_cache(5, 3)}) {
    config.batch = 3;
    Sequence batch(config);
    config.batch = 1;
    Sequence single[] = {Sequence(config), Sequence(config), Sequence(config)};
    for (const Counts& tokens :
         {Counts{4, 1, 0}, Counts{1, 3, 7}, Counts{0, 2, 1}, Counts{1, 1, 1}, Counts{2, 0, 6}}) {
      Numbers expected;
      for (std::size_t b = 0; b < 3; ++b) {
        for (const double mean : single[b].append({tokens[b]})) {
          expected.push_back(mean + 1000 * static_cast<double>(b));
        }
      }
      EXPECT_EQ(batch.append(tokens), expected) << testing::PrintToString(tokens);
    }
    for (std::size_t b = 0; b < 3; ++b) {
      Numbers expected = single[b].keys(3);
      for (double& key : expected) key += 1000 * static_cast<double>(b);
      EXPECT_EQ(batch.keys(3, static_cast<std::int64_t>(b)), expected);
    }
  }
}

TEST(Gqa, RaggedStepsKeepTheBitsOfEveryEntry) {
  SessionConfig config = block_cache(5, 3);
  config.head_size = config.value_head_size = 2;
  config.batch = 2;
  Sequence batch(config);
  config.batch = 1;
  Sequence single(config);
  const auto fill = [](StepRequest& request, double seed) {
    Numbers numbers(static_cast<std::size_t>(request.query.elements()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      // The last four numbers are those of entry 1's two tokens, in both requests.
      numbers[numbers.size() - 1 - i] = std::sin(seed + static_cast<double>(i));
    }
    request.query = tensor_of(ElementType::f32, request.query.shape, numbers);
    request.key = request.value = request.query;
  };
  for (int step = 0; step < 6; ++step) {
    StepRequest both = batch.request({step % 2, 2}, {step % 2, 2});
    StepRequest one = single.request({2}, {2});
    fill(both, step);
    fill(one, step);
    Numbers output = batch.run(both);
    output.erase(output.begin(), output.end() - 4);
    EXPECT_EQ(output, single.run(one)) << "step " << step;
  }
}

TEST(UnusedRows, NanHasNoInfluence) {
  SessionConfig shared = block_cache(6, 4);
  SessionConfig separate = shared;
  separate.share_buffers = false;
  SessionConfig full = full_cache(4);
  full.capacity = 20;
  for (SessionConfig config : {shared, separate, full}) {
    Sequence clean(config);
    config.initial_poison = kNaN;
    Sequence poisoned(config);
    const std::int64_t resident[] = {0, 3, 4, 5, 5, 5};  // L(P) of the six rows before each step.
    const std::int64_t tokens[] = {3, 1, 1, 3, 6, 1};
    std::int64_t length = 0;
    for (int i = 0; i < 6; ++i) {
      StepRequest request = poisoned.request({tokens[i]}, {tokens[i]});
      if (i > 0) {
        request.poison = PoisonRows{kNaN, {config.layout == "full" ? length : resident[i]}};
      }
      EXPECT_EQ(poisoned.run(request), clean.append({tokens[i]})) << "step " << i;
      length += tokens[i];
    }
  }
}

TEST(Attention, SingleQueryWithAPastSeesNoKeyAfterItsOwnPosition) {
  for (const int opset : {23, 24}) {
    for (const bool masked : {false, true}) {
      SessionConfig config = attention();
      config.opset = opset;
      config.head_size = config.value_head_size = 4;
      config.mask = masked ? "boolean" : "none";
      Sequence sequence(config);
      const Numbers zero(8, 0);
      ASSERT_TRUE(std::holds_alternative<std::monostate>(sequence.session().load(
          {{2},
           {tensor_of(ElementType::f32, {1, 1, 2, 4}, zero),
            tensor_of(ElementType::f32, {1, 1, 2, 4}, {1, 0, 0, 0, 0, 1, 0, 0})}})));
      StepRequest request = sequence.request({2}, {1});
      request.key = tensor_of(ElementType::f32, {1, 2, 1, 4}, zero);
      request.value = tensor_of(ElementType::f32, {1, 2, 1, 4}, {0, 0, 1, 0, 0, 0, 0, 1});
      if (masked) request.mask = sequence.mask({1, 4}, {1, 0, 1, 1});
      const double third = static_cast<float>(1.0 / 3);
      EXPECT_EQ(sequence.run(request),
                masked ? (Numbers{0.5, 0, 0.5, 0}) : (Numbers{third, third, third, 0}));
    }
  }
}

TEST(Attention, CausalOffsetIsThePastAndNothingElse) {
  EXPECT_EQ(Sequence(attention()).append({4}, {1}), (Numbers{0}));  // Top-left without a past.
  Sequence past(attention());
  past.load({2});
  EXPECT_EQ(past.append({1}, {2}), (Numbers{1, 1}));  // Both see 0..2: there is no key 3.
  Sequence several(attention());
  several.load({2});
  EXPECT_EQ(several.append({3}, {2}), (Numbers{1, 1.5}));
  Sequence all(attention(false));
  all.load({2});
  EXPECT_EQ(all.append({3}, {2}), (Numbers{2, 2}));
}

TEST(Attention, PresentHoldsPastAndNewRows) {
  SessionConfig config = attention();
  config.kv_heads = config.query_heads = 2;
  config.value_head_size = 3;
  Sequence sequence(config);
  sequence.load({2});
  StepRequest request = sequence.request({3}, {1});
  request.want_rows = true;
  const auto answer = sequence.session().step(request);
  const CacheRows& rows = std::get<StepResult>(answer).rows.value();
  EXPECT_EQ(rows.key.shape, (std::vector<std::int64_t>{1, 2, 5, 1}));
  EXPECT_EQ(rows.value.shape, (std::vector<std::int64_t>{1, 2, 5, 3}));
  EXPECT_EQ(sequence.keys(5, 0, 1), (Numbers{100, 101, 102, 103, 104}));
}

TEST(Attention, QueriesWithoutKeysAnswerZero) {
  EXPECT_EQ(Sequence(attention()).append({0}, {2}), (Numbers{0, 0}));
}

TEST(Attention, MasksOfEveryRankSelectByEntryHeadAndQuery) {
  SessionConfig config = attention(false);
  config.batch = config.query_heads = config.kv_heads = 2;
  config.mask = "boolean";
  const auto run = [&](std::vector<std::int64_t> shape, const Numbers& numbers) {
    Sequence sequence(config);
    StepRequest request = sequence.request({2, 2}, {1, 1});
    request.mask = sequence.mask(std::move(shape), numbers);
    return sequence.run(request);
  };
  EXPECT_EQ(run({1, 2}, {1, 0}), (Numbers{0, 100, 1000, 1100}));
  EXPECT_EQ(run({2, 1, 2}, {1, 0, 0, 1}), (Numbers{0, 101, 1000, 1101}));
  EXPECT_EQ(run({2, 2, 1, 2}, {1, 0, 0, 1, 1, 1, 0, 0}), (Numbers{0, 101, 1000.5, 0}));
}

TEST(Attention, AdditiveMaskMovesLogitsAndMinusInfinityHides) {
  SessionConfig config = attention(false);
  config.mask = "additive";
  Sequence sequence(config);
  StepRequest request = sequence.request({3}, {2});
  const double bias = std::log(3.0);
  request.mask = sequence.mask({2, 3}, {0, bias, -kInfinity, -kInfinity, -kInfinity, -kInfinity});
  const Numbers output = sequence.run(request);
  EXPECT_NEAR(output[0], 0.75, 1e-6);  // Weights 1/4 and 3/4 on values 0 and 1.
  EXPECT_EQ(output[1], 0);
}

TEST(Attention, HiddenKeysHaveNoInfluenceEvenWhenNotFinite) {
  SessionConfig config = attention(false);
  config.mask = "boolean";
  Sequence sequence(config);
  StepRequest request = sequence.request({2}, {1});
  request.key = request.value = tensor_of(ElementType::f32, {1, 2, 1, 1}, {5, kNaN});
  request.mask = sequence.mask({1, 2}, {1, 0});
  EXPECT_EQ(sequence.run(request), (Numbers{5}));
}

TEST(Nonpad, CausalLimitCountsBackFromTheLengthOfEachEntry) {
  SessionConfig config = nonpad(8);
  config.batch = 2;
  Sequence sequence(config);
  sequence.load({2, 4});
  // Lengths 4 and 6, two queries: {0..2}, {0..3} and {0..4}, {0..5}.
  EXPECT_EQ(sequence.append({2, 2}), (Numbers{1, 1.5, 1002, 1002.5}));
}

TEST(Nonpad, NegativeOffsetLeavesLeadingQueriesEmpty) {
  Sequence sequence(nonpad(4));
  sequence.load({1});
  EXPECT_EQ(sequence.append({1}, {4}), (Numbers{0, 0, 0, 0.5}));
  SessionConfig config = nonpad(4);
  config.batch = 2;
  EXPECT_EQ(Sequence(config).append({0, 3}, {1, 1}), (Numbers{0, 1001}));  // Entry 0 is empty.
}

TEST(Nonpad, RowsPastTheLengthAreNeverRead) {
  SessionConfig config = nonpad(6, false);
  config.initial_poison = kNaN;
  config.mask = "boolean";
  Sequence sequence(config);
  StepRequest request = sequence.request({3}, {1});
  request.mask = sequence.mask({1, 6}, {1, 0, 1, 1, 1, 1});
  EXPECT_EQ(sequence.run(request), (Numbers{1}));
  ASSERT_TRUE(sequence.rollback({1}));
  request = sequence.request({0}, {1});
  request.mask = sequence.mask({1, 6}, {1, 1, 1, 1, 1, 1});
  EXPECT_EQ(sequence.run(request), (Numbers{0.5}));
}

}  // namespace
}  // namespace kvcheck::kernels
