// Operands of attention: rotation and norm by hand and in 113 bits, rounding and its doubts, and
// the rows of a quantised cache.
#include "model/operands.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

#include "model/parameters.h"
#include "model/quantisation.h"
#include "tests/model/held_scenario.h"

namespace kvcheck::model {
namespace {

using Quad = boost::multiprecision::cpp_bin_float_quad;

/// A scenario with its operands.
struct Held : HeldScenario {
  explicit Held(Scenario given, double target = 0x1p-24, const Reading& how = {})
      : HeldScenario(std::move(given)),
        reading(how),
        operands(scenario, timeline, fill, target, reading) {}

  const TokenRows& stored(std::int64_t position, std::size_t step = 0, std::int64_t entry = 0) {
    return operands.stored({entry, {{position}, 0}, step});
  }

  Reading reading;
  Operands operands;
};

Append literal_append(const std::vector<double>& keys, std::int64_t lanes,
                      const std::vector<double>& values = {}) {
  const auto tokens = static_cast<std::int64_t>(keys.size()) / lanes;
  Append append{{tokens}, {tokens}, 0};
  const std::vector<std::int64_t> shape{1, tokens, 1, lanes};
  append.tensors = {{shape, std::vector<double>(keys.size(), 1.0)},
                    {shape, keys},
                    {shape, values.empty() ? keys : values},
                    {}};
  return append;
}

/// One head of `lanes` lanes whose keys are spelled out; with two lanes the angle of a token is its
/// position.
Scenario spelled(ElementType type, const std::vector<double>& keys, std::int64_t lanes = 2) {
  Scenario s;
  s.head_size = s.value_head_size = lanes;
  s.element_type = type;
  s.fill.kind = FillKind::literal;
  s.steps = {literal_append(keys, lanes)};
  return s;
}

Scenario turned(ElementType type, const std::vector<double>& keys) {
  Scenario s = spelled(type, keys);
  s.rotary = RotarySpec{};
  return s;
}

TEST(StoredKeys, AreTurnedByTheirPosition) {
  for (const bool interleaved : {false, true}) {
    Scenario s = turned(ElementType::f64, {5, 7, 1, 0, 0, 1});
    s.rotary->interleaved = interleaved;
    Held held(s, 0x1p-53);
    EXPECT_EQ(held.stored(0).keys, (std::pmr::vector<double>{5, 7}));
    EXPECT_DOUBLE_EQ(held.stored(1).keys[0], std::cos(1.0));
    EXPECT_DOUBLE_EQ(held.stored(1).keys[1], std::sin(1.0));
    EXPECT_DOUBLE_EQ(held.stored(2).keys[0], -std::sin(2.0));
    EXPECT_DOUBLE_EQ(held.stored(2).keys[1], std::cos(2.0));
    EXPECT_EQ(held.stored(2).values, (std::pmr::vector<double>{0, 1})) << "values do not turn";
  }
}

TEST(StoredKeys, KeepTheLanesThatDoNotTurn) {
  Scenario s = spelled(ElementType::f64, {0, 0, 0, 0, 1, 2, 3, 4}, 4);
  s.rotary = RotarySpec{false, 2, {}};
  Held held(s, 0x1p-53);
  EXPECT_DOUBLE_EQ(held.stored(1).keys[0], std::cos(1.0) - 2 * std::sin(1.0));
  EXPECT_EQ(held.stored(1).keys[2], 3);
  EXPECT_EQ(held.stored(1).keys[3], 4);
}

TEST(StoredKeys, DoubtOneSpacingOnATieAndNothingElsewhere) {
  // In f16, cos 1 = 1107/2048 and sin 1 = 1723/2048.
  Held held(turned(ElementType::f16, {0, 0, 3, 5}));
  // 3 cos - 5 sin = -5294/2048 in steps of 4/2048 is a tie, to even.
  EXPECT_EQ(held.stored(1).keys[0], -5296.0 / 2048);
  EXPECT_EQ(held.stored(1).key_doubts[0], 4.0 / 2048);
  // 5 cos + 3 sin = 10704/2048 in steps of 8/2048 is a number of the type.
  EXPECT_EQ(held.stored(1).keys[1], 10704.0 / 2048);
  EXPECT_EQ(held.stored(1).key_doubts[1], 0);
  // cos - 4 sin = -5785/2048 and 4 cos + sin = 6151/2048 in steps of 4/2048 are no ties.
  Held other(turned(ElementType::f16, {0, 0, 1, 4}));
  EXPECT_EQ(other.stored(1).keys, (std::pmr::vector<double>{-5784.0 / 2048, 6152.0 / 2048}));
  EXPECT_EQ(other.stored(1).key_doubts, (std::pmr::vector<double>{0, 0}));
}

TEST(StoredKeys, AreGivenAndExactWithoutRotaryEmbedding) {
  Held held(spelled(ElementType::f16, {1, 2, 3, 2049}));
  EXPECT_EQ(held.stored(1).keys, (std::pmr::vector<double>{3, 2048}));
  EXPECT_TRUE(held.stored(1).key_doubts.empty());
  EXPECT_TRUE(held.stored(1).value_doubts.empty());
}

TEST(StoredKeys, OfAPastAreAsGiven) {
  Scenario s = turned(ElementType::f32, {6, 8});
  s.qk_norm = QkNormSpec{};
  Past past{{2}, {}};
  past.tensors.k = past.tensors.v = {{1, 2, 1, 2}, {1, 2, 3, 4}};
  s.steps.insert(s.steps.begin(), past);
  Held held(s);
  EXPECT_EQ(held.stored(1).keys, (std::pmr::vector<double>{3, 4}));
  EXPECT_TRUE(held.stored(1).key_doubts.empty());
  EXPECT_FALSE(held.stored(2, 1).key_doubts.empty());
  EXPECT_NE(held.stored(2, 1).keys, (std::pmr::vector<double>{6, 8}));
}

TEST(StoredKeys, AreZeroWhereNobodyWrote) {
  Held held(turned(ElementType::f32, {6, 8}));
  EXPECT_EQ(held.stored(-1).keys, (std::pmr::vector<double>{0, 0}));
  EXPECT_EQ(held.stored(-1).values, (std::pmr::vector<double>{0, 0}));
}

TEST(StoredKeys, AreNormalisedBeforeTheyTurn) {
  Scenario s = spelled(ElementType::f64, {3, 4, 6, 8});
  s.qk_norm = QkNormSpec{0.5};
  const double w0 = norm_weight(s, NormSide::key, 0);
  const double w1 = norm_weight(s, NormSide::key, 1);
  {
    Held held(s, 0x1p-53);
    // The mean square of (3, 4) is 12.5, that of (6, 8) is 50.
    EXPECT_DOUBLE_EQ(held.stored(0).keys[0], 3 * w0 / std::sqrt(13.0));
    EXPECT_DOUBLE_EQ(held.stored(0).keys[1], 4 * w1 / std::sqrt(13.0));
    EXPECT_DOUBLE_EQ(held.stored(1).keys[1], 8 * w1 / std::sqrt(50.5));
    EXPECT_EQ(held.stored(1).values, (std::pmr::vector<double>{6, 8}));
  }
  s.rotary = RotarySpec{};
  Held held(s, 0x1p-53);
  const double x = 6 * w0 / std::sqrt(50.5);
  const double y = 8 * w1 / std::sqrt(50.5);
  EXPECT_NEAR(held.stored(1).keys[0], x * std::cos(1.0) - y * std::sin(1.0), 1e-15);
  EXPECT_NEAR(held.stored(1).keys[1], y * std::cos(1.0) + x * std::sin(1.0), 1e-15);
}

/// A scenario of random operands with 16 lanes and a step behind another.
Scenario random_operands(ElementType type, bool rotary, bool norm) {
  Scenario s;
  s.element_type = type;
  s.query_heads = 2;
  s.head_size = s.value_head_size = 16;
  s.fill.seed = 3;
  if (rotary) s.rotary = RotarySpec{true, 12, {}};
  if (norm) s.qk_norm = QkNormSpec{1e-3};
  s.steps = {Append{{5}, {5}, 0}, Append{{40}, {40}, 0}};
  return s;
}

/// Norm, then rotation, in the arithmetic of Real, from the fill's row.
template <class Real>
std::vector<Real> computed(const Scenario& s, const std::vector<double>& given, NormSide side,
                           std::int64_t position) {
  using std::sqrt;
  std::vector<Real> row(given.begin(), given.end());
  if (s.qk_norm) {
    Real squares = 0;
    for (const Real& x : row) squares += x * x;
    const Real mean = squares / static_cast<Real>(row.size());
    const Real root = sqrt(Real(mean + static_cast<Real>(s.qk_norm->epsilon)));
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] =
          row[c] / root * static_cast<Real>(norm_weight(s, side, static_cast<std::int64_t>(c)));
    }
  }
  if (!s.rotary) return row;
  const Rotary rotary(s);
  for (std::int64_t pair = 0; pair < rotary.pairs(); ++pair) {
    const auto [a, b] = rotary.lanes(pair);
    const Turn turn = rotary.turn(position, pair);
    const Real cos = static_cast<Real>(turn.cos);
    const Real sin = static_cast<Real>(turn.sin);
    const Real x = row[a];
    const Real y = row[b];
    row[a] = x * cos - y * sin;
    row[b] = y * cos + x * sin;
  }
  return row;
}

struct Feature {
  bool rotary, norm;
};
constexpr Feature kFeatures[] = {{true, false}, {false, true}, {true, true}};

std::vector<double> query_given(const Held& held, std::int64_t head, std::int64_t query) {
  std::vector<double> row(16);
  held.fill.query_row(1, 0, head, query, row);
  return row;
}

TEST(QueryOperand, IsTheExactOneToAHundredBits) {
  for (const auto [rotary, norm] : kFeatures) {
    Held held(random_operands(ElementType::f64, rotary, norm), 0x1p-53);
    QueryRow row;
    for (std::int64_t query = 0; query < 40; ++query) {
      held.operands.query(1, 0, query % 2, query, row);
      const auto exact = computed<Quad>(held.scenario, query_given(held, query % 2, query),
                                        NormSide::query, 5 + query);
      for (std::size_t c = 0; c < row.high.size(); ++c) {
        const Quad error = abs(Quad(Quad(row.high[c]) + row.low[c] - exact[c]));
        EXPECT_LT(static_cast<double>(error), 0x1p-98);
      }
    }
  }
}

TEST(QueryOperand, IsAsGivenWithoutFeatures) {
  Held held(random_operands(ElementType::f16, false, false));
  QueryRow row;
  held.operands.query(1, 0, 1, 3, row);
  EXPECT_EQ(row.high, query_given(held, 1, 3));
  EXPECT_TRUE(row.low.empty());
  EXPECT_TRUE(row.doubts.empty());
}

TEST(QueryOperand, DoubtsCoverWhatATargetComputes) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const auto [rotary, norm] : kFeatures) {
      Held held(random_operands(type, rotary, norm));
      QueryRow row;
      for (std::int64_t query = 0; query < 40; ++query) {
        held.operands.query(1, 0, query % 2, query, row);
        const auto target = computed<float>(held.scenario, query_given(held, query % 2, query),
                                            NormSide::query, 5 + query);
        // 14 roundings of the norm over 16 lanes, three of the turn and the store in between, for a
        // pair that is sqrt(2) of its wider lane long; one store at the end.
        double widest = 0;
        for (const double lane : row.high) widest = std::max(widest, std::abs(lane));
        for (std::size_t c = 0; c < row.high.size(); ++c) {
          const double kept = static_cast<double>(target[c]);
          EXPECT_LE(std::abs(kept - row.high[c]), row.doubts[c]);
          EXPECT_LE(std::abs(round_to(type, kept) - row.high[c]), row.doubts[c]);
          EXPECT_LE(row.doubts[c], widest * (28 * 0x1p-24 + 3 * unit_roundoff(type)));
        }
      }
    }
  }
}

TEST(StoredKeys, DoubtsCoverWhatATargetStores) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const auto [rotary, norm] : kFeatures) {
      Held held(random_operands(type, rotary, norm));
      int doubtful = 0;
      for (std::int64_t token = 0; token < 40; ++token) {
        std::vector<double> given(16);
        held.fill.key_row(0, 0, {{5 + token}, 0}, given);
        const auto target = computed<float>(held.scenario, given, NormSide::key, 5 + token);
        const TokenRows& rows = held.stored(5 + token, 1);
        for (std::size_t c = 0; c < given.size(); ++c) {
          const double kept = round_to(type, static_cast<double>(target[c]));
          EXPECT_LE(std::abs(kept - rows.keys[c]), rows.key_doubts[c]);
          doubtful += rows.key_doubts[c] > 0 ? 1 : 0;
        }
      }
      // A target of f32 may hold another neighbour anywhere, one of 16 bits only near a tie, unless
      // it stores the normalised row in its type before it turns.
      if (type != ElementType::f32 && !norm) {
        EXPECT_LT(doubtful, 40 * 16 / 10);
      }
    }
  }
}

/// One token whose 256 lanes lie next to every tie of int8 under its scale.
Scenario near_ties(QuantisationKind kind) {
  Scenario s = spelled(ElementType::f32, std::vector<double>(256, 1.0), 256);
  s.cache.quantisation = {kind, false};
  const double scale = static_cast<double>(cache_scale(s, CacheSide::key, 0, 0));
  std::vector<double> keys;
  for (int code = -128; code < 128; ++code) {
    keys.push_back(round_to(ElementType::f32, (code + 0.5) * scale));
  }
  s.steps = {literal_append(keys, 256, std::vector<double>(256, 0.37))};
  return s;
}

TEST(QuantisedRows, AreWhatTheCodesReadBackAs) {
  for (const auto kind : {QuantisationKind::int8, QuantisationKind::int4, QuantisationKind::fp8}) {
    Held held(near_ties(kind));
    const float scale = cache_scale(held.scenario, CacheSide::key, 0, 0);
    const float value_scale = cache_scale(held.scenario, CacheSide::value, 0, 0);
    const auto& given = std::get<Append>(held.scenario.steps[0]).tensors.k.values;
    const TokenRows& rows = held.stored(0);
    int differ = 0;
    for (std::size_t c = 0; c < 256; ++c) {
      const double code = quantise(kind, scale, given[c]);
      const double other = quantise(kind, scale, given[c], QuantisationVariant::by_division);
      EXPECT_EQ(rows.keys[c], code * static_cast<double>(scale));
      EXPECT_LE(std::abs(dequantise(code, scale) - rows.keys[c]), rows.key_doubts[c]);
      EXPECT_LE(std::abs(dequantise(other, scale) - rows.keys[c]), rows.key_doubts[c]);
      differ += code != other ? 1 : 0;
      EXPECT_EQ(static_cast<float>(rows.values[c]),
                static_cast<float>(dequantise(quantise(kind, value_scale, 0.37F), value_scale)));
    }
    if (kind == QuantisationKind::int8) {
      EXPECT_GT(differ, 0) << "no tie was met";
    }
  }
}

TEST(QuantisedRows, DoubtTheCodeWhereItsTwoReadingsDifferAndElsewhereTheProduct) {
  Held held(near_ties(QuantisationKind::int8));
  const float scale = cache_scale(held.scenario, CacheSide::key, 0, 0);
  const auto& given = std::get<Append>(held.scenario.steps[0]).tensors.k.values;
  const TokenRows& rows = held.stored(0);
  for (std::size_t c = 0; c < 256; ++c) {
    const double code = quantise(QuantisationKind::int8, scale, given[c]);
    const double other =
        quantise(QuantisationKind::int8, scale, given[c], QuantisationVariant::by_division);
    const double product = 0x1p-24 * std::abs(rows.keys[c]);
    const double codes = std::abs(code - other) * static_cast<double>(scale);
    EXPECT_NEAR(rows.key_doubts[c], codes + product, 1e-15);
  }
}

TEST(QuantisedRows, OfAPastAreQuantisedToo) {
  Scenario s = spelled(ElementType::f32, {1, 1});
  s.cache.quantisation = {QuantisationKind::int4, true};
  Past past{{1}, {}};
  past.tensors.k = past.tensors.v = {{1, 1, 1, 2}, {100, -100}};
  s.steps.insert(s.steps.begin(), past);
  Held held(s);
  for (std::int64_t lane = 0; lane < 2; ++lane) {
    const auto at = static_cast<std::size_t>(lane);
    const double key = static_cast<double>(cache_scale(s, CacheSide::key, 0, lane));
    const double value = static_cast<double>(cache_scale(s, CacheSide::value, 0, lane));
    EXPECT_EQ(held.stored(0).keys[at], (lane == 0 ? 7 : -8) * key);
    EXPECT_EQ(held.stored(0).values[at], (lane == 0 ? 7 : -8) * value);
  }
}

TEST(QuantisedRows, CoverTheDoubtsOfTheRotation) {
  for (const auto kind : {QuantisationKind::int8, QuantisationKind::int4, QuantisationKind::fp8}) {
    for (const ElementType type : {ElementType::f32, ElementType::f16}) {
      Scenario s = random_operands(type, true, true);
      s.cache.quantisation = {kind, true};
      Held held(s);
      for (std::int64_t token = 0; token < 40; ++token) {
        std::vector<double> given(16);
        held.fill.key_row(0, 0, {{5 + token}, 0}, given);
        const auto target = computed<float>(s, given, NormSide::key, 5 + token);
        const TokenRows& rows = held.stored(5 + token, 1);
        for (std::size_t c = 0; c < given.size(); ++c) {
          const float scale = cache_scale(s, CacheSide::key, 0, static_cast<std::int64_t>(c));
          const double kept = round_to(type, static_cast<double>(target[c]));
          const double read =
              dequantise(quantise(kind, scale, kept, QuantisationVariant::by_division), scale);
          EXPECT_LE(std::abs(read - rows.keys[c]), rows.key_doubts[c]);
        }
      }
    }
  }
}

TEST(WrongReadings, LeaveOutNormOrQuantisationOrTakeTheOtherPairs) {
  Scenario s = spelled(ElementType::f32, {0, 0, 0, 0, 3, 4, 0, 1}, 4);
  s.qk_norm = QkNormSpec{};
  s.cache.quantisation = {QuantisationKind::int4, false};
  Reading plain;
  plain.without_norm = plain.without_quantisation = true;
  Held held(s, 0x1p-24, plain);
  EXPECT_EQ(held.stored(1).keys, (std::pmr::vector<double>{3, 4, 0, 1}));
  Scenario half = spelled(ElementType::f64, {0, 0, 0, 0, 1, 0, 0, 0}, 4);
  half.rotary = RotarySpec{};
  Reading neighbours;
  neighbours.other_pairs = true;
  Held other(half, 0x1p-53, neighbours);
  EXPECT_DOUBLE_EQ(other.stored(1).keys[1], std::sin(1.0));
  EXPECT_EQ(other.stored(1).keys[2], 0);
}

}  // namespace
}  // namespace kvcheck::model
