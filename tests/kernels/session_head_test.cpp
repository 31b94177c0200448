// What a session is told, as it travels and as an adapter reads it.
#include "kernels/process/session_head.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/process/process_target.h"

namespace kvcheck::kernels {
namespace {

Tensor counted(ElementType type, std::vector<std::int64_t> shape) {
  Tensor tensor = Tensor::zeros(type, std::move(shape));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const float value = static_cast<float>(i) + 0.5F;
    if (type == ElementType::f32) std::memcpy(tensor.bytes.data() + 4 * i, &value, 4);
  }
  return tensor;
}

/// Every optional field away from its default, each with sizes of its own.
SessionConfig full_config() {
  SessionConfig config;
  config.batch = 2;
  config.query_heads = 3;
  config.head_size = config.value_head_size = 4;
  config.capacity = 4;
  config.right_window_size = 0;
  config.softcap = 1.5;
  config.smooth_softmax = true;
  config.head_sink = counted(ElementType::f32, {3});
  config.rotary = RotaryConfig{true, true, counted(ElementType::f32, {5, 2}),
                               counted(ElementType::f32, {5, 2})};
  config.qk_norm =
      QkNormConfig{0.25, counted(ElementType::f32, {4}), counted(ElementType::f32, {4})};
  config.quantisation = {"int4", true, counted(ElementType::f32, {1, 4}),
                         counted(ElementType::f32, {1, 4})};
  config.input_rank = 3;
  config.packed_qkv = true;
  config.qk_output = "biased";
  config.softmax_precision = ElementType::f64;
  config.threads = 2;
  config.isa = "avx2";
  config.launch = {"random", 7, "prefill", 64, 128};
  return config;
}

TEST(OpenHead, LeavesOutWhatIsAtItsDefault) {
  const std::string head = open_head(1, 2, SessionConfig{});
  for (const char* field : {"softcap", "head_sink", "rotary", "quantisation", "tensors", "threads",
                            "input_rank", "qk_output", "right_window_size", "isa", "launch"}) {
    EXPECT_EQ(head.find(field), std::string::npos) << field;
  }
  EXPECT_TRUE(session_tensors(SessionConfig{}).empty());
}

TEST(OpenHead, WritesNumbersThatJsonLacksAsWords) {
  SessionConfig config;
  config.initial_poison = std::numeric_limits<double>::quiet_NaN();
  const std::string head = open_head(3, 4, config);
  EXPECT_NE(head.find("\"initial_poison\":\"nan\""), std::string::npos) << head;
  EXPECT_NE(head.find("\"id\":3"), std::string::npos);
  EXPECT_NE(head.find("\"session\":4"), std::string::npos);
  config.initial_poison = -std::numeric_limits<double>::infinity();
  EXPECT_NE(open_head(3, 4, config).find("\"initial_poison\":\"-inf\""), std::string::npos);
  config.initial_poison = 0x1p-149;
  EXPECT_NE(open_head(3, 4, config).find("\"initial_poison\":1.40129846432481"), std::string::npos);
}

/// An adapter that refuses every session and says what it was asked.
class DescribedSession : public testing::Test {
 protected:
  DescribedSession() {
    ProcessOptions options;
    options.program = "python3";
    options.arguments = {"-B", fmt::format("{}/feature_adapter.py", KVCHECK_TEST_ADAPTERS)};
    auto made = make_process_target(std::move(options));
    if (auto* target = std::get_if<std::unique_ptr<Target>>(&made)) target_ = std::move(*target);
  }

  std::string described(const SessionConfig& config) {
    const auto answer = target_->open(config);
    const auto* refusal = std::get_if<Refusal>(&answer);
    return refusal ? refusal->reason : "(no refusal)";
  }

  std::unique_ptr<Target> target_;
};

TEST_F(DescribedSession, ReachesAnAdapterWhole) {
  ASSERT_NE(target_, nullptr);
  EXPECT_EQ(described(full_config()),
            "right_window_size=0 softcap=1.5 smooth_softmax=True input_rank=3 packed_qkv=True "
            "qk_output=biased softmax_precision=f64 threads=2 isa=avx2 "
            "launch=kernel=prefill,order=random,seed=7,split_positions=128,threads=64 "
            "head_sink=[0.5, 1.5, 2.5] "
            "rotary=True,True,[5, 2],0.5,9.5 qk_norm=0.25,[0.5, 1.5, 2.5, 3.5] "
            "quantisation=int4,True,[1, 4],3.5 rows=u8,2");
}

TEST_F(DescribedSession, TakesTensorsOfItsSizesAlone) {
  ASSERT_NE(target_, nullptr);
  SessionConfig config = full_config();
  config.head_sink = counted(ElementType::f32, {2});
  EXPECT_THROW(target_->open(config), std::invalid_argument);
  config = full_config();
  config.rotary->sin = counted(ElementType::f32, {5, 1});
  EXPECT_THROW(target_->open(config), std::invalid_argument);
  config = full_config();
  config.quantisation.per_channel = false;
  EXPECT_THROW(target_->open(config), std::invalid_argument);
}

/// A session of codes, with turned positions and an intermediate.
TEST_F(DescribedSession, StepsCarryPositionsCodesAndTheIntermediate) {
  ASSERT_NE(target_, nullptr);
  SessionConfig config = full_config();
  config.packed_qkv = false;  // What the adapter opens.
  auto opened = target_->open(config);
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Session>>(opened));
  const auto& session = std::get<std::unique_ptr<Session>>(opened);
  StepRequest step;
  step.tokens = step.queries = {1, 1};
  step.query = Tensor::zeros(ElementType::f32, {2, 1, 3, 4});
  step.key = step.value = Tensor::zeros(ElementType::f32, {2, 1, 1, 4});
  step.position_ids = Tensor::zeros(ElementType::i64, {2, 3});
  step.position_ids->bytes[8] = std::byte{77};
  step.want_rows = true;
  const auto answer = session->step(step);
  const auto* result = std::get_if<StepResult>(&answer);
  ASSERT_NE(result, nullptr);
  ASSERT_TRUE(result->qk && result->rows);
  EXPECT_EQ(result->qk->shape, (std::vector<std::int64_t>{2, 3, 1, 3}));
  float second = 0;
  std::memcpy(&second, result->qk->bytes.data() + 4, 4);
  EXPECT_EQ(second, 77);
  EXPECT_EQ(result->rows->key.type, ElementType::u8);
  EXPECT_EQ(result->rows->key.shape, (std::vector<std::int64_t>{2, 1, 4, 2}));

  LoadRequest load;
  load.lengths = {1, 1};
  load.rows.key = load.rows.value = Tensor::zeros(ElementType::u8, {2, 1, 1, 2});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(session->load(load)));
  load.rows.key = Tensor::zeros(ElementType::u8, {2, 1, 1, 4});
  EXPECT_THROW(session->load(load), std::invalid_argument);
  step.position_ids.reset();
  EXPECT_THROW(session->step(step), std::invalid_argument);
}

}  // namespace
}  // namespace kvcheck::kernels
