// What a session is told, as it travels and as an adapter reads it.
#include "kernels/process/session_head.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/process/process_target.h"
#include "tests/kernels/field_texts.h"

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
  config.record_stores = true;
  return config;
}

/// Every field away from its default.
SessionConfig other_config() {
  SessionConfig config = full_config();
  config.op = "attention";
  config.opset = 25;
  config.kv_heads = 7;
  config.value_head_size = 9;
  config.element_type = ElementType::bf16;
  config.layout = "block";
  config.window_size = 3;
  config.causal = false;
  config.nonpad_kv_seqlen = true;
  config.share_buffers = false;
  config.mask = "additive";
  config.scale = 1.0 / 3;
  config.initial_poison = -std::numeric_limits<double>::infinity();
  config.launch->seed = std::numeric_limits<std::uint64_t>::max();
  return config;
}

FieldTexts texts_of(const RotaryConfig& rotary) {
  const auto& [interleaved, position_ids, cos, sin] = rotary;
  return {{"interleaved", text_of(interleaved)},
          {"position_ids", text_of(position_ids)},
          {"cos", text_of(cos)},
          {"sin", text_of(sin)}};
}

FieldTexts texts_of(const QkNormConfig& norm) {
  const auto& [epsilon, query_weight, key_weight] = norm;
  return {{"epsilon", text_of(epsilon)},
          {"query_weight", text_of(query_weight)},
          {"key_weight", text_of(key_weight)}};
}

FieldTexts texts_of(const QuantisationConfig& quantisation) {
  const auto& [kind, per_channel, key_scale, value_scale] = quantisation;
  return {{"kind", text_of(kind)},
          {"per_channel", text_of(per_channel)},
          {"key_scale", text_of(key_scale)},
          {"value_scale", text_of(value_scale)}};
}

FieldTexts texts_of(const LaunchConfig& launch) {
  const auto& [order, seed, kernel, threads, split_positions] = launch;
  return {{"order", text_of(order)},
          {"seed", text_of(seed)},
          {"kernel", text_of(kernel)},
          {"threads", text_of(threads)},
          {"split_positions", text_of(split_positions)}};
}

FieldTexts texts_of(const SessionConfig& config) {
  const auto& [op, opset, batch, query_heads, kv_heads, head_size, value_head_size, element_type,
               layout, capacity, window_size, right_window_size, causal, nonpad_kv_seqlen,
               share_buffers, mask, scale, softcap, smooth_softmax, head_sink, rotary, qk_norm,
               quantisation, input_rank, packed_qkv, qk_output, softmax_precision, initial_poison,
               threads, launch, record_stores, isa] = config;
  FieldTexts texts{{"op", text_of(op)},
                   {"opset", text_of(opset)},
                   {"batch", text_of(batch)},
                   {"query_heads", text_of(query_heads)},
                   {"kv_heads", text_of(kv_heads)},
                   {"head_size", text_of(head_size)},
                   {"value_head_size", text_of(value_head_size)},
                   {"element_type", text_of(element_type)},
                   {"layout", text_of(layout)},
                   {"capacity", text_of(capacity)},
                   {"window_size", text_of(window_size)},
                   {"right_window_size", text_of(right_window_size)},
                   {"causal", text_of(causal)},
                   {"nonpad_kv_seqlen", text_of(nonpad_kv_seqlen)},
                   {"share_buffers", text_of(share_buffers)},
                   {"mask", text_of(mask)},
                   {"scale", text_of(scale)},
                   {"softcap", text_of(softcap)},
                   {"smooth_softmax", text_of(smooth_softmax)},
                   {"head_sink", text_of(head_sink)},
                   {"input_rank", text_of(input_rank)},
                   {"packed_qkv", text_of(packed_qkv)},
                   {"qk_output", text_of(qk_output)},
                   {"softmax_precision", text_of(softmax_precision)},
                   {"initial_poison", text_of(initial_poison)},
                   {"threads", text_of(threads)},
                   {"record_stores", text_of(record_stores)},
                   {"isa", text_of(isa)}};
  add_part(texts, "rotary", texts_of(rotary.value_or(RotaryConfig{})));
  add_part(texts, "qk_norm", texts_of(qk_norm.value_or(QkNormConfig{})));
  add_part(texts, "quantisation", texts_of(quantisation));
  add_part(texts, "launch", texts_of(launch.value_or(LaunchConfig{})));
  texts["parts"] = fmt::format(
      "{}", std::vector<bool>{rotary.has_value(), qk_norm.has_value(), launch.has_value()});
  return texts;
}

/// What the other end reads of a request.
std::variant<SessionConfig, Refusal> read_back(const FrameContent& content) {
  const auto head = parse_head(content.head, FrameKind::request);
  RequestTensors tensors;
  for (const auto& [name, tensor] : content.tensors) tensors.add(std::string(name), *tensor);
  auto config = decode_open(Fields(head, "the request"), tensors);
  tensors.finish();
  return config;
}

TEST(OpenHead, ReadsBackFieldByField) {
  const SessionConfig config = other_config();
  EXPECT_EQ(same_fields(texts_of(config), texts_of(SessionConfig{})), std::vector<std::string>{})
      << "these fields are at their default, so that nothing shows whether they travel";
  const auto back = read_back(open_request(1, 2, config));
  ASSERT_TRUE(std::holds_alternative<SessionConfig>(back));
  EXPECT_EQ(texts_of(std::get<SessionConfig>(back)), texts_of(config));
}

TEST(OpenHead, ReadsBackWhatIsAtItsDefault) {
  const auto back = read_back(open_request(1, 2, SessionConfig{}));
  ASSERT_TRUE(std::holds_alternative<SessionConfig>(back));
  EXPECT_EQ(texts_of(std::get<SessionConfig>(back)), texts_of(SessionConfig{}));
}

std::string error_of(const std::string& config) {
  const FrameContent content{R"({"kind":"open","id":1,"session":1,"config":)" + config + "}", {}};
  try {
    const auto back = read_back(content);
    return std::holds_alternative<Refusal>(back) ? "refused: " + std::get<Refusal>(back).reason
                                                 : "(no error)";
  } catch (const ProtocolError& error) {
    return error.what();
  }
}

TEST(OpenHead, NamesWhatItCannotRead) {
  EXPECT_EQ(error_of(R"({"logit_bias":30})"),
            "refused: config.logit_bias: this target does not know the field");
  EXPECT_EQ(error_of(R"({"rotary":{"base":10000}})"),
            "refused: config.rotary.base: this target does not know the field");
  EXPECT_EQ(error_of("{}"), "config lacks the field op");
  EXPECT_EQ(error_of("3"), "config must be an object");
  const std::string head = open_request(1, 2, SessionConfig{}).head;
  const auto config = nlohmann::json::parse(head)["config"];
  const auto with = [&](const char* field, nlohmann::json value) {
    auto changed = config;
    changed[field] = std::move(value);
    return error_of(changed.dump());
  };
  EXPECT_EQ(with("batch", "1"), "config.batch = \"1\": has the wrong type");
  EXPECT_EQ(with("causal", 1), "config.causal = 1: has the wrong type");
  EXPECT_EQ(with("opset", 4294967296), "config.opset = 4294967296: has the wrong type");
  EXPECT_EQ(with("scale", "wide"), "config.scale = \"wide\": has the wrong type");
  EXPECT_EQ(with("element_type", "f8"), "config.element_type = \"f8\": has the wrong type");
  EXPECT_EQ(with("head_sink", true), "the request lacks the tensor head_sink");
  EXPECT_EQ(with("launch", nlohmann::json::object()), "config.launch lacks the field order");
}

TEST(OpenHead, LeavesOutWhatIsAtItsDefault) {
  const std::string head = open_request(1, 2, SessionConfig{}).head;
  for (const char* field : {"softcap", "head_sink", "rotary", "quantisation", "tensors", "threads",
                            "input_rank", "qk_output", "right_window_size", "isa", "launch"}) {
    EXPECT_EQ(head.find(field), std::string::npos) << field;
  }
  EXPECT_TRUE(open_request(1, 2, SessionConfig{}).tensors.empty());
}

TEST(OpenHead, WritesNumbersThatJsonLacksAsWords) {
  SessionConfig config;
  config.initial_poison = std::numeric_limits<double>::quiet_NaN();
  const std::string head = open_request(3, 4, config).head;
  EXPECT_NE(head.find("\"initial_poison\":\"nan\""), std::string::npos) << head;
  EXPECT_NE(head.find("\"id\":3"), std::string::npos);
  EXPECT_NE(head.find("\"session\":4"), std::string::npos);
  config.initial_poison = -std::numeric_limits<double>::infinity();
  EXPECT_NE(open_request(3, 4, config).head.find("\"initial_poison\":\"-inf\""), std::string::npos);
  config.initial_poison = 0x1p-149;
  EXPECT_NE(open_request(3, 4, config).head.find("\"initial_poison\":1.40129846432481"),
            std::string::npos);
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
            "qk_output=biased softmax_precision=f64 threads=2 isa=avx2 record_stores=True "
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
  EXPECT_EQ(session->last_store({ElementPlace::Of::value, 1, 2, 3, 4}),
            "of value entry 1 head 2 row 3 lane 4");
}

}  // namespace
}  // namespace kvcheck::kernels
