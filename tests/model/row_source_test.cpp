// Operands made of rows that others have drawn.
#include "model/row_source.h"

#include <vector>

#include <gtest/gtest.h>

#include "model/operands.h"
#include "tests/model/held_scenario.h"

namespace kvcheck::model {
namespace {

/// The fill's rows of a scenario in bytes, and how often each kind was asked for.
class CountingSource final : public RowSource {
 public:
  explicit CountingSource(const Scenario& scenario) : s_(scenario) {}

  std::span<const std::byte> keys(const Fill& fill, std::int64_t entry, Token token) override {
    ++keys_asked;
    return bytes(s_.kv_heads, s_.head_size, [&](std::int64_t head, std::span<double> row) {
      fill.key_row(entry, head, token, row);
    });
  }
  std::span<const std::byte> values(const Fill& fill, std::int64_t entry, Token token) override {
    return bytes(s_.kv_heads, s_.value_head_size, [&](std::int64_t head, std::span<double> row) {
      fill.value_row(entry, head, token, row);
    });
  }
  std::span<const std::byte> queries(const Fill& fill, std::size_t step, std::int64_t entry,
                                     std::int64_t query, Token place) override {
    ++queries_asked;
    asked = place;
    return bytes(s_.query_heads, s_.head_size, [&](std::int64_t head, std::span<double> row) {
      fill.query_row(step, entry, head, query, row);
    });
  }

  int keys_asked = 0, queries_asked = 0;
  Token asked;

 private:
  template <class Draw>
  std::span<const std::byte> bytes(std::int64_t heads, std::int64_t lanes, const Draw& draw) {
    const auto width = static_cast<std::size_t>(lanes) * element_bytes(s_.element_type);
    bytes_.resize(static_cast<std::size_t>(heads) * width);
    std::vector<double> row(static_cast<std::size_t>(lanes));
    for (std::int64_t head = 0; head < heads; ++head) {
      draw(head, std::span(row));
      store_elements(s_.element_type, row, bytes_.data() + static_cast<std::size_t>(head) * width);
    }
    return bytes_;
  }

  const Scenario& s_;
  std::vector<std::byte> bytes_;
};

/// Rows that are shared are those of the fill: as they are given, turned and normalised, quantised.
TEST(RowSource, GivesTheOperandsThatTheFillGives) {
  Scenario plain;
  plain.batch = 2;
  plain.query_heads = 4;
  plain.kv_heads = 2;
  plain.head_size = plain.value_head_size = 16;
  plain.cache.capacity = 9;
  plain.fill.seed = 5;
  plain.steps = {Past{{2, 3}}, Append{{3, 3}, {3, 3}, 0}, Rollback{{1, 1}},
                 Append{{2, 2}, {2, 2}, 1}};
  Scenario computed = plain, coded = plain, pointed = plain;
  computed.element_type = ElementType::f16;
  computed.rotary.emplace();
  computed.qk_norm.emplace();
  coded.element_type = ElementType::bf16;
  coded.cache.quantisation.kind = QuantisationKind::int8;
  pointed.fill.kind = FillKind::needles;
  for (const Scenario& s : {plain, computed, coded, pointed}) {
    const HeldScenario held(s);
    const Reading right;
    Operands own(held.scenario, held.timeline, held.fill, 0x1p-24, right);
    Operands sharing(held.scenario, held.timeline, held.fill, 0x1p-24, right);
    CountingSource source(held.scenario);
    sharing.share_rows(source);
    for (const HeldToken& token :
         {HeldToken{0, {{1}, 0}, 0}, HeldToken{1, {{4}, 0}, 1}, HeldToken{1, {{5}, 1}, 3}}) {
      const TokenRows& a = own.stored(token);
      const TokenRows& b = sharing.stored(token);
      EXPECT_EQ(a.keys, b.keys);
      EXPECT_EQ(a.values, b.values);
      EXPECT_EQ(a.key_doubts, b.key_doubts);
      EXPECT_EQ(a.value_doubts, b.value_doubts);
    }
    EXPECT_EQ(source.keys_asked, 3);
    for (std::int64_t query = 0; query < 2; ++query) {
      for (std::int64_t head = 0; head < s.query_heads; ++head) {
        QueryRow a, b;
        own.query(3, 1, head, query, a);
        sharing.query(3, 1, head, query, b);
        EXPECT_EQ(a.high, b.high);
        EXPECT_EQ(a.low, b.low);
        EXPECT_EQ(a.doubts, b.doubts);
      }
    }
    EXPECT_EQ(source.queries_asked, 2);  // Heads of one query follow each other.
    EXPECT_EQ(source.asked, (Token{{6}, 1}));
  }
}

}  // namespace
}  // namespace kvcheck::model
