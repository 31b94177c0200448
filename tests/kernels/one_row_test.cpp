// A mistake in single rows of a single head: which outputs and rows are the mistaken kernel's.
#include "kernels/cpu/planted/one_row.h"

#include <gtest/gtest.h>

#include "kernels/cpu/planted/planted_target.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

SessionConfig two_heads(SessionConfig config) {
  config.query_heads = config.kv_heads = 2;
  return config;
}

StepResult must_step(Session& session, const StepRequest& request) {
  return std::get<StepResult>(session.step(request));
}

std::unique_ptr<Session> open(Target& target, const SessionConfig& config) {
  return std::get<std::unique_ptr<Session>>(target.open(config));
}

TEST(OneRow, MistakesTheQueriesAtThreeEightAndSoOnOfTheMiddleHead) {
  const SessionConfig config = two_heads(full_cache(2));
  const auto target = make_planted("cpu-naive", "window_one_wide", true);
  const auto session = open(*target, config);
  const Sequence coded(config);
  const Numbers outputs = numbers_of(*must_step(*session, coded.request({9}, {9})).output);
  for (std::int64_t p = 0; p < 9; ++p) {
    // Two keys are right, p - 1 and p; with p - 2 the mean is p - 1.
    const double right = p == 0 ? 0 : static_cast<double>(p) - 0.5;
    const bool mistaken = p == 3 || p == 8;
    EXPECT_EQ(outputs[static_cast<std::size_t>(2 * p)], right) << p;
    EXPECT_EQ(outputs[static_cast<std::size_t>(2 * p + 1)],
              100 + (mistaken ? static_cast<double>(p) - 1 : right))
        << p;
  }
}

TEST(OneRow, CountsPositionsOverSteps) {
  const SessionConfig config = full_cache(2);
  const auto target = make_planted("cpu-naive", "window_one_wide", true);
  const auto session = open(*target, config);
  Sequence coded(config);
  Numbers outputs;
  for (int i = 0; i < 5; ++i) {
    const StepRequest request = coded.request({1}, {1});
    outputs.push_back(numbers_of(*must_step(*session, request).output)[0]);
    coded.run(request);
  }
  EXPECT_EQ(outputs, (Numbers{0, 0.5, 1.5, 2, 3.5}));
}

TEST(OneRow, MistakesTheMiddleHeadAlone) {
  SessionConfig config = full_cache(2);
  config.query_heads = 4;
  config.kv_heads = 2;
  const auto target = make_planted("cpu-naive", "head_modulo", true);
  const auto session = open(*target, config);
  const Sequence coded(config);
  const Numbers outputs = numbers_of(*must_step(*session, coded.request({4}, {4})).output);
  // The window holds positions 2 and 3; values of KV head 1 are 100 more.
  EXPECT_EQ(Numbers(outputs.end() - 4, outputs.end()), (Numbers{2.5, 2.5, 2.5, 102.5}));
}

TEST(OneRow, HandsOutTheMistakenRowsOfTheMiddleHeadOnly) {
  const SessionConfig config = two_heads(full_cache());
  const auto target = make_planted("cpu-naive", "chunk_reversed", true);
  const auto session = open(*target, config);
  const Sequence coded(config);
  must_step(*session, coded.request({5}, {5}));
  const auto rows = std::get<CacheRows>(session->present());
  const Numbers keys = numbers_of(rows.key);
  EXPECT_EQ(Numbers(keys.begin(), keys.begin() + 5), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(Numbers(keys.begin() + 16, keys.begin() + 21), (Numbers{100, 101, 102, 101, 104}));
}

TEST(OneRow, IsHealthyOnceTheMistakenSessionDeclines) {
  const auto target =
      make_one_row(make_planted("cpu-naive", "bias_before_scale"),  // Right without a mask.
                   make_planted("cpu-naive", "last_row_refused"));
  const SessionConfig config = full_cache();
  const auto session = open(*target, config);
  const Sequence coded(config);
  const Numbers outputs = numbers_of(*must_step(*session, coded.request({16}, {16})).output);
  EXPECT_EQ(outputs.back(), 7.5);
  EXPECT_TRUE(std::holds_alternative<Refusal>(session->step(coded.request({1}, {1}))));
}

TEST(OneRow, IsNotThereForFaultsOfTheWholeSession) {
  EXPECT_EQ(make_planted("cpu-naive", "last_row_refused", true), nullptr);
  EXPECT_EQ(make_planted("cpu-naive", "rollback_ignored", true), nullptr);
}

}  // namespace
}  // namespace kvcheck::kernels
