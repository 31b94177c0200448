// cpu-flash as a target: what it claims and refuses, tensors in and out. Its arithmetic is tested
// below it, in flash_*_test.cpp.
#include "kernels/cpu/flash/cpu_flash.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cpu/flash/kernels.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

template <class T>
T must(Answer<T> answer) {
  if (const auto* refusal = std::get_if<Refusal>(&answer)) ADD_FAILURE() << refusal->reason;
  return std::get<T>(std::move(answer));
}

std::unique_ptr<Session> open(const SessionConfig& config) {
  const bool quantised = config.quantisation.quantised();
  const auto target =
      quantised ? make_cpu_flash_quantised(config.quantisation.kind) : make_cpu_flash();
  return must(target->open(config));
}

std::string refused(const Target& target, const SessionConfig& config) {
  const auto answer = const_cast<Target&>(target).open(config);
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal ? refusal->reason : "";
}

/// One entry, one head of one lane: queries of 0 and the given keys, which are the values too.
StepRequest request(const SessionConfig& config, const Numbers& rows, std::int64_t queries) {
  const auto tokens = static_cast<std::int64_t>(rows.size());
  StepRequest step;
  step.tokens = {tokens};
  step.queries = {queries};
  step.query = Tensor::zeros(config.element_type, {1, queries, 1, 1});
  step.key = step.value = tensor_of(config.element_type, {1, tokens, 1, 1}, rows);
  return step;
}

Numbers outputs(Session& session, const StepRequest& step) {
  return numbers_of(must(session.step(step)).output.value());
}

TEST(CpuFlash, ClaimsEveryPromiseAndTheInstructionSetsThatAreHere) {
  const auto target = make_cpu_flash();
  const Capabilities& can = target->capabilities();
  EXPECT_EQ(can.name, "cpu-flash");
  EXPECT_EQ(can.operators, (std::set<std::string>{"attention", "gqa"}));
  EXPECT_EQ(can.opsets, (std::set<int>{23, 24, 25}));
  EXPECT_EQ(can.element_types, (std::set<std::string>{"bf16", "f16", "f32"}));
  for (const char* promise :
       {"split_bits", "window_bits", "capacity_bits", "threads_bits", "isa_bits", "company_bits",
        "rollback_bits", "repeat_bits", "nan_safe", "checks_rollback"}) {
    EXPECT_TRUE(can.has(promise)) << promise;
  }
  ASSERT_EQ(can.isas.size(), flash::kernels_here().size());
  EXPECT_EQ(can.isas.back(), "scalar");
  EXPECT_EQ(make_cpu_flash_quantised("int8")->capabilities().name, "cpu-flash-q8");
  EXPECT_EQ(make_cpu_flash_quantised("int4")->capabilities().name, "cpu-flash-q4");
  EXPECT_EQ(make_cpu_flash_quantised("fp8"), nullptr);
}

TEST(CpuFlash, DeclaresTilesAndChunksAsTheyAre) {
  const Arithmetic arithmetic = make_cpu_flash()->capabilities().arithmetic;
  EXPECT_EQ(arithmetic.rescale_block, flash::kTile);
  EXPECT_EQ(arithmetic.value_block, flash::kChunk);
  EXPECT_EQ(arithmetic.dot_ways, 8);
  EXPECT_TRUE(arithmetic.exp_flushes);
  EXPECT_EQ(arithmetic.dequantise_roundings, 0);
  EXPECT_EQ(make_cpu_flash_quantised("int8")->capabilities().arithmetic.dequantise_roundings, 1);
}

TEST(CpuFlash, RefusesWhatItDoesNotTake) {
  const auto plain = make_cpu_flash();
  SessionConfig config = full_cache();
  config.element_type = ElementType::f64;
  EXPECT_EQ(refused(*plain, config).substr(0, 18), "element_type = f64") << refused(*plain, config);
  config = full_cache();
  config.isa = "neon";
  EXPECT_NE(refused(*plain, config).find("isa = neon"), std::string::npos);
  config = full_cache();
  config.quantisation.kind = "int8";
  config.quantisation.key_scale = config.quantisation.value_scale =
      tensor_of(ElementType::f32, {1}, {1});
  EXPECT_NE(refused(*plain, config), "");
  EXPECT_EQ(refused(*make_cpu_flash_quantised("int8"), config), "");
  EXPECT_NE(refused(*make_cpu_flash_quantised("int4"), config), "");
  EXPECT_NE(refused(*make_cpu_flash_quantised("int8"), full_cache()), "");
}

TEST(CpuFlash, AnswersMeansOfWhatIsVisible) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    SessionConfig config = full_cache(2);
    config.element_type = type;
    const auto session = open(config);
    EXPECT_EQ(outputs(*session, request(config, {1, 3, 8}, 3)), (Numbers{1, 2, 5.5}));
    EXPECT_EQ(outputs(*session, request(config, {2}, 1)), Numbers{5});
  }
}

TEST(CpuFlash, RoundsHalvesOnceAtTheStore) {
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    SessionConfig config = full_cache();
    config.element_type = type;
    const double third = type == ElementType::f16 ? 1365 * 0x1p-10 : 171 * 0x1p-7;
    EXPECT_EQ(outputs(*open(config), request(config, {1, 1, 2}, 3)), (Numbers{1, 1, third}));
  }
}

TEST(CpuFlash, ReadsMasksOfEveryKindAndLength) {
  SessionConfig config = attention();
  config.opset = 24;
  config.mask = "boolean";
  StepRequest step = request(config, {1, 3, 8}, 3);
  step.mask = tensor_of(ElementType::boolean, {3, 3}, {1, 0, 0, 0, 1, 1, 1, 0, 1});
  EXPECT_EQ(outputs(*open(config), step), (Numbers{1, 3, 4.5}));
  step.mask = tensor_of(ElementType::boolean, {1, 3}, {0, 1, 1});  // For every query.
  EXPECT_EQ(outputs(*open(config), step), (Numbers{0, 3, 5.5}));
  step.mask = tensor_of(ElementType::boolean, {3, 2}, {1, 1, 1, 1, 1, 1});  // The third is hidden.
  EXPECT_EQ(outputs(*open(config), step), (Numbers{1, 2, 2}));
  config.mask = "additive";
  step.mask = tensor_of(ElementType::f32, {1, 3}, {0, -kInfinity, 100});
  EXPECT_EQ(outputs(*open(config), step), (Numbers{1, 1, 8}));
}

TEST(CpuFlash, RefusesAStepAndKeepsItsState) {
  const SessionConfig config = full_cache();
  const auto session = open(config);
  outputs(*session, request(config, {1, 3}, 2));
  StepRequest step = request(config, Numbers(20, 5), 20);  // The cache has 16 rows.
  EXPECT_TRUE(std::holds_alternative<Refusal>(session->step(step)));
  const Counts too_many{3};
  EXPECT_TRUE(std::holds_alternative<Refusal>(session->rollback(too_many)));
  EXPECT_EQ(outputs(*session, request(config, {5}, 1)), Numbers{3});
}

TEST(CpuFlash, RollsBackAndLoads) {
  const SessionConfig config = full_cache();
  const auto session = open(config);
  outputs(*session, request(config, {1, 3, 100}, 3));
  const Counts one{1};
  must(session->rollback(one));
  EXPECT_EQ(outputs(*session, request(config, {5}, 1)), Numbers{3});
  Numbers rows(16, kNaN);
  rows[0] = 7;
  rows[1] = 9;
  const Tensor past = tensor_of(ElementType::f32, {1, 1, 16, 1}, rows);
  must(session->load({{2}, {past, past}}));
  EXPECT_EQ(outputs(*session, request(config, {2}, 1)), Numbers{6});
}

TEST(CpuFlash, FillsRowsOfQueriesThatAnEntryDoesNotAskWithZeros) {
  SessionConfig config = full_cache();
  config.batch = 2;
  StepRequest step;
  step.tokens = step.queries = {3, 1};
  step.query = Tensor::zeros(ElementType::f32, {2, 3, 1, 1});
  step.key = step.value = tensor_of(ElementType::f32, {2, 3, 1, 1}, {1, 3, 8, 5, -9, -9});
  EXPECT_EQ(outputs(*open(config), step), (Numbers{1, 2, 4, 5, 0, 0}));
}

TEST(CpuFlash, PoisonsAndShowsRowsWhenAsked) {
  const SessionConfig config = full_cache();
  const auto session = open(config);
  outputs(*session, request(config, {1, 3}, 2));
  StepRequest step = request(config, {5}, 1);
  step.poison = PoisonRows{kNaN, {2}};
  step.want_rows = true;
  const StepResult result = must(session->step(step));
  EXPECT_EQ(numbers_of(*result.output), Numbers{3});
  const Numbers keys = numbers_of(result.rows->key);
  EXPECT_EQ(Numbers(keys.begin(), keys.begin() + 3), (Numbers{1, 3, 5}));
  EXPECT_TRUE(std::isnan(keys[3]));
  EXPECT_FALSE(result.qk.has_value());
}

TEST(CpuFlash, StoresCodesAndReadsThemBack) {
  for (const char* kind : {"int8", "int4"}) {
    SessionConfig config = full_cache();
    config.quantisation = {kind, false, tensor_of(ElementType::f32, {1}, {0.5}),
                           tensor_of(ElementType::f32, {1}, {0.25})};
    const auto session = open(config);
    // Values 1, -2, 0.4 have the codes 4, -8 and 2, for 1.6 rounds to 2: they read 1, -2, 0.5. Keys
    // meet queries of 0.
    const Numbers means = outputs(*session, request(config, {1, -2, 0.4}, 3));
    EXPECT_EQ(Numbers(means.begin(), means.begin() + 2), (Numbers{1, -0.5})) << kind;
    EXPECT_NEAR(means[2], -0.5 / 3, 1e-7) << kind;
  }
}

}  // namespace
}  // namespace kvcheck::kernels
