// What is asked of a session, and what its answers are taken for.
#include "properties/temptation.h"

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/bundle.h"
#include "properties/case.h"
#include "properties/catalog.h"
#include "tests/properties/refusing_target.h"

namespace kvcheck::properties {
namespace {

/// Says yes, or no, to everything and writes down what it was asked.
class Recording final : public kernels::Session {
 public:
  explicit Recording(bool refuses) : refuses_(refuses) {}
  kernels::Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    appended.push_back(request.tokens);
    return answer(kernels::StepResult{});
  }
  kernels::Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    dropped.emplace_back(tokens.begin(), tokens.end());
    return answer(std::monostate{});
  }
  kernels::Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    loaded.push_back(request.lengths);
    return answer(std::monostate{});
  }
  kernels::Answer<kernels::CacheRows> present() override { return answer(kernels::CacheRows{}); }

  std::vector<std::vector<std::int64_t>> appended, dropped, loaded;

 private:
  template <class T>
  kernels::Answer<T> answer(T yes) const {
    if (refuses_) return kernels::Refusal{"no"};
    return yes;
  }

  bool refuses_;
};

/// Entries of 4 and 2 tokens, then one more each; with two steps the place is the second.
model::Scenario two_steps(const std::string& cache, const std::string& second = R"({"append":1})") {
  return model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,"head_size":8,"cache":)" +
                               cache + R"(,"steps":[{"append":[4,2]},)" + second + "]}");
}

const kernels::Capabilities& naive() {
  static const auto target = kernels::make_cpu_naive();
  return target->capabilities();
}

using Counts = std::vector<std::vector<std::int64_t>>;

/// What a temptation asked of a session before the second step, and what it makes of the answers.
struct Asked {
  Recording session;
  std::int64_t asked;
  std::optional<Judgement> failure;
};

Asked ask(const model::Scenario& scenario, bool refuses = true, const TensorChanges& changes = {}) {
  const model::Timeline timeline(scenario);
  Temptation temptation(naive(), scenario, timeline, changes);
  EXPECT_EQ(temptation.place(), 1u);
  Asked result{Recording(refuses), 0, {}};
  temptation.ask(0, result.session);
  EXPECT_EQ(temptation.asked(), 0);
  temptation.ask(1, result.session);
  result.asked = temptation.asked();
  result.failure = temptation.failure();
  return result;
}

TEST(Temptation, AsksAFullCacheForMoreThanItHolds) {
  const Asked asked = ask(two_steps(R"({"capacity":7})"));
  EXPECT_EQ(asked.session.dropped, (Counts{{5, 3}, {1, 3}}));
  EXPECT_EQ(asked.session.appended, (Counts{{6, 6}}));  // 2 + 6 tokens for 7 rows.
  EXPECT_EQ(asked.session.loaded, (Counts{{8, 8}}));
  EXPECT_EQ(asked.asked, 4);
  EXPECT_FALSE(asked.failure.has_value());
}

constexpr const char* kEvicting = R"({"layout":"block","capacity":4,"window_size":2})";

TEST(Temptation, AsksACacheThatEvictsForRollbacksAlone) {
  const Asked asked = ask(two_steps(kEvicting));
  EXPECT_EQ(asked.session.dropped, (Counts{{5, 3}, {1, 3}}));
  EXPECT_EQ(asked.asked, 2);
}

TEST(Temptation, CountsTheTokensThatARollbackIsAboutToDrop) {
  const Asked asked = ask(two_steps(R"({"capacity":7})", R"({"rollback":[2,1]})"));
  EXPECT_EQ(asked.session.dropped, (Counts{{5, 3}, {1, 3}}));
}

TEST(Temptation, AsksInTheOrderThatTheSessionHasItsEntries) {
  const Asked asked = ask(two_steps(kEvicting), true, {reorder_entries({1, 0})});
  EXPECT_EQ(asked.session.dropped, (Counts{{3, 5}, {3, 1}}));
}

TEST(Temptation, RemembersTheFirstYes) {
  const Asked asked = ask(two_steps(R"({"capacity":7})"), false);
  ASSERT_TRUE(asked.failure.has_value());
  EXPECT_EQ(asked.failure->kind, Kind::wrongly_accepted);
  EXPECT_EQ(asked.failure->hint.step, 1);
  EXPECT_NE(asked.failure->text.find("a rollback of 5 tokens,"), std::string::npos)
      << asked.failure->text;
}

TEST(Temptation, HasNoPlaceInOneStep) {
  const auto scenario = model::parse_scenario(
      R"({"schema":1,"operator":"gqa","head_size":8,"cache":{"capacity":7},"steps":[{"append":2}]})");
  EXPECT_FALSE(Temptation::place_of(scenario, model::Timeline(scenario)).has_value());
}

TEST(Temptation, InABundleLeadsToTheProperty) {
  const auto scenario = two_steps(R"({"capacity":7})", R"({"append":1},{"append":2})");
  for (const auto habit :
       {BadRefusal::none, BadRefusal::drops_a_token, BadRefusal::accepts_rollback,
        BadRefusal::accepts_load, BadRefusal::loses_cache}) {
    const auto target = make_refusing_target(habit);
    Case c(*target, scenario, Case::Mode::bundled);
    const Property& property = *find_property("target.refusal_keeps_state");
    EXPECT_EQ(c.bundle().settles(property), habit == BadRefusal::none);
    EXPECT_EQ(judge(c, property).verdict,
              habit == BadRefusal::none ? Verdict::passed : Verdict::failed);
  }
}

}  // namespace
}  // namespace kvcheck::properties
