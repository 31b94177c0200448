#include "kernels/bench/problem.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/cpu/element.h"

namespace kvcheck::kernels::bench {
namespace {

Problem small() {
  Problem problem;
  problem.query_heads = 4;
  problem.kv_heads = 2;
  problem.head_size = 32;
  problem.length = 3;
  return problem;
}

double at(const Tensor& tensor, std::int64_t place) {
  return decode_element(tensor.type, tensor.bytes.data() + static_cast<std::size_t>(place) *
                                                               element_bytes(tensor.type));
}

TEST(Problem, CodesAreTheTopBytesOfSplitMix64) {
  // First outputs of the published generator: 0xE220A8397B1DCDAF for state 0,
  // 6457827717110365317 = 0x599ED017FB08FC85 for state 1234567.
  std::array<std::int8_t, 1> codes;
  data_codes(0, DataTensor::query, 0, codes);
  EXPECT_EQ(codes[0], 0xE2 - 128);
  data_codes(0, DataTensor::query, 1234567, codes);
  EXPECT_EQ(codes[0], 0x59 - 128);
}

TEST(Problem, TensorsAndSeedsDiffer) {
  std::array<std::int8_t, 16> query, key, other;
  data_codes(1, DataTensor::query, 0, query);
  data_codes(1, DataTensor::key, 0, key);
  data_codes(2, DataTensor::query, 0, other);
  EXPECT_NE(query, key);
  EXPECT_NE(query, other);
}

TEST(Problem, NoCodeIsBelowMinus127) {
  std::vector<std::int8_t> codes(100000);
  data_codes(1, DataTensor::key, 0, codes);
  EXPECT_EQ(*std::min_element(codes.begin(), codes.end()), -127);
  EXPECT_EQ(*std::max_element(codes.begin(), codes.end()), 127);
}

TEST(Problem, CountsOperationsAndBytes) {
  Problem problem;  // 64/8/64
  problem.length = 512;
  EXPECT_EQ(flops(problem), 8388608);       // 4 * 64 * 64 * 512
  EXPECT_EQ(bytes_read(problem), 2097152);  // 2 * 4 * 8 * 64 * 512
  problem.element_type = "bf16";
  EXPECT_EQ(bytes_read(problem), 1048576);
  problem.element_type = "int8";
  EXPECT_EQ(bytes_read(problem), 524288);
  problem.element_type = "int4";
  EXPECT_EQ(bytes_read(problem), 262144);
}

TEST(Problem, AWindowBoundsWhatIsRead) {
  Problem problem;
  problem.length = 512;
  problem.window = 128;
  EXPECT_EQ(flops(problem), 2097152);
  EXPECT_EQ(bytes_read(problem), 524288);
}

TEST(Problem, PrefillCountsCausalPairs) {
  Problem problem = small();  // 4 * 4 * 32 operations for each pair
  problem.operation = "prefill";
  problem.length = 4;
  EXPECT_EQ(flops(problem), 512 * (1 + 2 + 3 + 4));
  EXPECT_EQ(bytes_read(problem), 2 * 4 * 2 * 32 * 4);
  problem.window = 2;
  EXPECT_EQ(flops(problem), 512 * (1 + 2 + 2 + 2));
}

TEST(Problem, ACycleIsThePeriodOfABlockCache) {
  Problem problem = small();
  EXPECT_EQ(problem.cycle(), 1);
  problem.window = 4;
  problem.capacity = 6;
  problem.layout = "block";
  EXPECT_EQ(problem.cycle(), 3);
  problem.layout = "min_overflow";
  EXPECT_EQ(problem.cycle(), 1);
}

TEST(Problem, RequestsHoldTheRowsOfTheData) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    Problem problem = small();
    problem.element_type = type;
    const LoadRequest load = load_request(problem, 2);
    const StepRequest step = step_request(problem, 2, 3);
    EXPECT_EQ(load.lengths, (std::vector<std::int64_t>{2}));
    EXPECT_EQ(load.rows.key.shape, (std::vector<std::int64_t>{1, 2, 3, 32}));
    EXPECT_EQ(step.query.shape, (std::vector<std::int64_t>{1, 1, 4, 32}));
    const auto past = data_row(problem, DataTensor::value, 1, 1);
    const auto fresh = data_row(problem, DataTensor::key, 1, 2);
    const auto query = data_row(problem, DataTensor::query, 3, 2);
    for (std::int64_t lane = 0; lane < 32; ++lane) {
      const auto i = static_cast<std::size_t>(lane);
      EXPECT_EQ(at(load.rows.value, (3 + 1) * 32 + lane), past[i]) << type;
      EXPECT_EQ(at(load.rows.value, (3 + 2) * 32 + lane), 0) << type;
      EXPECT_EQ(at(step.key, 32 + lane), fresh[i]) << type;
      EXPECT_EQ(at(step.query, 3 * 32 + lane), query[i]) << type;
    }
  }
}

TEST(Problem, QuantisedCachesHoldCodesOfTheSameRows) {
  Problem problem = small();
  problem.element_type = "int8";
  LoadRequest load = load_request(problem, 3);
  EXPECT_EQ(load.rows.key.type, ElementType::i8);
  EXPECT_EQ(at(load.rows.key, 5), 128 * data_row(problem, DataTensor::key, 0, 0)[5]);
  SessionConfig config = session_config(problem, 1);
  EXPECT_EQ(config.quantisation.kind, "int8");
  EXPECT_EQ(at(config.quantisation.key_scale, 0), 1.0 / 128);

  problem.element_type = "int4";
  load = load_request(problem, 3);
  EXPECT_EQ(load.rows.key.shape, (std::vector<std::int64_t>{1, 2, 3, 16}));
  const auto row = data_row(problem, DataTensor::key, 0, 0);
  const int packed = static_cast<int>(load.rows.key.bytes[1]);
  EXPECT_EQ((packed & 15) - 8, 8 * row[2]);
  EXPECT_EQ((packed >> 4) - 8, 8 * row[3]);
  EXPECT_EQ(at(session_config(problem, 1).quantisation.key_scale, 0), 1.0 / 8);
}

TEST(Problem, SessionsHaveTheProblemsSizes) {
  Problem problem = small();
  SessionConfig config = session_config(problem, 2);
  EXPECT_EQ(config.capacity, 3);
  EXPECT_EQ(config.window_size, -1);
  EXPECT_EQ(config.threads, 2);
  problem.window = 4;
  problem.capacity = 6;
  problem.layout = "block";
  config = session_config(problem, 1);
  EXPECT_EQ(config.capacity, 6);
  EXPECT_EQ(config.window_size, 4);
  EXPECT_EQ(config.layout, "block");
  EXPECT_EQ(problem.shape(), "4/2/32");
}

}  // namespace
}  // namespace kvcheck::kernels::bench
