// The text form: round trips, stability, and what is refused.
#include "model/scenario_json.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/model/random_scenario.h"

namespace kvcheck::model {
namespace {

constexpr const char* kPlain =
    R"({"schema":1,"operator":"gqa","batch":1,"query_heads":1,"kv_heads":1,"head_size":8,)"
    R"("element_type":"f32","fill":{"kind":"random","seed":0},"steps":[{"append":3}]})";

/// The message of the ScenarioError that `text` gives.
std::string refusal(const std::string& text) {
  try {
    parse_scenario(text);
  } catch (const ScenarioError& error) {
    return error.what();
  }
  return "accepted";
}

/// kPlain with fields added or replaced.
std::string with(const std::string& fields) {
  auto json = nlohmann::ordered_json::parse(kPlain);
  const auto changes = nlohmann::ordered_json::parse("{" + fields + "}");
  for (const auto& item : changes.items()) {
    json[item.key()] = item.value();
  }
  return json.dump();
}

TEST(ScenarioJson, RoundTripsRandomValidScenarios) {
  ScenarioSource source(3, true);
  std::set<std::string> texts, hashes;
  for (int i = 0; i < 4000; ++i) {
    const Scenario s = source.valid();
    const std::string text = canonical_text(s);
    const Scenario back = parse_scenario(text);
    ASSERT_TRUE(back == s) << text;
    ASSERT_EQ(canonical_text(back), text);
    ASSERT_EQ(content_hash(back), content_hash(s));
    ASSERT_TRUE(parse_scenario(to_json(s).dump(2)) == s);
    texts.insert(text);
    hashes.insert(content_hash(s));
  }
  EXPECT_GT(texts.size(), 3500u);
  EXPECT_EQ(hashes.size(), texts.size());
}

TEST(ScenarioJson, CanonicalTextIsStable) {
  Scenario s;
  s.steps = {Append{{3}, {3}, 0}};
  EXPECT_EQ(canonical_text(s), kPlain);
  EXPECT_EQ(content_hash(s), "d0caf0390a96528f");
}

TEST(ScenarioJson, WritesEveryFieldThatDiffersFromItsDefault) {
  Scenario s;
  s.op = Operator::attention;
  s.opset = 24;
  s.batch = 2;
  s.query_heads = 6;
  s.kv_heads = 3;
  s.head_size = 16;
  s.value_head_size = 4;
  s.element_type = ElementType::bf16;
  s.cache.capacity = 9;
  s.causal = false;
  s.nonpad_kv_seqlen = true;
  s.mask = {MaskKind::additive, 4, 20, 18446744073709551615ull, true};
  s.scale = 0.1;
  s.fill = {FillKind::position_block, 5, 2};
  s.poison = Poison::nan;
  s.steps = {Past{{2, 3}}, Append{{4, 4}, {1, 1}, 0}, Rollback{{1, 0}}, Append{{0, 1}, {2, 2}, 7}};
  EXPECT_EQ(canonical_text(s),
            R"({"schema":1,"operator":"attention","opset":24,"batch":2,"query_heads":6,)"
            R"("kv_heads":3,"head_size":16,"value_head_size":4,"element_type":"bf16",)"
            R"("cache":{"layout":"full","capacity":9},"causal":false,"nonpad_kv_seqlen":true,)"
            R"("mask":{"kind":"additive","rank":4,"hidden_percent":20,)"
            R"("seed":18446744073709551615,"empty_rows":true},"scale":0.1,)"
            R"("fill":{"kind":"position_block","seed":5,"index":2},"poison":"nan",)"
            R"("steps":[{"past":[2,3]},{"append":4,"queries":1},{"rollback":[1,0]},)"
            R"({"append":[0,1],"queries":2,"generation":7}]})");
  EXPECT_TRUE(parse_scenario(canonical_text(s)) == s);
}

TEST(ScenarioJson, ReadsDefaultsAndShortLists) {
  const Scenario s = parse_scenario(
      R"({"schema":1,"operator":"gqa","batch":3,"steps":[{"append":2},{"rollback":1},{"append":[1,0,2],"queries":0}]})");
  EXPECT_EQ(s.head_size, 8);
  EXPECT_EQ(s.opset, 1);
  EXPECT_EQ(std::get<Append>(s.steps[0]), (Append{{2, 2, 2}, {2, 2, 2}, 0}));
  EXPECT_EQ(std::get<Rollback>(s.steps[1]), (Rollback{{1, 1, 1}}));
  // The generation of an append is the number of rollbacks before it.
  EXPECT_EQ(std::get<Append>(s.steps[2]), (Append{{1, 0, 2}, {0, 0, 0}, 1}));
  EXPECT_EQ(parse_scenario(R"({"schema":1,"operator":"attention","steps":[{"append":1}]})").opset,
            24);
}

TEST(ScenarioJson, ReadsNumbersBuiltInMemory) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(kPlain);
  json["fill"]["seed"] = 5;  // A signed integer, unlike one that was parsed.
  EXPECT_EQ(scenario_from_json(json).fill.seed, 5u);
  json["fill"]["seed"] = -5;
  EXPECT_THROW(scenario_from_json(json), ScenarioError);
}

TEST(ScenarioJson, HashTellsNearScenariosApart) {
  const Scenario base = parse_scenario(kPlain);
  std::vector<Scenario> near(8, base);
  near[0].fill.seed = 1;
  near[1].steps = {Append{{4}, {4}, 0}};
  near[2].steps.push_back(Append{{1}, {1}, 0});
  near[3].poison = Poison::zero;
  near[4].scale = 0.5;
  near[5].scale = 0.5 + 0x1p-53;
  near[6].steps = {Past{{3}}};
  near[7].element_type = ElementType::f16;
  std::set<std::string> hashes{content_hash(base)};
  for (const Scenario& s : near) {
    EXPECT_EQ(content_hash(s).size(), 16u);
    hashes.insert(content_hash(s));
  }
  EXPECT_EQ(hashes.size(), 9u);
}

struct Bad {
  const char* name;
  std::string text;
  std::vector<std::string> parts;  ///< All of which the message holds.
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

class BadText : public testing::TestWithParam<Bad> {};

TEST_P(BadText, IsRefusedWithFieldValueAndRemedy) {
  const std::string message = refusal(GetParam().text);
  EXPECT_EQ(message.rfind("scenario: ", 0), 0u) << message;
  for (const std::string& part : GetParam().parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "wanted \"" << part << "\" in: " << message;
  }
  EXPECT_LT(message.size(), 1000u);
  // Messages go into JSON documents, which take only valid UTF-8.
  EXPECT_NO_THROW((void)nlohmann::json(message).dump());
}

std::string nested(const std::string& open, const std::string& close, int levels) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Json, BadText,
    testing::Values(
        Bad{"empty", "", {"text = broken at byte", "must be JSON"}},
        Bad{"cut", R"({"schema":1,)", {"text = broken at byte", "must be JSON"}},
        Bad{"trailing", std::string(kPlain) + "x", {"text = broken at byte", "must be JSON"}},
        Bad{"not_utf8", "{\"schema\":\"\xff\xfe\"}", {"text = broken at byte", "must be JSON"}},
        Bad{"long_token", "{\"" + std::string(100000, 'a'), {"text = broken at byte"}},
        Bad{"list", "[1,2]", {"text = [1,2]: must be an object"}},
        Bad{"number", "7", {"text = 7: must be an object"}},
        Bad{"null", "null", {"text = null: must be an object"}},
        Bad{"beyond_double",
            with(R"("batch":1)").insert(1, R"("scale":1e999,)"),
            {"text = a number beyond double", "must be finite"}},
        Bad{"five_mebibytes",
            std::string(5u << 20, ' '),
            {"text = 5242880 bytes", "must be at most 4194304 bytes"}},
        Bad{"deep_list", nested("[", "]", 100000), {"text = nested", "nest at most 32 levels"}},
        Bad{"deep_object",
            nested("{\"a\":", "}", 100000).insert(500000, "1"),
            {"text = nested", "nest at most 32 levels"}},
        Bad{"deep_field",
            R"({"schema":)" + nested("[", "]", 100000) + "}",
            {"text = nested", "nest at most 32 levels"}},
        Bad{"twice", R"({"schema":1,"schema":1})", {"schema = given twice: must be given once"}}),
    [](const auto& bad) { return bad.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Schema, BadText,
    testing::Values(
        Bad{"absent",
            R"({"operator":"gqa","steps":[]})",
            {"schema = absent: must be given; write 1"}},
        Bad{"newer",
            with(R"("schema":2)"),
            {"schema = 2: is newer than this build understands (1); use a newer kvcheck"}},
        Bad{"far_newer",
            with(R"("schema":18446744073709551615)"),
            {"schema = 18446744073709551615: is newer"}},
        Bad{"zero", with(R"("schema":0)"), {"schema = 0: must be at least 1"}},
        Bad{"text", with(R"("schema":"1")"), {"schema = \"1\": must be an integer"}},
        Bad{"no_operator",
            R"({"schema":1,"steps":[]})",
            {"operator = absent: must be gqa or attention"}},
        Bad{"no_steps", R"({"schema":1,"operator":"gqa"})", {"steps = absent: must be a list"}}),
    [](const auto& bad) { return bad.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Fields, BadText,
    testing::Values(
        Bad{"unknown",
            with(R"("capacity":6)"),
            {"capacity = 6: unknown field; known here: schema"}},
        Bad{"unknown_long", with("\"" + std::string(100000, 'x') + "\":6"), {"unknown field"}},
        Bad{"unknown_in_cache",
            with(R"("cache":{"window":4})"),
            {"cache.window = 4: unknown field; known here: layout, capacity, window_size"}},
        Bad{"unknown_in_mask", with(R"("mask":{"ranks":4})"), {"mask.ranks = 4: unknown field"}},
        Bad{"unknown_in_fill", with(R"("fill":{"seeds":4})"), {"fill.seeds = 4: unknown field"}},
        Bad{"unknown_in_step",
            with(R"("steps":[{"append":1,"tokens":2}])"),
            {"steps[0].tokens = 2: unknown field; known here: append, queries, generation"}},
        Bad{"two_kinds",
            with(R"("steps":[{"append":1,"rollback":1}])"),
            {"steps[0].rollback = 1: unknown field"}},
        Bad{"unknown_step",
            with(R"("steps":[{"append":1},{"fork":2}])"),
            {"steps[1] = {\"fork\":2}: unknown kind of step; this version knows append, past and "
             "rollback"}},
        Bad{"step_type", with(R"("steps":[3])"), {"steps[0] = 3: must be an object"}},
        Bad{"steps_type", with(R"("steps":{"append":1})"), {"steps = {", "must be a list"}},
        Bad{"batch_type", with(R"("batch":"2")"), {"batch = \"2\": must be an integer"}},
        Bad{"batch_fraction", with(R"("batch":1.5)"), {"batch = 1.5: must be an integer"}},
        Bad{"bool_type", with(R"("causal":1)"), {"causal = 1: must be true or false"}},
        Bad{"scale_type", with(R"("scale":"1")"), {"scale = \"1\": must be a number"}},
        Bad{"cache_type", with(R"("cache":6)"), {"cache = 6: must be an object"}},
        Bad{"enum_type",
            with(R"("element_type":16)"),
            {"element_type = 16: must be one of f32, f16, bf16, f64"}},
        Bad{"enum_value",
            with(R"("fill":{"kind":"ones"})"),
            {"fill.kind = \"ones\": must be one of random, needles, position_code"}},
        Bad{"operator_value",
            with(R"("operator":"mha")"),
            {"operator = \"mha\": must be one of gqa, attention"}},
        Bad{"layout_value",
            with(R"("cache":{"layout":"circle"})"),
            {"cache.layout = \"circle\": must be one of full, block, min_overflow, ring"}},
        Bad{"list_item",
            with(R"("steps":[{"append":[1,"x"]}])"),
            {"steps[0].append = \"x\": must be an integer"}},
        Bad{"empty_list",
            with(R"("steps":[{"append":[]}])"),
            {"steps[0].append = []: must hold a number for each batch entry"}},
        Bad{"cut_in_a_character",
            with("\"batch\":\"" + std::string(55, 'a') + "\u00e9\u00e9\u00e9\u00e9\""),
            {"batch = \"aaa", "must be an integer"}}),
    [](const auto& bad) { return bad.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Numbers, BadText,
    testing::Values(
        Bad{"hostile_batch",
            with(R"("batch":1000000000000000000)"),
            {"batch = 1000000000000000000: must be between 1 and 4096"}},
        Bad{"negative_batch", with(R"("batch":-1)"), {"batch = -1: must be between 1 and 4096"}},
        Bad{"beyond_int64",
            with(R"("batch":9223372036854775808)"),
            {"batch = 9223372036854775808: must be at most 9223372036854775807"}},
        Bad{"beyond_uint64",
            with(R"("batch":99999999999999999999)"),
            {"batch = ", "must be an integer"}},
        Bad{"negative_seed",
            with(R"("fill":{"seed":-1})"),
            {"fill.seed = -1: must be an integer from 0 to 18446744073709551615"}},
        Bad{"opset",
            with(R"("opset":1000001)"),
            {"opset = 1000001: must be between -1000000 and 1000000"}},
        Bad{"rank",
            with(R"("operator":"attention","mask":{"kind":"boolean","rank":-2147483649})"),
            {"mask.rank = -2147483649: must be between"}},
        Bad{"tokens",
            with(R"("steps":[{"append":2147483648}])"),
            {"steps[0].append = 2147483648: must be between 0 and 2147483647"}},
        Bad{"broken_rule",
            with(R"("cache":{"layout":"block","capacity":3,"window_size":4})"),
            {"cache.capacity = 3: must be at least window_size (4)"}},
        Bad{"many_broken_rules",
            with("\"steps\":[{\"append\":[" + nested("-1,", "", 500) + "-1]}],\"batch\":501"),
            {"steps[0].append = -1: must be between 0", "and 493 more"}},
        Bad{"many_steps",
            with("\"batch\":4096,\"steps\":[" + nested(R"({"append":1},)", "", 256) +
                 R"({"append":1}])"),
            {"steps = 257 steps: must be at most 256 steps with batch 4096"}}),
    [](const auto& bad) { return bad.param.name; });

TEST(ScenarioJson, DeepValuesBuiltInMemoryAreRefusedWithoutRecursion) {
  nlohmann::ordered_json deep = 1;
  for (int i = 0; i < 100000; ++i) deep = nlohmann::ordered_json::array({std::move(deep)});
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(kPlain);
  json["batch"] = std::move(deep);
  EXPECT_THROW(scenario_from_json(json), ScenarioError);
}

}  // namespace
}  // namespace kvcheck::model
