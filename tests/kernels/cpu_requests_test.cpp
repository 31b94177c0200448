// What cpu-naive refuses: reason with field, value and remedy, and a state that is what it was.
#include <functional>

#include <gtest/gtest.h>

#include "kernels/cpu/request_check.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

/// The reason why `config` with one change is refused; empty when it is not.
std::string refused(SessionConfig config, const std::function<void(SessionConfig&)>& change) {
  change(config);
  const auto answer = make_cpu_naive()->open(config);
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal ? refusal->reason : "";
}

using Config = SessionConfig;

TEST(Open, RefusesWhatTheOperatorsDoNotTake) {
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.op = "mha"; }),
            "op = mha: must be gqa or attention");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.opset = 23; }),
            "opset = 23: gqa has opset 1 only");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.opset = 26; }),
            "opset = 26: attention has opset 23, 24 or 25");
  EXPECT_EQ(refused(nonpad(4), [](Config& c) { c.opset = 23; }),
            "nonpad_kv_seqlen = true: is an input of attention from opset 24 on");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.mask = "float"; }),
            "mask = float: must be none, boolean or additive");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.mask = "boolean"; }),
            "mask = boolean: belongs to attention; gqa takes none or additive");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.element_type = ElementType::boolean; }),
            "element_type = boolean: must be f32, f16, bf16 or f64");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.scale = kInfinity; }).substr(0, 12),
            "scale = inf:");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.scale = -1; }), "");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.scale = -1; }).substr(0, 11), "scale = -1:");
}

TEST(Open, RefusesShapesThatDoNotFitTogether) {
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.batch = 0; }),
            "batch = 0: must be from 1 to 2147483647");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.head_size = -8; }),
            "head_size = -8: must be from 1 to 2147483647");
  EXPECT_EQ(refused(full_cache(),
                    [](Config& c) {
                      c.query_heads = 3;
                      c.kv_heads = 2;
                    }),
            "query_heads = 3: must be a multiple of kv_heads (2)");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.value_head_size = 2; }),
            "value_head_size = 2: gqa needs head_size (1) here");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.value_head_size = 2; }), "");
}

TEST(Open, RefusesCachesThatCannotHoldTheirWindow) {
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.layout = "ring"; }),
            "layout = ring: must be full, block or min_overflow");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.capacity = 0; }),
            "capacity = 0: must be from 1 to 2147483647 rows");
  EXPECT_EQ(refused(block_cache(6, 4), [](Config& c) { c.capacity = 3; }),
            "capacity = 3: must be at least window_size (4)");
  EXPECT_EQ(refused(block_cache(6, 4), [](Config& c) { c.window_size = -1; }),
            "window_size = -1: must be at least 1 with layout block");
  EXPECT_EQ(refused(full_cache(), [](Config& c) { c.window_size = -2; }),
            "window_size = -2: must be -1 (no window) or more");
  EXPECT_EQ(refused(full_cache(4), [](Config& c) { c.causal = false; }),
            "causal = false: must be true with a window_size");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.layout = "block"; }),
            "layout = block: attention has full only");
  EXPECT_EQ(refused(attention(), [](Config& c) { c.window_size = 3; }),
            "window_size = 3: attention has no window before opset 25; use -1");
  EXPECT_EQ(
      refused(full_cache(), [](Config& c) { c.capacity = 2147483647; }),
      "capacity = 2147483647: keys or values of the batch would exceed 2 GiB; use fewer rows");
}

/// Steps and other requests against a session that holds three tokens.
class Requests : public testing::Test {
 protected:
  /// The reason of the refusal; the state must be what it was.
  static std::string refused(const Config& config,
                             const std::function<void(StepRequest&)>& change) {
    const Counts three(static_cast<std::size_t>(config.batch), 3);
    Sequence sequence(config);
    sequence.load(three);
    const CacheRows before = std::get<CacheRows>(sequence.session().present());
    StepRequest request = sequence.request(Counts(three.size(), 1), Counts(three.size(), 1));
    request.poison = PoisonRows{kNaN, Counts(three.size(), 3)};
    change(request);
    const auto answer = sequence.session().step(request);
    const CacheRows after = std::get<CacheRows>(sequence.session().present());
    EXPECT_EQ(before.key.bytes, after.key.bytes);
    EXPECT_EQ(before.value.bytes, after.value.bytes);
    EXPECT_EQ(before.key.shape, after.key.shape);
    // The length is what it was: the next query sees positions 0..3.
    if (config.mask == "none") {
      EXPECT_EQ(sequence.append(Counts(three.size(), 1))[0], 1.5);
    }
    const auto* refusal = std::get_if<Refusal>(&answer);
    return refusal ? refusal->reason : "";
  }
};

Config two_entries(Config config) {
  config.batch = 2;
  return config;
}

TEST_F(Requests, WrongCountsAreRefused) {
  EXPECT_EQ(refused(full_cache(),
                    [](StepRequest& r) {
                      r.tokens = {1, 1};
                    }),
            "tokens = 2 numbers: must have one per batch entry (1)");
  EXPECT_EQ(refused(full_cache(), [](StepRequest& r) { r.queries = {}; }),
            "queries = 0 numbers: must have one per batch entry (1)");
  EXPECT_EQ(refused(full_cache(), [](StepRequest& r) { r.tokens = {-1}; }),
            "tokens[0] = -1: must be from 0 to 2147483647");
  EXPECT_EQ(refused(attention(), [](StepRequest& r) { r.queries = {-1}; }),
            "queries[0] = -1: must be from 0 to 2147483647");
  EXPECT_EQ(refused(full_cache(), [](StepRequest& r) { r.queries = {2}; }),
            "queries[0] = 2: gqa asks one query per token (1), or none in all entries");
  EXPECT_EQ(refused(two_entries(full_cache()),
                    [](StepRequest& r) {
                      r.queries = {1, 0};
                    }),
            "queries[1] = 0: gqa asks one query per token (1), or none in all entries");
  EXPECT_EQ(refused(two_entries(attention()),
                    [](StepRequest& r) {
                      r.tokens = {1, 0};
                    }),
            "tokens[1] = 0: attention appends the same number (1) to every entry");
}

TEST_F(Requests, WhatDoesNotFitTheBufferIsRefused) {
  const auto tokens = [](std::int64_t count) {
    return [count](StepRequest& r) {
      r.tokens = r.queries = {count};
      r.query = r.key = r.value = Tensor::zeros(ElementType::f32, {1, count, 1, 1});
    };
  };
  EXPECT_EQ(refused(full_cache(), tokens(14)),
            "tokens[0] = 14: does not fit: 3 of 16 rows are in use; append at most 13");
  EXPECT_EQ(refused(full_cache(), [](StepRequest& r) { r.tokens = r.queries = {2147483647}; }),
            "tokens[0] = 2147483647: makes the entry longer than 2147483647; append fewer");
  EXPECT_EQ(refused(attention(), [](StepRequest& r) { r.tokens = {1LL << 40}; }),
            "tokens[0] = 1099511627776: must be from 0 to 2147483647");
  EXPECT_EQ(refused(attention(), [](StepRequest& r) { r.tokens = {1 << 30}; }),
            "tokens[0] = 1073741824: the rows would exceed 2 GiB; append fewer");
}

TEST_F(Requests, WrongTensorsAreRefused) {
  const auto tensor = [](ElementType type, std::vector<std::int64_t> shape) {
    return Tensor::zeros(type, std::move(shape));
  };
  EXPECT_EQ(refused(full_cache(),
                    [&](StepRequest& r) {
                      r.query = tensor(ElementType::f32, {1, 1, 2, 1});
                    }),
            "query = [1,1,2,1]: its shape must be [1,1,1,1]");
  EXPECT_EQ(refused(full_cache(),
                    [&](StepRequest& r) {
                      r.key = tensor(ElementType::f16, {1, 1, 1, 1});
                    }),
            "key = f16: its element type must be f32");
  EXPECT_EQ(refused(full_cache(), [&](StepRequest& r) { r.value.bytes.pop_back(); }),
            "value = 3 bytes: its shape needs 4 bytes");
  EXPECT_EQ(refused(full_cache(),
                    [&](StepRequest& r) {
                      r.mask = tensor(ElementType::boolean, {1, 4});
                    }),
            "mask = given: the session was opened without one");
  Config masked = attention();
  masked.mask = "boolean";
  EXPECT_EQ(refused(masked, [](StepRequest&) {}),
            "mask = absent: the session needs a boolean mask");
  EXPECT_EQ(refused(masked,
                    [&](StepRequest& r) {
                      r.mask = tensor(ElementType::f32, {1, 4});
                    }),
            "mask = f32: its element type must be boolean");
}

TEST_F(Requests, PoisonOutsideTheBufferIsRefused) {
  EXPECT_EQ(refused(full_cache(), [](StepRequest& r) { r.poison->first_row = {17}; }),
            "poison.first_row[0] = 17: must be from 0 to the rows of the buffer (16)");
  EXPECT_EQ(refused(full_cache(), [](StepRequest& r) { r.poison->first_row = {}; }),
            "poison.first_row = 0 numbers: must have one per batch entry (1)");
}

TEST_F(Requests, LoadsThatDoNotFitAreRefused) {
  const auto refused_load = [](const Config& config, const Counts& lengths,
                               std::vector<std::int64_t> shape) {
    Sequence sequence(config);
    const Tensor rows = Tensor::zeros(ElementType::f32, std::move(shape));
    const auto answer = sequence.session().load({lengths, {rows, rows}});
    const auto* refusal = std::get_if<Refusal>(&answer);
    return refusal ? refusal->reason : "";
  };
  EXPECT_EQ(refused_load(full_cache(), {16}, {1, 1, 16, 1}), "");
  EXPECT_EQ(refused_load(full_cache(), {17}, {1, 1, 16, 1}),
            "lengths[0] = 17: must be from 0 to 16");
  EXPECT_EQ(refused_load(full_cache(), {4}, {1, 1, 4, 1}),
            "rows.key = [1,1,4,1]: its shape must be [1,1,16,1]");
  EXPECT_EQ(refused_load(block_cache(6, 4), {2147483647}, {1, 1, 6, 1}), "");
  EXPECT_EQ(refused_load(block_cache(6, 4), {2147483648}, {1, 1, 6, 1}),
            "lengths[0] = 2147483648: must be from 0 to 2147483647");
  EXPECT_EQ(refused_load(two_entries(attention()), {2, 3}, {2, 1, 2, 1}),
            "lengths[1] = 3: attention has one past length for the whole batch; use 2");
  EXPECT_EQ(refused_load(attention(), {0}, {1, 1, 0, 1}), "");
}

TEST_F(Requests, RollbacksOfTheWrongSizeAreRefused) {
  Sequence sequence(two_entries(attention()));
  sequence.append({3, 3});
  const auto reason = [&](const Counts& tokens) {
    const auto answer = sequence.session().rollback(tokens);
    const auto* refusal = std::get_if<Refusal>(&answer);
    return refusal ? refusal->reason : "";
  };
  EXPECT_EQ(reason({1}), "rollback = 1 numbers: must have one per batch entry (2)");
  EXPECT_EQ(reason({1, 2}),
            "rollback[1] = 2: attention has one past length for the whole batch; drop 1 tokens of "
            "every entry");
  EXPECT_EQ(reason({4, 4}), "rollback[0] = 4: must be from 0 to the length (3); drop fewer tokens");
  EXPECT_EQ(reason({3, 3}), "");
}

}  // namespace
}  // namespace kvcheck::kernels
