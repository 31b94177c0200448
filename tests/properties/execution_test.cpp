// What is asked of a target, and where an execution ends.
#include "properties/execution.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/requests.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kWindowed = R"("operator":"gqa","head_size":8,
    "cache":{"layout":"block","capacity":6,"window_size":4})";

model::Scenario windowed(const std::string& steps, const std::string& more = "") {
  return model::parse_scenario("{\"schema\":1," + std::string(kWindowed) + more +
                               ",\"steps\":" + steps + "}");
}

Execution run(const model::Scenario& scenario, std::string_view fault = "") {
  const auto target = fault.empty() ? kernels::make_cpu_naive() : kernels::make_cpu_naive(fault);
  const model::Timeline timeline(scenario);
  return execute(*target, scenario, timeline, model::Fill(scenario, timeline));
}

TEST(Execute, AnswersEveryStepWithRows) {
  const auto execution =
      run(windowed(R"([{"append":5},{"append":3},{"rollback":1},{"append":1}])"));
  EXPECT_TRUE(execution.complete);
  ASSERT_EQ(execution.steps.size(), 4u);
  for (const auto& step : execution.steps) {
    EXPECT_EQ(step.status, StepAnswer::Status::ok);
    EXPECT_TRUE(step.result.rows.has_value());
  }
  EXPECT_FALSE(execution.first_problem().has_value());
}

TEST(Execute, StopsAtAnInexactRollbackThatIsRefused) {
  const auto execution = run(windowed(R"([{"append":12},{"rollback":3},{"append":1}])"));
  EXPECT_TRUE(execution.complete);
  EXPECT_TRUE(execution.refusal_kept_state);
  EXPECT_EQ(execution.steps[1].status, StepAnswer::Status::refused);
  EXPECT_EQ(execution.steps[2].status, StepAnswer::Status::not_run);
}

TEST(Execute, SeesThatAnInexactRollbackWasTaken) {
  const auto execution =
      run(windowed(R"([{"append":12},{"rollback":3},{"append":1}])"), "rollback_always_accepted");
  EXPECT_EQ(execution.steps[1].status, StepAnswer::Status::ok);
}

TEST(StepRequest, PoisonsTheRowsBeyondTheResidentOnes) {
  const auto scenario = windowed(R"([{"append":5},{"append":2},{"append":1}])");
  const model::Timeline timeline(scenario);
  const model::Fill fill(scenario, timeline);
  EXPECT_EQ(step_request(scenario, timeline, fill, 0).poison->first_row.at(0), 0);
  EXPECT_EQ(step_request(scenario, timeline, fill, 1).poison->first_row.at(0), 5);
  EXPECT_EQ(step_request(scenario, timeline, fill, 2).poison->first_row.at(0), 4);
}

TEST(StepRequest, PadsRaggedStepsWithThePoison) {
  const auto scenario = windowed(R"([{"append":[3,1]}])", R"(,"batch":2,"poison":"nan")");
  const model::Timeline timeline(scenario);
  const model::Fill fill(scenario, timeline);
  const auto request = step_request(scenario, timeline, fill, 0);
  EXPECT_EQ(request.key.shape, (std::vector<std::int64_t>{2, 3, 1, 8}));
  EXPECT_FALSE(std::isnan(element(request.key, (1 * 3 + 0) * 8)));
  EXPECT_TRUE(std::isnan(element(request.key, (1 * 3 + 1) * 8)));
  EXPECT_TRUE(std::isnan(element(request.query, (1 * 3 + 2) * 8)));
}

/// Keeps the configuration that it was asked for, and refuses.
class Listener final : public kernels::Target {
 public:
  const kernels::Capabilities& capabilities() const override { return capabilities_; }
  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    heard = config;
    return kernels::Refusal{"only listening"};
  }
  kernels::SessionConfig heard;

 private:
  kernels::Capabilities capabilities_;
};

TEST(Execute, AsksForThreadsAndAnInstructionSet) {
  const auto scenario = windowed(R"([{"append":1}])");
  const model::Timeline timeline(scenario);
  const model::Fill fill(scenario, timeline);
  Listener target;
  execute(target, scenario, timeline, fill);
  EXPECT_EQ(target.heard.threads, 0);
  EXPECT_EQ(target.heard.isa, "");
  execute(target, scenario, timeline, fill, {.threads = 3, .isa = "avx2"});
  EXPECT_EQ(target.heard.threads, 3);
  EXPECT_EQ(target.heard.isa, "avx2");
}

TEST(LoadRequest, PutsResidentPositionsInRowZeroOnwards) {
  const auto scenario = windowed(R"([{"past":7},{"append":1}])");
  const model::Timeline timeline(scenario);
  const model::Fill fill(scenario, timeline);
  const auto load = load_request(scenario, timeline, fill, 0);
  ASSERT_EQ(load.rows.key.shape, (std::vector<std::int64_t>{1, 1, 6, 8}));
  for (std::int64_t row = 0; row < 4; ++row) {  // L(7) = 4: positions 3 to 6.
    EXPECT_EQ(element(load.rows.key, row * 8), fill.key(0, 0, {{3 + row}, 0}, 0));
  }
  EXPECT_EQ(element(load.rows.key, 4 * 8), fill.poison(scenario.poison));
}

TEST(LoadRequest, StoresCodesWhereTheCacheIsQuantised) {
  // A position fill stores 1 as 32 (int8), 2 (int4) or 4 (fp8, byte 0x48) and 0 as 0; the poison
  // beyond is cut to the range, but for the NaN of fp8.
  struct Kind {
    const char *name, *poison;
    int one, beyond;
  };
  for (const Kind& kind : {Kind{"int8", "huge", 32, 127}, Kind{"fp8", "nan", 0x48, 0x7f}}) {
    const auto scenario = windowed(
        R"([{"past":2},{"append":1}])",
        std::string(R"(,"fill":{"kind":"position_code"},"poison":")") + kind.poison + "\"");
    model::Scenario quantised = scenario;
    quantised.cache.quantisation.kind = std::string(kind.name) == "int8"
                                            ? model::QuantisationKind::int8
                                            : model::QuantisationKind::fp8;
    const model::Timeline timeline(quantised);
    const auto load = load_request(quantised, timeline, model::Fill(quantised, timeline), 0);
    ASSERT_EQ(load.rows.value.shape, (std::vector<std::int64_t>{1, 1, 6, 8})) << kind.name;
    const auto lane = model::position_lane(quantised, 0, 0, {1});
    for (std::int64_t c = 0; c < 8; ++c) {
      EXPECT_EQ(std::to_integer<int>(load.rows.value.bytes[static_cast<std::size_t>(8 + c)]),
                c == lane ? kind.one : 0);
    }
    EXPECT_EQ(std::to_integer<int>(load.rows.value.bytes[2 * 8]), kind.beyond) << kind.name;
  }
}

TEST(LoadRequest, PutsTwoCodesOfInt4IntoAByte) {
  auto scenario = windowed(R"([{"past":2},{"append":1}])", R"(,"fill":{"kind":"position_code"})");
  scenario.cache.quantisation.kind = model::QuantisationKind::int4;
  const model::Timeline timeline(scenario);
  const auto load = load_request(scenario, timeline, model::Fill(scenario, timeline), 0);
  EXPECT_EQ(load.rows.value.type, kernels::ElementType::u8);
  ASSERT_EQ(load.rows.value.shape, (std::vector<std::int64_t>{1, 1, 6, 4}));
  const auto lane = model::position_lane(scenario, 0, 0, {0});
  for (std::int64_t pair = 0; pair < 4; ++pair) {
    const int expected = pair != lane / 2 ? 0x88 : lane % 2 == 0 ? 0x8a : 0xa8;
    EXPECT_EQ(std::to_integer<int>(load.rows.value.bytes[static_cast<std::size_t>(pair)]),
              expected);
  }
}

TEST(StepRequest, BringsPositionIdsInRowsOfTheirOwnLength) {
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,
      "rotary":{"position_ids":{"shift":7,"stride":2,"extra_columns":1}},
      "cache":{"capacity":9},"steps":[{"append":[3,1]},{"append":2}]})");
  const model::Timeline timeline(scenario);
  const auto request = step_request(scenario, timeline, model::Fill(scenario, timeline), 1);
  ASSERT_TRUE(request.position_ids.has_value());
  EXPECT_EQ(request.position_ids->type, kernels::ElementType::i64);
  EXPECT_EQ(request.position_ids->shape, (std::vector<std::int64_t>{2, 3}));
  std::vector<std::int64_t> ids(6);
  std::memcpy(ids.data(), request.position_ids->bytes.data(), 6 * sizeof(std::int64_t));
  // Entry 0 goes on at position 3, entry 1 at position 1.
  EXPECT_EQ(ids, (std::vector<std::int64_t>{13, 15, 17, 9, 11, 13}));
  const auto plain = windowed(R"([{"append":1}])");
  const model::Timeline other(plain);
  EXPECT_FALSE(step_request(plain, other, model::Fill(plain, other), 0).position_ids.has_value());
}

TEST(StepRequest, GivesAMaskOfTheRankThatIsAskedFor) {
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"attention","opset":23,
      "query_heads":2,"mask":{"kind":"boolean","rank":3,"hidden_percent":50,"seed":3},
      "steps":[{"past":2},{"append":2,"queries":1}]})");
  const model::Timeline timeline(scenario);
  const auto request = step_request(scenario, timeline, model::Fill(scenario, timeline), 1);
  ASSERT_TRUE(request.mask.has_value());
  EXPECT_EQ(request.mask->shape, (std::vector<std::int64_t>{2, 1, 4}));
}

/// Memory of an earlier request must not show in a later one: ragged, without queries, with a mask.
TEST(StepRequest, IsTheSameInMemoryThatWasUsed) {
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,
      "head_size":8,"cache":{"capacity":12},"fill":{"kind":"random","seed":4},
      "mask":{"kind":"additive","rank":4,"hidden_percent":30,"seed":1},
      "steps":[{"append":4},{"append":[1,3]},{"append":[2,2],"queries":[0,0]},{"append":1}]})");
  const model::Timeline timeline(scenario);
  const model::Fill fill(scenario, timeline);
  DrawnRows rows(scenario);
  kernels::StepRequest used;
  for (const std::size_t step : {0u, 1u, 2u, 3u, 1u}) {
    step_request(scenario, timeline, fill, step, rows, used);
    const auto fresh = step_request(scenario, timeline, fill, step);
    const auto same = [&](const kernels::Tensor& a, const kernels::Tensor& b) {
      EXPECT_EQ(a.shape, b.shape) << step;
      EXPECT_TRUE(a.bytes == b.bytes) << step;
    };
    same(used.query, fresh.query);
    same(used.key, fresh.key);
    same(used.value, fresh.value);
    ASSERT_TRUE(used.mask && fresh.mask);
    same(*used.mask, *fresh.mask);
    EXPECT_EQ(used.tokens, fresh.tokens);
    EXPECT_EQ(used.queries, fresh.queries);
    EXPECT_EQ(used.poison->first_row, fresh.poison->first_row);
  }
}

/// Requests are made and changed before the first is asked.
TEST(Execute, InterposesBeforeEachStep) {
  const auto scenario = windowed(R"([{"past":2},{"append":2},{"rollback":1},{"append":1}])");
  const model::Timeline timeline(scenario);
  std::vector<std::string> seen;
  Interposer interposer;
  interposer.config = [&](kernels::SessionConfig& config) {
    seen.push_back("open " + std::to_string(config.threads));
  };
  interposer.before = [&](std::size_t step, kernels::Session& session) {
    const auto rows = session.present();
    seen.push_back((std::holds_alternative<kernels::CacheRows>(rows) ? "before " : "no rows ") +
                   std::to_string(step));
  };
  interposer.append = [&](std::size_t step, kernels::StepRequest& request) {
    seen.push_back("append " + std::to_string(step) + " of " + std::to_string(request.tokens[0]));
  };
  interposer.load = [&](std::size_t step, kernels::LoadRequest& request) {
    seen.push_back("load " + std::to_string(step) + " of " + std::to_string(request.lengths[0]));
  };
  interposer.after = [&](std::size_t step, kernels::Session&, const kernels::StepResult& result) {
    seen.push_back("after " + std::to_string(step) + (result.rows ? "" : " without rows"));
  };
  const auto target = kernels::make_cpu_naive();
  const Execution execution = execute(*target, scenario, timeline, model::Fill(scenario, timeline),
                                      {.threads = 2, .interposer = &interposer});
  EXPECT_TRUE(execution.complete);
  EXPECT_EQ(seen,
            (std::vector<std::string>{"open 2", "load 0 of 2", "append 1 of 2", "append 3 of 1",
                                      "before 0", "after 0", "before 1", "after 1", "before 2",
                                      "after 2", "before 3", "after 3"}));
}

/// Where an interposer makes the requests the scenario's own are not asked for.
TEST(Execute, RunsTheRequestsThatItsInterposerMakes) {
  const auto scenario = windowed(R"([{"past":2},{"append":2},{"append":1}])");
  const model::Timeline timeline(scenario);
  const model::Fill fill(scenario, timeline);
  const auto other = windowed(R"([{"past":2},{"append":2},{"append":1}])",
                              R"(,"fill":{"kind":"random","seed":9})");
  const model::Timeline other_timeline(other);
  const model::Fill other_fill(other, other_timeline);
  DrawnRows rows(other);
  Interposer interposer;
  interposer.make_append = [&](std::size_t step, kernels::StepRequest& request) {
    step_request(other, other_timeline, other_fill, step, rows, request);
  };
  interposer.make_load = [&](std::size_t step, kernels::LoadRequest& request) {
    load_request(other, other_timeline, other_fill, step, rows, request);
  };
  const auto target = kernels::make_cpu_naive();
  const Execution made = execute(*target, scenario, timeline, fill, {.interposer = &interposer});
  const Execution expected = execute(*target, other, other_timeline, other_fill);
  ASSERT_TRUE(made.complete && expected.complete);
  for (const std::size_t step : {1u, 2u}) {
    EXPECT_TRUE(made.steps[step].result.output->bytes == expected.steps[step].result.output->bytes);
    EXPECT_TRUE(made.steps[step].result.rows->key.bytes ==
                expected.steps[step].result.rows->key.bytes);
  }
}

/// Requests use the memory of the run before, whatever it held: other types, shapes, a mask.
TEST(Execute, GivesTheSameAfterAnotherScenario) {
  const auto plain = windowed(R"([{"past":5},{"append":3},{"append":1}])");
  const auto masked = model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,
      "head_size":16,"element_type":"f16","cache":{"capacity":12},"poison":"nan",
      "mask":{"kind":"additive","rank":4,"seed":1},"steps":[{"past":[3,1]},{"append":[4,2]}]})");
  const Execution first = run(plain), other = run(masked), second = run(plain);
  ASSERT_TRUE(other.complete);
  for (std::size_t step = 0; step < 3; ++step) {
    const auto& a = first.steps[step].result;
    const auto& b = second.steps[step].result;
    EXPECT_TRUE(a.rows->key.bytes == b.rows->key.bytes) << step;
    EXPECT_TRUE(a.rows->value.bytes == b.rows->value.bytes) << step;
    ASSERT_EQ(a.output.has_value(), b.output.has_value());
    if (!a.output) continue;
    EXPECT_TRUE(a.output->bytes == b.output->bytes) << step;
  }
}

/// The fill's tokens move up behind others, which are none of its own.
TEST(LoadRequest, PutsMoreTokensInFront) {
  for (const char* quantised : {"", R"(,"quantisation":{"kind":"int8"})"}) {
    const auto of = [&](int tokens) {
      return model::parse_scenario(R"({"schema":1,"operator":"gqa","head_size":8,
          "cache":{"layout":"full","capacity":8)" +
                                   std::string(quantised) +
                                   R"(},"fill":{"kind":"random","seed":4},"steps":[{"past":)" +
                                   std::to_string(tokens) + "}]}");
    };
    const auto own = of(4), shifted = of(7);
    const model::Timeline timeline(own), shifted_timeline(shifted);
    const model::Fill fill(own, timeline);
    const auto expected = load_request(own, timeline, fill, 0);
    DrawnRows rows(own);
    kernels::LoadRequest moved;
    load_request(shifted, shifted_timeline, fill, 0, rows, moved, 3);
    EXPECT_EQ(moved.lengths, (std::vector<std::int64_t>{7}));
    const auto row = [](const kernels::Tensor& tensor, std::size_t r) {
      const std::size_t width = tensor.bytes.size() / 8;
      return std::vector<std::byte>(
          tensor.bytes.begin() + static_cast<std::ptrdiff_t>(r * width),
          tensor.bytes.begin() + static_cast<std::ptrdiff_t>((r + 1) * width));
    };
    for (const auto side : {&kernels::CacheRows::key, &kernels::CacheRows::value}) {
      for (std::size_t r = 0; r < 4; ++r) {
        EXPECT_TRUE(row(moved.rows.*side, 3 + r) == row(expected.rows.*side, r)) << r;
        for (std::size_t front = 0; front < 3; ++front) {
          EXPECT_FALSE(row(moved.rows.*side, front) == row(expected.rows.*side, r)) << r;
        }
      }
      EXPECT_TRUE(row(moved.rows.*side, 7) == row(expected.rows.*side, 7));
    }
  }
}

}  // namespace
}  // namespace kvcheck::properties
