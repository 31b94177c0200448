// Sessions that the protocol cannot carry are refused before the program is asked.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/process/process_target.h"

namespace kvcheck::kernels {
namespace {

class ProcessRefusals : public testing::Test {
 protected:
  ProcessRefusals() {
    ProcessOptions options;
    options.program = "python3";
    options.arguments = {"-B", fmt::format("{}/echo_adapter.py", KVCHECK_TEST_ADAPTERS)};
    auto made = make_process_target(std::move(options));
    if (auto* target = std::get_if<std::unique_ptr<Target>>(&made)) target_ = std::move(*target);
    config_.query_heads = 2;
    config_.head_size = config_.value_head_size = 2;
    config_.capacity = 4;
  }

  /// The reason for which the session is refused; empty = it is opened.
  std::string refusal(const SessionConfig& config) {
    const auto answer = target_->open(config);
    const auto* refusal = std::get_if<Refusal>(&answer);
    return refusal ? refusal->reason : "";
  }

  template <class Change>
  void expect_refused(const char* field, Change change) {
    SessionConfig config = config_;
    change(config);
    EXPECT_EQ(refusal(config), fmt::format("the protocol does not carry {}; leave it at its "
                                           "default, or do not claim it",
                                           field));
  }

  std::unique_ptr<Target> target_;
  SessionConfig config_;
};

TEST_F(ProcessRefusals, NameTheFieldAndLeaveTheTargetUsable) {
  ASSERT_NE(target_, nullptr);
  expect_refused("right_window_size", [](SessionConfig& c) { c.right_window_size = 0; });
  expect_refused("softcap", [](SessionConfig& c) { c.softcap = 2; });
  expect_refused("smooth_softmax", [](SessionConfig& c) { c.smooth_softmax = true; });
  expect_refused("head_sink", [](SessionConfig& c) { c.head_sink = Tensor{}; });
  expect_refused("rotary", [](SessionConfig& c) { c.rotary = RotaryConfig{}; });
  expect_refused("qk_norm", [](SessionConfig& c) { c.qk_norm = QkNormConfig{}; });
  expect_refused("quantisation", [](SessionConfig& c) { c.quantisation.kind = "int8"; });
  expect_refused("input_rank", [](SessionConfig& c) { c.input_rank = 3; });
  expect_refused("packed_qkv", [](SessionConfig& c) { c.packed_qkv = true; });
  expect_refused("qk_output", [](SessionConfig& c) { c.qk_output = "raw"; });
  expect_refused("softmax_precision",
                 [](SessionConfig& c) { c.softmax_precision = ElementType::f16; });
  expect_refused("threads", [](SessionConfig& c) { c.threads = 2; });
  expect_refused("isa", [](SessionConfig& c) { c.isa = "avx2"; });
  EXPECT_EQ(refusal(config_), "");
}

}  // namespace
}  // namespace kvcheck::kernels
