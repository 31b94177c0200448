// Changes of operator calls: each differs from the call, and the rules see those that matter.
#include "properties/calls/call_changes.h"

#include <set>

#include <gtest/gtest.h>

#include "model/calls/gqa_rules.h"
#include "model/scenario_json.h"
#include "properties/calls/call_of.h"

namespace kvcheck::properties {
namespace {

using kernels::OperatorCall;

OperatorCall decode() {
  auto made = operator_call_of(model::parse_scenario(R"({"schema":1,"operator":"gqa","batch":2,
      "query_heads":2,"head_size":16,"cache":{"capacity":8},
      "steps":[{"append":4},{"append":1}]})"));
  return std::get<OperatorCall>(std::move(made));
}

/// Names of the rules that the changed call breaks.
std::set<std::string> broken(const char* change) {
  const auto changed = changed_call(decode(), change);
  EXPECT_TRUE(changed.has_value()) << change;
  std::set<std::string> rules;
  if (!changed) return rules;
  for (const auto& one : model::check(gqa_call_info(changed->call))) {
    rules.insert(std::string(to_string(one.rule)));
  }
  return rules;
}

using Rules = std::set<std::string>;

TEST(CallChanges, BreakTheRulesThatTheyAreAbout) {
  EXPECT_EQ(broken("seqlens_k[0]=-1"), (Rules{"seqlens_range"}));
  EXPECT_EQ(broken("seqlens_k[last]=rows"), (Rules{"seqlens_range"}));
  EXPECT_EQ(broken("seqlens_k[last]=2^31-1"), (Rules{"seqlens_range"}));
  EXPECT_EQ(broken("seqlens_k.dim[0]+1"), (Rules{"seqlens_count"}));
  EXPECT_EQ(broken("total_sequence_length[0]=0"), (Rules{"total_positive"}));
  EXPECT_EQ(broken("num_heads=3"), (Rules{"hidden_size"}));
  EXPECT_EQ(broken("without past_key"), (Rules{"past_together"}));
}

TEST(CallChanges, KeepThemWhereOnlyTheLayoutDiffers) {
  for (const char* name :
       {"seqlens_k as a column", "seqlens_k as a row", "total_sequence_length as a scalar"}) {
    EXPECT_EQ(broken(name), Rules{}) << name;
    EXPECT_TRUE(changed_call(decode(), name)->same_meaning) << name;
  }
  EXPECT_EQ(broken("seqlens_k[0]=rows-1"), Rules{});
  EXPECT_FALSE(changed_call(decode(), "seqlens_k[0]=rows-1")->same_meaning);
}

TEST(CallChanges, HaveDistinctNamesAndDifferFromTheCall) {
  const OperatorCall call = decode();
  std::set<std::string> names;
  const auto all = changed_calls(call);
  EXPECT_GT(all.size(), 150u);
  for (const ChangedCall& changed : all) {
    EXPECT_TRUE(names.insert(changed.name).second) << changed.name;
    bool same = changed.call.attributes == call.attributes &&
                changed.call.outputs == call.outputs &&
                changed.call.inputs.size() == call.inputs.size();
    for (std::size_t i = 0; same && i < call.inputs.size(); ++i) {
      const auto& now = changed.call.inputs[i].tensor;
      const auto& was = call.inputs[i].tensor;
      same = now.shape == was.shape && now.type == was.type && now.bytes == was.bytes;
    }
    EXPECT_FALSE(same) << changed.name;
  }
  EXPECT_FALSE(changed_call(call, "no such change").has_value());
}

TEST(CallChanges, KnowWhichLengthsAreExtreme) {
  EXPECT_TRUE(is_extreme("seqlens_k[0]=2^31-1"));
  EXPECT_TRUE(is_extreme("position_ids[last]=-2^63"));
  EXPECT_FALSE(is_extreme("seqlens_k[0]=rows+1"));
  EXPECT_FALSE(is_extreme("num_heads=2147483648"));
}

}  // namespace
}  // namespace kvcheck::properties
