// Rows that a step changes are seen on either side, wherever they stand.
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/catalog.h"
#include "tests/properties/forwarding_session.h"

namespace kvcheck::properties {
namespace {

using Side = kernels::Tensor kernels::CacheRows::*;

/// One bit of a row of the second KV head, of which the last step is said to have changed it.
struct Change {
  Side side = nullptr;  ///< Null = none.
  std::int64_t row = 0;
};

/// Steps of the inner session with the rows of the third one changed.
class ChangingSession final : public ForwardingSession {
 public:
  ChangingSession(std::unique_ptr<kernels::Session> inner, Change change)
      : ForwardingSession(std::move(inner)), change_(change) {}

  kernels::Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    auto answer = ForwardingSession::step(request);
    if (++steps_ < 3 || !change_.side) return answer;
    auto& rows = *std::get<kernels::StepResult>(answer).rows;
    kernels::Tensor& tensor = rows.*change_.side;
    const std::int64_t row = tensor.shape[2] + change_.row;
    const auto byte = static_cast<std::size_t>((row + 1) * tensor.shape[3]) * sizeof(float) - 1;
    tensor.bytes[byte] ^= std::byte{1};
    return answer;
  }

 private:
  Change change_;
  int steps_ = 0;
};

class ChangingTarget final : public kernels::Target {
 public:
  explicit ChangingTarget(Change change) : inner_(kernels::make_cpu_naive()), change_(change) {}
  const kernels::Capabilities& capabilities() const override { return inner_->capabilities(); }
  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    auto answer = inner_->open(config);
    auto& session = std::get<std::unique_ptr<kernels::Session>>(answer);
    return std::make_unique<ChangingSession>(std::move(session), change_);
  }

 private:
  std::unique_ptr<kernels::Target> inner_;
  Change change_;
};

Judgement judged(Change change) {
  ChangingTarget target(change);
  Case c(target, model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
      "query_heads":2,"kv_heads":2,"cache":{"layout":"full","capacity":9},
      "steps":[{"append":3},{"append":2},{"append":2}]})"));
  return find_property("cache.present_is_past_plus_new")->judge(c);
}

TEST(SurvivingRows, AreLeftAsTheyAre) { EXPECT_EQ(judged({}).verdict, Verdict::passed); }

TEST(SurvivingRows, AreComparedOnBothSidesFromTheFirstToTheLast) {
  for (const std::int64_t row : {0, 2, 4}) {
    for (const Side side : {&kernels::CacheRows::key, &kernels::CacheRows::value}) {
      const Judgement judgement = judged({side, row});
      EXPECT_EQ(judgement.verdict, Verdict::failed) << row;
      EXPECT_EQ(judgement.kind, Kind::wrong_row);
      const std::string changed =
          std::string("changes the ") + (side == &kernels::CacheRows::key ? "key" : "value") +
          " of position " + std::to_string(row) + " of batch entry 0, KV head 1";
      EXPECT_NE(judgement.text.find(changed), std::string::npos) << judgement.text;
    }
  }
  // Rows that the step brought have none before them.
  EXPECT_EQ(judged({&kernels::CacheRows::key, 5}).verdict, Verdict::passed);
}

}  // namespace
}  // namespace kvcheck::properties
