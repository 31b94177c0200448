// The order of scenarios is total and ranks the parts as documented.
#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "shrinkers/shrink.h"
#include "tests/shrinkers/random_scenario.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Operator;
using model::Past;
using model::Rollback;
using model::Scenario;
using testing::plain_scenario;
using testing::random_scenario;

TEST(Order, IsTotalOnRandomScenarios) {
  std::vector<Scenario> all;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    all.push_back(random_scenario(seed % 2 ? Operator::gqa : Operator::attention, seed));
  }
  for (const Scenario& a : all) {
    for (const Scenario& b : all) {
      EXPECT_EQ(smaller(a, b) + smaller(b, a), a == b ? 0 : 1);
      for (const Scenario& c : all) {
        if (smaller(a, b) && smaller(b, c)) {
          EXPECT_TRUE(smaller(a, c));
        }
      }
    }
  }
}

TEST(Order, TellsScenariosOfEqualSizeApart) {
  const Scenario a = plain_scenario({Append{{1}, {1}, 0}, Append{{2}, {2}, 0}});
  const Scenario b = plain_scenario({Append{{2}, {2}, 0}, Append{{1}, {1}, 0}});
  Scenario c = a, d = a;
  c.scale = 0.25;
  d.scale = 0.5;
  EXPECT_NE(smaller(a, b), smaller(b, a));
  EXPECT_NE(smaller(c, d), smaller(d, c));
}

TEST(Order, RanksEveryPartBeforeTheNext) {
  // Each edit makes one part larger; an edit further up outweighs all edits below it.
  using Edit = std::function<void(Scenario&)>;
  const std::vector<Edit> edits = {
      [](Scenario& s) { s.batch = 2; },
      [](Scenario& s) { s.kv_heads = 2; },
      [](Scenario& s) { s.query_heads = 2; },
      [](Scenario& s) { s.head_size = 8; },
      [](Scenario& s) { s.value_head_size = 8; },
      [](Scenario& s) {
        s.steps = {Past{{1}}, Append{{3}, {3}, 0}, Rollback{{1}}};
      },
      [](Scenario& s) {
        s.steps = {Append{{3}, {3}, 0}, Rollback{{1}}};
      },
      [](Scenario& s) {
        s.steps = {Past{{1}}, Append{{4}, {3}, 0}};
      },
      [](Scenario& s) {
        s.steps = {Past{{1}}, Append{{3}, {4}, 0}};
      },
      [](Scenario& s) {
        s.steps = {Append{{1}, {0}, 0}, Append{{3}, {3}, 0}};
      },
      [](Scenario& s) { s.cache.layout = model::LayoutKind::block; },
      [](Scenario& s) { s.cache.window_size = 1; },
      [](Scenario& s) { s.cache.capacity = 9; },
      [](Scenario& s) { s.mask.kind = model::MaskKind::additive; },
      [](Scenario& s) { s.mask.rank = 4; },
      [](Scenario& s) { s.mask.hidden_percent = 50; },
      [](Scenario& s) { s.mask.empty_rows = true; },
      [](Scenario& s) { s.mask.seed = 5; },
      [](Scenario& s) { s.nonpad_kv_seqlen = true; },
      [](Scenario& s) { s.causal = true; },
      [](Scenario& s) { s.scale = 1.0; },
      [](Scenario& s) { s.share_buffers = false; },
      [](Scenario& s) { s.fill.kind = model::FillKind::random; },
      [](Scenario& s) { s.fill.index = 1; },
      [](Scenario& s) { s.fill.first_entry = 1; },
      [](Scenario& s) { s.fill.sink_logit = 1; },
      [](Scenario& s) { s.fill.seed = 1; },
      [](Scenario& s) { s.poison = model::Poison::finite; },
      [](Scenario& s) { s.element_type = model::ElementType::f16; },
      [](Scenario& s) { s.opset = 24; },
  };
  Scenario base = plain_scenario({Past{{1}}, Append{{3}, {3}, 0}});
  base.op = Operator::attention;
  base.opset = 23;
  base.causal = false;
  Scenario all_below = base;
  for (std::size_t i = edits.size(); i-- > 0;) {
    Scenario edited = base;
    edits[i](edited);
    EXPECT_TRUE(smaller(base, edited)) << "edit " << i;
    EXPECT_TRUE(smaller(all_below, edited)) << "edit " << i;
    edits[i](all_below);
  }
}

TEST(Order, PrefersAPositionFillToNeedlesAndNeedlesToRandom) {
  using enum model::FillKind;
  Scenario last = plain_scenario({Past{{1}}});
  for (const model::FillKind kind : {position_block, needles, random}) {
    Scenario next = last;
    next.fill.kind = kind;
    EXPECT_TRUE(smaller(last, next));
    last = next;
  }
}

TEST(Order, PrefersOrdersOfThreadsThatDrawNothing) {
  using enum model::LaunchOrder;
  Scenario before = plain_scenario({Past{{1}}});
  before.launch.emplace();
  for (const model::LaunchOrder order : {reverse, random, priority, starve}) {
    Scenario next = before;
    next.launch->order = order;
    EXPECT_TRUE(smaller(before, next)) << model::to_string(order);
    EXPECT_FALSE(smaller(next, before)) << model::to_string(order);
    before = next;
  }
}

TEST(Order, PrefersAWindowThatEqualsTheCapacity) {
  Scenario equal = plain_scenario({Past{{1}}});
  equal.cache = {model::LayoutKind::block, 8, 8};
  Scenario less = equal;
  less.cache.window_size = 3;
  EXPECT_TRUE(smaller(equal, less));
  Scenario tighter = less;
  tighter.cache.capacity = 3;
  EXPECT_TRUE(smaller(tighter, equal));
}

TEST(Order, GqaDoesNotCountItsCausalRule) {
  Scenario causal = plain_scenario({Past{{1}}});
  causal.causal = true;
  Scenario with_mask = causal;
  with_mask.share_buffers = false;
  with_mask.causal = false;
  EXPECT_TRUE(smaller(causal, with_mask));
}

}  // namespace
}  // namespace kvcheck::shrinkers
