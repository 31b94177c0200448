// Drawing changes: only for targets that take operator calls, and only ones that the call has.
#include "properties/calls/call_draw.h"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/Random.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/calls/call_changes.h"
#include "properties/calls/call_of.h"

namespace kvcheck::properties {
namespace {

TEST(CallDraw, NamesAChangeThatTheCallHas) {
  kernels::Capabilities can = kernels::make_cpu_naive()->capabilities();
  const auto scenario = model::parse_scenario(R"({"schema":1,"operator":"gqa",
      "cache":{"capacity":8},"steps":[{"append":4},{"append":1}]})");
  const auto call = std::get<kernels::OperatorCall>(operator_call_of(scenario));
  std::set<std::string> names;
  for (const bool takes : {false, true}) {
    if (takes) can.features.insert("operator_calls");
    names.clear();
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      auto drawn = scenario;
      Draw draw{rc::Random(seed)};
      draw_call_change(can, draw, drawn);
      if (drawn.call_change.empty()) continue;
      EXPECT_TRUE(changed_call(call, drawn.call_change).has_value()) << drawn.call_change;
      names.insert(drawn.call_change);
    }
    EXPECT_EQ(names.empty(), !takes);
  }
  EXPECT_GT(names.size(), 15u);
}

}  // namespace
}  // namespace kvcheck::properties
