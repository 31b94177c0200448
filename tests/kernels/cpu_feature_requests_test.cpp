// What the CPU targets refuse of the optional inputs and attributes.
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/request_check.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

using Config = SessionConfig;
using Change = std::function<void(Config&)>;

std::string refused_by(const std::unique_ptr<Target>& target, Config config, const Change& change) {
  change(config);
  const auto answer = target->open(config);
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal ? refusal->reason : "";
}

std::string refused(const Config& config, const Change& change) {
  return refused_by(make_cpu_naive(), config, change);
}

Tensor ones(ElementType type, std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return tensor_of(type, std::move(shape), Numbers(count, 1));
}

Tensor floats(std::vector<std::int64_t> shape) { return ones(ElementType::f32, std::move(shape)); }

/// A head of four lanes.
Config four_lanes() {
  Config config = full_cache();
  config.head_size = config.value_head_size = 4;
  return config;
}

Config rotary(bool ids = false) {
  Config config = four_lanes();
  config.rotary.emplace();
  config.rotary->cos = config.rotary->sin = floats({6, 2});
  config.rotary->position_ids = ids;
  return config;
}

Config quantised(const char* kind, bool per_channel = false) {
  Config config = four_lanes();
  config.kv_heads = config.query_heads = 2;
  config.quantisation.kind = kind;
  config.quantisation.per_channel = per_channel;
  config.quantisation.key_scale = config.quantisation.value_scale =
      per_channel ? floats({2, 4}) : floats({1});
  return config;
}

TEST(Features, OfOneOperatorAreRefusedByTheOther) {
  const std::string belongs = "belongs to gqa; leave it out with attention";
  EXPECT_EQ(refused(attention(), [](Config& c) { c.smooth_softmax = true; }),
            "smooth_softmax = true: " + belongs);
  EXPECT_EQ(refused(attention(), [](Config& c) { c.head_sink = floats({1}); }),
            "head_sink = given: " + belongs);
  EXPECT_EQ(refused(attention(), [](Config& c) { c.rotary.emplace(); }),
            "rotary = given: " + belongs);
  EXPECT_EQ(refused(attention(), [](Config& c) { c.qk_norm.emplace(); }),
            "qk_norm = given: " + belongs);
  EXPECT_EQ(refused(attention(), [](Config& c) { c.packed_qkv = true; }),
            "packed_qkv = true: " + belongs);
  EXPECT_EQ(refused(attention(), [](Config& c) { c.quantisation.kind = "int8"; }),
            "quantisation.kind = int8: " + belongs);
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.input_rank = 3; }),
            "input_rank = 3: belongs to attention; use 4 with gqa");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.softmax_precision = ElementType::f32; }),
            "softmax_precision = f32: belongs to attention; leave it out with gqa");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.right_window_size = 1; }),
            "right_window_size = 1: belongs to attention; use -1 with gqa");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.input_rank = 3; }), "");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.launch.emplace(); }),
            "launch = given: cpu-naive does not compute it; leave it out, or use another target");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.packed_qkv = true; }), "");
}

TEST(Features, WindowsOfAttentionNeedOpset25) {
  const auto opset_25 = [](std::int64_t left, std::int64_t right) {
    return [=](Config& c) {
      c.opset = 25;
      c.window_size = left;
      c.right_window_size = right;
    };
  };
  EXPECT_EQ(refused(attention(), [](Config& c) { c.right_window_size = 1; }),
            "right_window_size = 1: attention has no window before opset 25; use -1");
  EXPECT_EQ(refused(attention(), opset_25(3, 0)), "");
  EXPECT_EQ(refused(attention(false), opset_25(3, -1)), "");
  EXPECT_EQ(refused(attention(), opset_25(0, -1)),
            "window_size = 0: must be at least 1 for attention, whose left_window_size counts the "
            "keys before");
  EXPECT_EQ(refused(attention(), opset_25(-1, -2)),
            "right_window_size = -2: must be -1 (no limit) or more");
}

TEST(Features, NumbersAndNamesOutOfTheirRangeAreRefused) {
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.softcap = -1; }),
            "softcap = -1: must be finite and at least 0; 0 is off");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.threads = -1; }),
            "threads = -1: must be at least 0; 0 = as many as there are");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.input_rank = 2; }),
            "input_rank = 2: must be 3 or 4");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.softmax_precision = ElementType::i8; }),
            "softmax_precision = i8: must be f32, f16, bf16 or f64");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.qk_output = "logits"; }),
            "qk_output = logits: must be none, raw, softcapped, biased or probabilities");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.qk_output = "raw"; }),
            "qk_output = raw: gqa knows biased and probabilities");
  EXPECT_EQ(refused(block_cache(6, 4), [](Config& c) { c.qk_output = "biased"; }),
            "qk_output = biased: must be none with layout block");
  EXPECT_EQ(refused(four_lanes(), [](Config& c) { c.head_sink = floats({2}); }),
            "head_sink = [2]: its shape must be [1]");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.isa = "avx2"; }),
            "isa = avx2: cpu-naive has no choice; leave it out");
}

TEST(Features, TablesOfTheRotaryEmbeddingMustFitTheHead) {
  EXPECT_EQ(refused(rotary(), [](Config&) {}), "");
  EXPECT_EQ(refused(rotary(),
                    [](Config& c) {
                      c.rotary->cos = floats({6, 3});
                    }),
            "rotary.cos = [6,3]: its shape must be [rows, lanes/2] with lanes up to head_size (4)");
  EXPECT_EQ(refused(rotary(), [](Config& c) { c.rotary->cos = floats({2}); }),
            "rotary.cos = [2]: its shape must be [rows, lanes/2] with lanes up to head_size (4)");
  EXPECT_EQ(refused(rotary(),
                    [](Config& c) {
                      c.rotary->sin = floats({6, 1});
                    }),
            "rotary.sin = [6,1]: its shape must be [6,2]");
  EXPECT_EQ(refused(rotary(),
                    [](Config& c) {
                      c.rotary->cos = ones(ElementType::f16, {6, 2});
                    }),
            "rotary.cos = f16: its element type must be f32");
}

TEST(Features, NormsMustHaveAWeightForEachLane) {
  Config config = four_lanes();
  config.qk_norm.emplace();
  config.qk_norm->query_weight = config.qk_norm->key_weight = floats({4});
  EXPECT_EQ(refused(config, [](Config&) {}), "");
  EXPECT_EQ(refused(config, [](Config& c) { c.qk_norm->epsilon = 0; }),
            "qk_norm.epsilon = 0: must be finite and above 0");
  EXPECT_EQ(refused(config, [](Config& c) { c.qk_norm->key_weight = floats({3}); }),
            "qk_norm.key_weight = [3]: its shape must be [4]");
}

TEST(Features, QuantisedCachesAreThoseOfTheirTargets) {
  EXPECT_EQ(refused(quantised("int8"), [](Config&) {}),
            "quantisation.kind = int8: cpu-naive has no such cache; use another target");
  const auto by = [](const char* kind, const Config& config, const Change& change) {
    return refused_by(make_cpu_naive_quantised(kind), config, change);
  };
  EXPECT_EQ(by("int8", quantised("int8"), [](Config&) {}), "");
  EXPECT_EQ(by("int8", quantised("int8", true), [](Config&) {}), "");
  EXPECT_EQ(by("int4", quantised("int4", true), [](Config&) {}), "");
  EXPECT_EQ(by("int4", quantised("int8"), [](Config&) {}),
            "quantisation.kind = int8: cpu-naive-q4 has no such cache; use another target");
  EXPECT_EQ(by("int8", four_lanes(), [](Config&) {}),
            "quantisation.kind = none: cpu-naive-q8 has no such cache; use another target");
  EXPECT_EQ(by("int8", attention(), [](Config&) {}), "op = attention: cpu-naive-q8 takes gqa");
  EXPECT_EQ(by("int8", quantised("int8"), [](Config& c) { c.element_type = ElementType::f64; }),
            "quantisation.kind = int8: must be none for element_type f64");
  EXPECT_EQ(by("int8", quantised("int8"), [](Config& c) { c.quantisation.kind = "int2"; }),
            "quantisation.kind = int2: must be none, int8, int4 or fp8");
  EXPECT_EQ(by("int8", quantised("int8", true),
               [](Config& c) { c.quantisation.value_scale = floats({1}); }),
            "quantisation.value_scale = [1]: its shape must be [2,4]");
  EXPECT_EQ(make_cpu_naive_quantised("fp8"), nullptr);
}

/// The reason why a step with one change is refused by a session that holds three tokens; the rows
/// must be what they were.
std::string refused_step(const Config& config, const std::function<void(StepRequest&)>& change) {
  Sequence sequence(config);
  const Counts three(static_cast<std::size_t>(config.batch), 3);
  sequence.load(three);
  const CacheRows before = std::get<CacheRows>(sequence.session().present());
  const Counts one(three.size(), 1);
  StepRequest request = sequence.request(one, one);
  request.poison = PoisonRows{kNaN, three};
  change(request);
  const auto answer = sequence.session().step(request);
  const auto* refusal = std::get_if<Refusal>(&answer);
  if (refusal == nullptr) return "";
  const CacheRows after = std::get<CacheRows>(sequence.session().present());
  EXPECT_EQ(before.key.bytes, after.key.bytes);
  EXPECT_EQ(before.value.bytes, after.value.bytes);
  return refusal->reason;
}

TEST(Masks, TakeEveryDimensionOfOneAndRefuseOthers) {
  const auto masked = [](int opset, std::vector<std::int64_t> shape) {
    Config config = attention();
    config.opset = opset;
    config.batch = config.query_heads = 2;
    config.mask = "boolean";
    return refused_step(config,
                        [&](StepRequest& r) { r.mask = ones(ElementType::boolean, shape); });
  };
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {4}, {1, 4}, {2, 1, 4}, {1, 1, 4}, {2, 2, 1, 4}, {1, 2, 1, 4}, {2, 1, 1, 4}}) {
    EXPECT_EQ(masked(23, shape), "") << testing::PrintToString(shape);
  }
  EXPECT_EQ(masked(23, {3, 1, 4}), "mask heads = 3: must be 2 or 1");
  EXPECT_EQ(masked(23, {3, 2, 1, 4}), "mask entries = 3: must be 2 or 1");
  EXPECT_EQ(masked(23, {2, 4}), "mask queries = 2: must be 1");
  EXPECT_EQ(masked(23, {1, 3}), "mask columns = 3: must be the 4 keys");
  EXPECT_EQ(masked(24, {1, 3}), "");
  EXPECT_EQ(masked(24, {1, 5}), "mask columns = 5: must be from 1 to 4");
  EXPECT_EQ(masked(24, {1, 0}), "mask columns = 0: must be from 1 to 4");
  EXPECT_EQ(masked(23, {}), "mask rank = 0: must be 1, 2, 3 or 4");
}

TEST(Masks, OfANonpadBufferCoverTheLongestEntry) {
  Config config = nonpad(8);
  config.mask = "boolean";
  const auto masked = [&](std::int64_t columns) {
    return refused_step(config, [&](StepRequest& r) {
      r.mask = ones(ElementType::boolean, {1, columns});
    });
  };
  EXPECT_EQ(masked(8), "");
  EXPECT_EQ(masked(4), "");
  EXPECT_EQ(masked(3), "mask columns = 3: must be from 4 to 8");
  EXPECT_EQ(masked(9), "mask columns = 9: must be from 4 to 8");
}

TEST(Masks, OfGqaHaveRankFourAndARowForEachQuery) {
  Config config = full_cache();
  config.mask = "additive";
  config.query_heads = 2;
  const auto biased = [&](std::vector<std::int64_t> shape) {
    return refused_step(config, [&](StepRequest& r) { r.mask = floats(shape); });
  };
  EXPECT_EQ(biased({1, 2, 1, 4}), "");
  EXPECT_EQ(biased({1, 1, 1, 4}), "");
  EXPECT_EQ(biased({1, 4}), "mask rank = 2: must be 4 for gqa");
  EXPECT_EQ(biased({1, 3, 1, 4}), "mask heads = 3: must be 2 or 1");
  EXPECT_EQ(biased({1, 1, 2, 4}), "mask queries = 2: must be 1");
  EXPECT_EQ(biased({1, 1, 1, 3}), "mask columns = 3: must be the 4 keys");
}

TEST(PositionIds, AreThereExactlyWhereTheSessionHasThem) {
  const auto ids = [](std::vector<std::int64_t> shape, const Numbers& numbers) {
    return [=](StepRequest& r) { r.position_ids = tensor_of(ElementType::i64, shape, numbers); };
  };
  EXPECT_EQ(refused_step(rotary(), ids({1, 1}, {0})),
            "position_ids = given: the session was opened without them");
  EXPECT_EQ(refused_step(rotary(true), [](StepRequest&) {}),
            "position_ids = absent: the session was opened with them");
  EXPECT_EQ(refused_step(rotary(true), ids({1, 0}, {})),
            "position_ids = [1,0]: its shape must be [1,columns] with at least 1 columns");
  EXPECT_EQ(refused_step(rotary(true), ids({1, 2}, {5, 100})), "");
  EXPECT_EQ(refused_step(rotary(true), ids({1, 1}, {6})),
            "position of token 0 of entry 0 = 6: must be from 0 to 5, the last row of rotary.cos");
  EXPECT_EQ(refused_step(rotary(true), ids({1, 1}, {-1})),
            "position of token 0 of entry 0 = -1: must be from 0 to 5, the last row of rotary.cos");
}

TEST(Rotary, TablesMustCoverTheLongestEntry) {
  Config config = rotary();
  config.rotary->cos = config.rotary->sin = floats({3, 2});
  EXPECT_EQ(refused_step(config, [](StepRequest&) {}),
            "rotary.cos rows = 3: must cover the longest entry (4); give more rows");
}

TEST(QueriesWithoutTokens, NeedAFullCacheThatHoldsThem) {
  const auto alone = [](std::int64_t queries) {
    return [=](StepRequest& r) {
      r.tokens = {0};
      r.queries = {queries};
      r.query = floats({1, queries, 1, 1});
      r.key = r.value = floats({1, 0, 1, 1});
    };
  };
  EXPECT_EQ(refused_step(full_cache(), alone(3)), "");
  EXPECT_EQ(refused_step(full_cache(), alone(4)),
            "queries[0] = 4: must be at most the length (3) without tokens");
  EXPECT_EQ(refused_step(block_cache(6, 4), alone(1)),
            "tokens = 0: layout block takes no queries without tokens");
  Config packed = full_cache();
  packed.packed_qkv = true;
  EXPECT_EQ(refused_step(packed, alone(1)),
            "tokens = 0: packed_qkv takes no queries without tokens");
}

}  // namespace
}  // namespace kvcheck::kernels
