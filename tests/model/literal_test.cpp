// The literal fill: which tensor element is which token's, and how a scenario is fitted to its
// steps.
#include "model/literal.h"

#include <functional>
#include <numeric>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "model/scenario_features.h"

namespace kvcheck::model {
namespace {

/// Values first, first + 1, ... in row-major order.
LiteralTensor counting(std::vector<std::int64_t> shape, double first) {
  LiteralTensor tensor{std::move(shape), {}};
  std::int64_t size = 1;
  for (const std::int64_t length : tensor.shape) size *= length;
  tensor.values.resize(static_cast<std::size_t>(size));
  std::iota(tensor.values.begin(), tensor.values.end(), first);
  return tensor;
}

/// Two entries, two query heads, one KV head of two lanes: append, rollback, append again.
Scenario literal() {
  Scenario s;
  s.batch = 2;
  s.query_heads = 2;
  s.head_size = s.value_head_size = 2;
  s.fill.kind = FillKind::literal;
  Append first{{3, 1}, {3, 1}, 0};
  first.tensors = {
      counting({2, 3, 2, 2}, 100), counting({2, 3, 1, 2}, 200), counting({2, 3, 1, 2}, 300), {}};
  Append second{{1, 2}, {1, 2}, 1};
  second.tensors = {
      counting({2, 2, 2, 2}, 400), counting({2, 2, 1, 2}, 500), counting({2, 2, 1, 2}, 600), {}};
  s.steps = {first, Rollback{{2, 0}}, second};
  EXPECT_TRUE(validate(s).empty());
  return s;
}

TEST(LiteralFill, FindsATokenByPositionAndGeneration) {
  const Scenario s = literal();
  const Timeline timeline(s);
  const LiteralFill fill(s, timeline);
  // Entry 0, position 1: the second token of the first step, dropped and replaced by the first
  // token of the last one.
  EXPECT_EQ(fill.key(0, 0, {{1}, 0}, 0), 202);
  EXPECT_EQ(fill.key(0, 0, {{1}, 1}, 0), 500);
  EXPECT_EQ(fill.value(0, 0, {{1}, 0}, 1), 303);
  EXPECT_EQ(fill.value(0, 0, {{1}, 1}, 1), 601);
  // Entry 1 has one token behind it, so the last step brings positions 1 and 2.
  EXPECT_EQ(fill.key(1, 0, {{0}, 0}, 1), 207);
  EXPECT_EQ(fill.key(1, 0, {{2}, 1}, 0), 506);
}

TEST(LiteralFill, HoldsNothingThatNoStepBrought) {
  const Scenario s = literal();
  const Timeline timeline(s);
  const LiteralFill fill(s, timeline);
  EXPECT_EQ(fill.key(1, 0, {{1}, 0}, 0), 0) << "padding behind the one token of entry 1";
  EXPECT_EQ(fill.key(0, 0, {{9}, 0}, 0), 0);
  EXPECT_EQ(fill.value(0, 0, {{0}, 1}, 0), 0) << "position 0 was never written again";
}

TEST(LiteralFill, GivesQueriesOfTheirStep) {
  const Scenario s = literal();
  const Timeline timeline(s);
  const LiteralFill fill(s, timeline);
  EXPECT_EQ(fill.query(0, 0, 1, 2, 1), 100 + 2 * 4 + 1 * 2 + 1);
  EXPECT_EQ(fill.query(2, 1, 0, 1, 0), 400 + 8 + 4);
}

TEST(LiteralFill, ReadsThePastFromPositionZero) {
  Scenario s = literal();
  Past past{{2, 3}, {}};
  past.tensors.k = counting({2, 3, 1, 2}, 10);
  past.tensors.v = counting({2, 3, 1, 2}, 50);
  s.steps = {past};
  const Timeline timeline(s);
  const LiteralFill fill(s, timeline);
  EXPECT_EQ(fill.key(1, 0, {{2}, 0}, 1), 21);
  EXPECT_EQ(fill.value(0, 0, {{1}, 0}, 0), 52);
  EXPECT_EQ(fill.value(0, 0, {{2}, 0}, 0), 0) << "padding";
}

TEST(LiteralFill, RoundsToTheElementType) {
  Scenario s = literal();
  s.element_type = ElementType::f16;
  std::get<Append>(s.steps[0]).tensors.k.values[0] = 2049;  // A tie, to even.
  const Timeline timeline(s);
  EXPECT_EQ(LiteralFill(s, timeline).key(0, 0, {{0}, 0}, 0), 2048);
}

TEST(LiteralShapes, FollowTheLargestEntry) {
  Scenario s = literal();
  s.mask = {MaskKind::additive, 4};
  const StepShapes shapes = literal_shapes(s, Timeline(s), 2);
  EXPECT_EQ(shapes.q, (std::vector<std::int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(shapes.k, (std::vector<std::int64_t>{2, 2, 1, 2}));
  EXPECT_EQ(shapes.mask, (std::vector<std::int64_t>{2, 2, 2, 3}));
  EXPECT_TRUE(literal_shapes(s, Timeline(s), 1).k.empty()) << "a rollback";
}

TEST(LiteralShapes, AreEmptyWhereAStepTakesNoSuchTensor) {
  Scenario s = literal();
  s.steps = {Past{{2, 2}, {}}, Append{{0, 0}, {1, 1}, 0}, Append{{1, 1}, {0, 0}, 0}};
  const Timeline timeline(s);
  EXPECT_TRUE(literal_shapes(s, timeline, 0).q.empty());
  EXPECT_FALSE(literal_shapes(s, timeline, 0).k.empty());
  EXPECT_TRUE(literal_shapes(s, timeline, 1).k.empty());
  EXPECT_FALSE(literal_shapes(s, timeline, 1).q.empty());
  EXPECT_TRUE(literal_shapes(s, timeline, 2).q.empty());
  EXPECT_TRUE(literal_shapes(s, timeline, 2).mask.empty());
}

TEST(FitLiterals, LeavesWhatFitsAlone) {
  const Scenario s = literal();
  Scenario fitted = s;
  fit_literals(fitted);
  EXPECT_EQ(fitted, s);
}

TEST(FitLiterals, CutsTheSurplusAndKeepsTheRestInPlace) {
  Scenario s = literal();
  s.query_heads = 1;
  auto& append = std::get<Append>(s.steps[0]);
  append.tokens = append.queries = {2, 1};
  s.steps.resize(1);
  fit_literals(s);
  EXPECT_TRUE(validate(s).empty());
  const StepTensors& tensors = std::get<Append>(s.steps[0]).tensors;
  EXPECT_EQ(tensors.q.values, (std::vector<double>{100, 101, 104, 105, 112, 113, 116, 117}));
  EXPECT_EQ(tensors.k.values, (std::vector<double>{200, 201, 202, 203, 206, 207, 208, 209}));
}

TEST(FitLiterals, FillsWhatIsMissingWithZerosAndABooleanMaskWithOnes) {
  Scenario s = literal();
  s.op = Operator::attention;
  s.opset = 24;
  s.mask = {MaskKind::boolean, 2};
  Append append{{3, 3}, {2, 2}, 0};
  append.tensors.k = counting({2, 2, 1, 2}, 1);
  append.tensors.mask = {{1, 3}, {0, 0, 0}};
  s.steps = {append};
  fit_literals(s);
  EXPECT_TRUE(validate(s).empty());
  const StepTensors& tensors = std::get<Append>(s.steps[0]).tensors;
  EXPECT_EQ(tensors.k.values, (std::vector<double>{1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0}));
  EXPECT_EQ(tensors.q.values, std::vector<double>(16, 0.0));
  EXPECT_EQ(tensors.mask.values, (std::vector<double>{0, 0, 0, 1, 1, 1}));
  s.mask.kind = MaskKind::additive;
  std::get<Append>(s.steps[0]).tensors.mask = {};
  fit_literals(s);
  EXPECT_EQ(std::get<Append>(s.steps[0]).tensors.mask.values, std::vector<double>(6, 0.0));
}

TEST(FitLiterals, DropsATensorThatTheStepDoesNotTake) {
  Scenario s = literal();
  std::get<Append>(s.steps[0]).tensors.mask = counting({3, 3}, 0);
  fit_literals(s);
  EXPECT_EQ(s, literal());
}

TEST(FitLiterals, CountsGenerationsByRollbacks) {
  Scenario s = literal();
  std::get<Append>(s.steps[0]).generation = 4;
  std::get<Append>(s.steps[2]).generation = 0;
  fit_literals(s);
  EXPECT_EQ(s, literal());
}

TEST(FitLiterals, TakesTheTensorsOfOtherFills) {
  Scenario s = literal();
  s.fill.kind = FillKind::needles;
  std::get<Append>(s.steps[2]).generation = 7;
  fit_literals(s);
  EXPECT_EQ(s.fill.kind, FillKind::needles);
  EXPECT_EQ(std::get<Append>(s.steps[0]).tensors, StepTensors{});
  EXPECT_EQ(std::get<Append>(s.steps[2]).tensors, StepTensors{});
  EXPECT_EQ(std::get<Append>(s.steps[2]).generation, 7);
}

TEST(FitLiterals, FallsBackToRandomWhereNoFileCouldHoldTheTensors) {
  Scenario s = literal();
  s.steps = {Past{{1 << 21, 1}, {}}};
  fit_literals(s);
  EXPECT_EQ(s.fill.kind, FillKind::random);
  EXPECT_EQ(std::get<Past>(s.steps[0]).tensors, StepTensors{});
  s.fill.kind = FillKind::literal;
  s.steps = {Past{{kMaxLength, kMaxLength}, {}}};
  fit_literals(s);
  EXPECT_EQ(s.fill.kind, FillKind::random);
  // Keys and values of 2 x 2^19 x 2 elements are just what is allowed.
  s.fill.kind = FillKind::literal;
  s.steps = {Past{{1 << 19, 1}, {}}};
  fit_literals(s);
  EXPECT_EQ(s.fill.kind, FillKind::literal);
}

/// One step of one head with one lane.
Scenario one_step() {
  Scenario s;
  s.op = Operator::attention;
  s.opset = 24;
  s.fill.kind = FillKind::literal;
  s.head_size = s.value_head_size = 1;
  Append append{{2}, {1}, 0};
  append.tensors = {{{1, 1, 1, 1}, {1}}, {{1, 2, 1, 1}, {1, 2}}, {{1, 2, 1, 1}, {1, 2}}, {}};
  s.steps = {append};
  return s;
}

/// The refusals of a literal scenario after a change to its one step.
std::string literal_refusal(const std::function<void(Scenario&, Append&)>& change) {
  Scenario s = one_step();
  EXPECT_TRUE(literal_refusals(s).empty());
  change(s, std::get<Append>(s.steps[0]));
  std::string all;
  for (const Refusal& refusal : literal_refusals(s)) {
    all += (all.empty() ? "" : "; ") + refusal.message();
  }
  return all;
}

TEST(LiteralRefusals, NameTheTensorAndItsShape) {
  EXPECT_EQ(literal_refusal([](Scenario&, Append& a) { a.tensors.q.shape = {1}; }),
            "steps[0].q = shape [1]: must have the shape [1, 1, 1, 1]");
  EXPECT_EQ(literal_refusal([](Scenario&, Append& a) { a.tensors.k = {}; }),
            "steps[0].k = absent: must have the shape [1, 2, 1, 1]");
  EXPECT_EQ(literal_refusal([](Scenario&, Append& a) {
              a.tensors.v.shape = {1, 1, 2, 1};
            }),
            "steps[0].v = shape [1, 1, 2, 1]: must have the shape [1, 2, 1, 1]");
  EXPECT_EQ(literal_refusal([](Scenario& s, Append&) {
              s.mask = {MaskKind::boolean, 2};
            }),
            "steps[0].mask = absent: must have the shape [1, 2]");
  EXPECT_EQ(literal_refusal([](Scenario&, Append& a) {
              a.tensors.mask = {{1, 2}, {1, 1}};
            }),
            "steps[0].mask = shape [1, 2]: must be left out: the step takes none");
}

TEST(LiteralRefusals, NameAGenerationThatRollbacksDoNotGive) {
  EXPECT_EQ(literal_refusal([](Scenario&, Append& a) { a.generation = 1; }),
            "steps[0].generation = 1: must be left out where fill.kind is literal");
}

TEST(LiteralRefusals, NameTensorsOfOtherFills) {
  EXPECT_EQ(literal_refusal([](Scenario& s, Append& a) {
              s.fill.kind = FillKind::random;
              a.tensors.q = a.tensors.v = {};
            }),
            "steps[0].k = shape [1, 2, 1, 1]: must be left out unless fill.kind is literal");
}

}  // namespace
}  // namespace kvcheck::model
