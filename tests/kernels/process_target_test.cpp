// Process targets against adapters that keep the protocol, and against those that break it.
#include "kernels/process/process_target.h"

#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/kernels/expect_contains.h"

namespace kvcheck::kernels {
namespace {

using namespace std::chrono_literals;

ProcessOptions python(const std::string& adapter, std::vector<std::string> arguments,
                      std::chrono::milliseconds limit = 60s) {
  ProcessOptions options;
  options.label = adapter;
  options.program = "python3";
  options.arguments = {"-B", fmt::format("{}/{}_adapter.py", KVCHECK_TEST_ADAPTERS, adapter)};
  for (std::string& argument : arguments) options.arguments.push_back(std::move(argument));
  options.time_limit = limit;
  return options;
}

std::unique_ptr<Target> made(ProcessOptions options) {
  auto result = make_process_target(std::move(options));
  if (auto* failure = std::get_if<Failure>(&result)) {
    ADD_FAILURE() << failure->detail;
    return nullptr;
  }
  return std::move(std::get<std::unique_ptr<Target>>(result));
}

std::unique_ptr<Target> broken(const std::string& mode, std::chrono::milliseconds limit = 60s) {
  return made(python("broken", {mode}, limit));
}

template <class T>
const Failure& failure_of(const Answer<T>& answer) {
  static const Failure none{Failure::Kind::crash, "(no failure)"};
  const auto* failure = std::get_if<Failure>(&answer);
  EXPECT_NE(failure, nullptr);
  return failure != nullptr ? *failure : none;
}

SessionConfig small_config() {
  SessionConfig config;
  config.query_heads = 2;
  config.head_size = config.value_head_size = 2;
  config.capacity = 4;
  return config;
}

std::unique_ptr<Session> opened(Target& target, const SessionConfig& config) {
  auto answer = target.open(config);
  if (auto* session = std::get_if<std::unique_ptr<Session>>(&answer)) return std::move(*session);
  ADD_FAILURE() << "open was not answered ok";
  return nullptr;
}

Tensor filled(std::vector<std::int64_t> shape, float first) {
  Tensor tensor = Tensor::zeros(ElementType::f32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const float value = first + static_cast<float>(i);
    std::memcpy(tensor.bytes.data() + 4 * i, &value, 4);
  }
  return tensor;
}

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / 4);
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * 4);
  return values;
}

/// One token and one query for every entry; the elements of the value count up from `first`.
StepRequest one_token(const SessionConfig& config, float first = 1) {
  StepRequest step;
  step.tokens.assign(static_cast<std::size_t>(config.batch), 1);
  step.queries = step.tokens;
  step.query = filled({config.batch, 1, config.query_heads, config.head_size}, 0);
  step.key = filled({config.batch, 1, config.kv_heads, config.head_size}, -first);
  step.value = filled({config.batch, 1, config.kv_heads, config.value_head_size}, first);
  return step;
}

/// The failure of the first step of broken_adapter.py MODE.
Failure step_failure(const std::string& mode, std::chrono::milliseconds limit = 60s) {
  const auto target = broken(mode, limit);
  const auto session = target ? opened(*target, small_config()) : nullptr;
  return session ? failure_of(session->step(one_token(small_config()))) : Failure{};
}

void expect_step_fails(const std::string& mode, Failure::Kind kind,
                       const std::vector<std::string>& parts,
                       std::chrono::milliseconds limit = 60s) {
  SCOPED_TRACE(mode);
  const Failure failure = step_failure(mode, limit);
  EXPECT_EQ(failure.kind, kind) << failure.detail;
  for (const std::string& part : parts) expect_contains(failure.detail, part);
}

/// Runs, and is no zombie that waits for its parent.
bool runs(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string number, name, state;
  stat >> number >> name >> state;
  return !state.empty() && state != "Z" && state != "X";
}

TEST(ProcessTarget, ReadsTheHandshake) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  const Capabilities& claims = target->capabilities();
  EXPECT_EQ(claims.name, "echo");
  EXPECT_EQ(claims.version, "1.0");
  EXPECT_TRUE(claims.outputs && claims.rows && claims.visible);
  EXPECT_EQ(claims.operators, (std::set<std::string>{"attention", "gqa"}));
  EXPECT_EQ(claims.opsets, std::set<int>{23});
  EXPECT_TRUE(claims.has("rollback"));
  EXPECT_FALSE(claims.has("checks_rollback"));
  EXPECT_EQ(claims.arithmetic.exp_error, 0.25);
  EXPECT_EQ(claims.arithmetic.max_rescales, 7);
  EXPECT_EQ(claims.arithmetic_of("attention", "f16").logit_roundoff, 0.5);
  EXPECT_EQ(claims.arithmetic_of("gqa", "f16").exp_error, 0.25);
}

TEST(ProcessTarget, AnswersWithTheTensorsOfEveryStep) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  SessionConfig config = small_config();
  config.batch = 2;
  const auto session = opened(*target, config);
  ASSERT_NE(session, nullptr);
  StepRequest step = one_token(config, 10);
  step.want_rows = true;
  const auto answer = session->step(step);
  const auto* result = std::get_if<StepResult>(&answer);
  ASSERT_NE(result, nullptr);
  ASSERT_TRUE(result->output && result->visible && result->rows);
  EXPECT_EQ(result->output->shape, (std::vector<std::int64_t>{2, 1, 2, 2}));
  EXPECT_EQ(floats(*result->output), (std::vector<float>{10, 11, 10, 11, 12, 13, 12, 13}));
  EXPECT_EQ(result->visible->shape, (std::vector<std::int64_t>{2, 1, 4}));
  EXPECT_EQ(std::to_integer<int>(result->visible->bytes[0]), 1);
  EXPECT_EQ(std::to_integer<int>(result->visible->bytes[1]), 0);
  EXPECT_EQ(result->rows->key.shape, (std::vector<std::int64_t>{2, 1, 4, 2}));
  EXPECT_EQ(floats(result->rows->key),
            (std::vector<float>{-10, -9, 0, 0, 0, 0, 0, 0, -8, -7, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(floats(result->rows->value)[9], 13);
}

TEST(ProcessTarget, LeavesOutRowsThatAreNotWanted) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  const auto session = opened(*target, small_config());
  ASSERT_NE(session, nullptr);
  const auto answer = session->step(one_token(small_config()));
  ASSERT_TRUE(std::holds_alternative<StepResult>(answer));
  EXPECT_FALSE(std::get<StepResult>(answer).rows.has_value());
}

TEST(ProcessTarget, RollsBackAndLoadsRows) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  const auto session = opened(*target, small_config());
  ASSERT_NE(session, nullptr);
  LoadRequest load;
  load.lengths = {2};
  load.rows = {filled({1, 1, 3, 2}, 1), filled({1, 1, 3, 2}, 101)};
  ASSERT_TRUE(std::holds_alternative<std::monostate>(session->load(load)));
  ASSERT_TRUE(std::holds_alternative<StepResult>(session->step(one_token(small_config(), 50))));
  const std::vector<std::int64_t> two{2};
  ASSERT_TRUE(std::holds_alternative<std::monostate>(session->rollback(two)));
  const auto rows = session->present();
  ASSERT_TRUE(std::holds_alternative<CacheRows>(rows));
  EXPECT_EQ(floats(std::get<CacheRows>(rows).value),
            (std::vector<float>{101, 102, 0, 0, 0, 0, 0, 0}));
}

TEST(ProcessTarget, HandsOverARefusalAndGoesOn) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  SessionConfig too_many = small_config();
  too_many.batch = 9;
  const auto refused = target->open(too_many);
  ASSERT_TRUE(std::holds_alternative<Refusal>(refused));
  EXPECT_EQ(std::get<Refusal>(refused).reason, "a batch of 9 is more than the 8 that echo takes");
  const auto session = opened(*target, small_config());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(std::holds_alternative<StepResult>(session->step(one_token(small_config(), 7))));
  const std::vector<std::int64_t> five{5};
  EXPECT_TRUE(std::holds_alternative<Refusal>(session->rollback(five)));
  const auto rows = session->present();
  ASSERT_TRUE(std::holds_alternative<CacheRows>(rows));
  EXPECT_EQ(floats(std::get<CacheRows>(rows).value)[0], 7);
}

TEST(ProcessTarget, KeepsSessionsApart) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  const auto first = opened(*target, small_config());
  auto second = opened(*target, small_config());
  ASSERT_TRUE(first && second);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(std::holds_alternative<StepResult>(first->step(one_token(small_config(), 1))));
    ASSERT_TRUE(std::holds_alternative<StepResult>(second->step(one_token(small_config(), 100))));
  }
  second.reset();
  const auto rows = first->present();
  ASSERT_TRUE(std::holds_alternative<CacheRows>(rows));
  EXPECT_EQ(floats(std::get<CacheRows>(rows).value), (std::vector<float>{1, 2, 1, 2, 0, 0, 0, 0}));
}

TEST(ProcessTarget, CarriesTensorsThatFillNoPipeAtOnce) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  SessionConfig config = small_config();
  config.capacity = 1;
  config.query_heads = 1;
  config.head_size = 1;
  config.value_head_size = 3'000'001;
  const auto session = opened(*target, config);
  ASSERT_NE(session, nullptr);
  const StepRequest step = one_token(config, 5);
  for (int i = 0; i < 2; ++i) {
    const auto answer = session->step(step);
    if (i == 1) {
      EXPECT_TRUE(std::holds_alternative<Refusal>(answer));
      break;
    }
    ASSERT_TRUE(std::holds_alternative<StepResult>(answer));
    EXPECT_TRUE(std::get<StepResult>(answer).output->bytes == step.value.bytes);
  }
}

TEST(ProcessTarget, AnswersThousandsOfRequestsInOrder) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  SessionConfig config = small_config();
  config.capacity = 1;
  const auto session = opened(*target, config);
  ASSERT_NE(session, nullptr);
  const std::vector<std::int64_t> one{1};
  for (int i = 0; i < 1500; ++i) {
    const auto answer = session->step(one_token(config, static_cast<float>(i)));
    ASSERT_TRUE(std::holds_alternative<StepResult>(answer));
    ASSERT_EQ(floats(*std::get<StepResult>(answer).output)[0], static_cast<float>(i));
    ASSERT_TRUE(std::holds_alternative<std::monostate>(session->rollback(one)));
  }
}

TEST(ProcessTarget, ThrowsAtARequestThatIsNotOfItsSession) {
  const auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  const auto session = opened(*target, small_config());
  ASSERT_NE(session, nullptr);
  StepRequest step = one_token(small_config());
  step.key = filled({1, 1, 1, 3}, 0);
  EXPECT_THROW(session->step(step), std::invalid_argument);
  EXPECT_TRUE(std::holds_alternative<StepResult>(session->step(one_token(small_config()))));
}

TEST(ProcessTarget, SessionsOutliveTheirTarget) {
  auto target = made(python("echo", {}));
  ASSERT_NE(target, nullptr);
  const auto session = opened(*target, small_config());
  ASSERT_NE(session, nullptr);
  target.reset();
  EXPECT_TRUE(std::holds_alternative<StepResult>(session->step(one_token(small_config()))));
}

TEST(ProcessTarget, SaysHowAChildDied) {
  expect_step_fails("dies", Failure::Kind::crash,
                    {"step", "exit code 3", "giving up: out of ? ideas"});
  expect_step_fails("ends_by_signal", Failure::Kind::crash, {"step", "signal 11"});
  expect_step_fails("error", Failure::Kind::crash, {"step", "ValueError: no such kernel"});
  expect_step_fails("defect", Failure::Kind::defect, {"step", "a data race"});
  expect_step_fails("error_of_no_kind", Failure::Kind::nonsense, {"bad luck", "crash, hang"});
}

TEST(ProcessTarget, SaysThatAnAnswerWasCut) {
  expect_step_fails("half_frame", Failure::Kind::nonsense, {"exit code 0", "bytes of an answer"});
  expect_step_fails("closes_output", Failure::Kind::nonsense, {"standard output", "runs on"});
}

TEST(ProcessTarget, EndsAChildThatExceedsItsTime) {
  expect_step_fails("hangs", Failure::Kind::hang, {"step", "within 1500 ms", "endless loop"},
                    1500ms);
  expect_step_fails("half_frame_hangs", Failure::Kind::hang, {"bytes of an answer"}, 1500ms);
  expect_step_fails("trickles", Failure::Kind::hang, {"bytes of an answer"}, 1500ms);
}

TEST(ProcessTarget, EndsWhatTheChildHasStartedToo) {
  const Failure failure = step_failure("hangs_with_child", 1500ms);
  EXPECT_EQ(failure.kind, Failure::Kind::hang) << failure.detail;
  const auto at = failure.detail.rfind("child ");
  ASSERT_NE(at, std::string::npos) << failure.detail;
  const std::string pid = failure.detail.substr(at + 6);
  // The signal is on its way when the failure comes back; give it the time to arrive.
  for (int i = 0; i < 1000 && runs(pid); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(runs(pid));
}

TEST(ProcessTarget, StartsAgainAtTheNextOpen) {
  for (const char* mode : {"dies", "wrong_id", "hangs"}) {
    SCOPED_TRACE(mode);
    const auto target = broken(mode, 1500ms);
    ASSERT_NE(target, nullptr);
    const auto session = opened(*target, small_config());
    ASSERT_NE(session, nullptr);
    const Failure first = failure_of(session->step(one_token(small_config())));
    EXPECT_NE(opened(*target, small_config()), nullptr);
    // A session of a dead child stays dead, and says of what.
    const auto after = session->step(one_token(small_config()));
    EXPECT_EQ(failure_of(after).detail, first.detail);
  }
}

TEST(ProcessTarget, ComparesAnswersWithTheClaims) {
  const auto nonsense = Failure::Kind::nonsense;
  expect_step_fails("wrong_shape", nonsense, {"output is f32 [1,1,2,3]", "must be f32 [1,1,2,2]"});
  expect_step_fails("wrong_type", nonsense, {"output is f64", "must be f32"});
  expect_step_fails("no_output", nonsense, {"lacks the tensor output", "do not claim it"});
  expect_step_fails("unasked_tensor", nonsense, {"surprise", "this request takes output"});
  expect_step_fails("output_twice", nonsense, {"output twice"});
}

TEST(ProcessTarget, NamesWhatIsWrongWithAFrame) {
  const auto nonsense = Failure::Kind::nonsense;
  expect_step_fails("bad_json", nonsense, {"not a JSON object", "answer\": ok"});
  expect_step_fails("huge_length", nonsense, {"1099511627776", "limits"});
  expect_step_fails("huge_shape", nonsense, {"output", "4611686018427387904"});
  expect_step_fails("lying_body", nonsense, {"take 0 bytes but its body has 8"});
  expect_step_fails("wrong_id", nonsense, {"the answer has the id", "with its own id"});
  expect_step_fails("prints", nonsense, {"computing the a", "messages to standard error"});
  expect_step_fails("unknown_answer", nonsense, {"later", "ok, refused and error"});
}

TEST(ProcessTarget, ReadsStandardErrorHoweverMuchThereIs) {
  const auto target = broken("floods");
  ASSERT_NE(target, nullptr);
  const auto session = opened(*target, small_config());
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(std::holds_alternative<StepResult>(session->step(one_token(small_config()))));
  expect_step_fails("floods_and_dies", Failure::Kind::crash, {"exit code 1", "last words"});
}

TEST(ProcessTarget, NoticesAnAnswerThatNobodyAskedFor) {
  const auto target = broken("answers_twice");
  ASSERT_NE(target, nullptr);
  const auto session = opened(*target, small_config());
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(std::holds_alternative<StepResult>(session->step(one_token(small_config()))));
  const auto second = session->step(one_token(small_config()));
  EXPECT_EQ(failure_of(second).kind, Failure::Kind::nonsense);
  expect_contains(failure_of(second).detail, "answer every request once");
}

TEST(ProcessTarget, SurvivesAChildThatStopsReading) {
  const auto target = broken("closes_input", 1500ms);
  ASSERT_NE(target, nullptr);
  const auto session = opened(*target, small_config());
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(failure_of(session->step(one_token(small_config()))).kind, Failure::Kind::hang);
}

TEST(ProcessTarget, SaysWhyThereIsNoTarget) {
  const auto failed = [](const std::string& mode) {
    const auto result = make_process_target(python("broken", {mode}));
    EXPECT_TRUE(std::holds_alternative<Failure>(result)) << mode;
    return std::get<Failure>(result);
  };
  EXPECT_EQ(failed("dies_at_start").kind, Failure::Kind::crash);
  expect_contains(failed("dies_at_start").detail, "No module named 'kernel'");
  EXPECT_EQ(failed("other_protocol").kind, Failure::Kind::nonsense);
  expect_contains(failed("other_protocol").detail, "speaks protocol 9");
  expect_contains(failed("no_name").detail, "lacks the field name");
  expect_contains(failed("bad_claims").detail, "capabilities.features must be an array");
  expect_contains(failed("refuses_hello").detail, "not today");
}

TEST(ProcessTarget, SaysThatAProgramIsNotThere) {
  ProcessOptions options;
  for (const std::string program : {"/nowhere/at/all", "kvcheck-no-such-program"}) {
    options.program = options.label = program;
    const auto made = make_process_target(options);
    ASSERT_TRUE(std::holds_alternative<Failure>(made));
    expect_contains(std::get<Failure>(made).detail,
                    program[0] == '/' ? program + " cannot be started" : "not in PATH");
  }
}

}  // namespace
}  // namespace kvcheck::kernels
