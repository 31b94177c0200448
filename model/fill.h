// Data fills: the value of every tensor element as a pure function of the scenario.
//
// No stream is drawn: an element depends on (seed, tensor, entry, head, token, lane) alone, so
// any split of the same tokens gives the same data, and K, V, heads, entries and generations all
// differ from one another. All values are representable in the scenario's element type.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/fill_shapes.h"
#include "model/literal.h"
#include "model/needles.h"
#include "model/position.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// random: about N(0,1). needles, selection and the position fills give K codes of +-[1, 1.25).
/// needles: V as random; a query is the weighted sum of the signs of its needles' codes (see
/// needles.h) and of a little noise, so that query heads differ. One hit gives a logit of about 7.
/// selection: as needles, but a query is the code of one key that it sees, with a logit of about
/// 64: that key wins, and the output is its value, but where two codes agree in nearly all lanes.
/// extreme, ties, cancelling, integers: see fill_shapes.h.
/// position_code, position_block: Q = 0; V is 1 at position_lane() and 0 elsewhere.
/// position_digits: Q = 0; V is digit_value() at the digit_lane() of every digit and 0 elsewhere.
/// literal: what the steps spell out.
/// Values are those that the operator is given: before norm and rotary embedding, and before the
/// cache quantises. Of a past they are what the cache holds.
class Fill {
 public:
  /// Both must outlive the fill.
  Fill(const Scenario& scenario, const Timeline& timeline);

  double key(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const;
  double value(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const;
  /// Query `query` (0-based) that entry `entry` asks in step `step`. Depends on the query's
  /// position and on the tokens that the cache then holds, not on how steps were split.
  double query(std::size_t step, std::int64_t entry, std::int64_t query_head, std::int64_t query,
               std::int64_t lane) const;

  /// Whole rows: lanes 0 .. row.size()-1 of the functions above.
  void key_row(std::int64_t entry, std::int64_t kv_head, Token token, std::span<double> row) const;
  void value_row(std::int64_t entry, std::int64_t kv_head, Token token,
                 std::span<double> row) const;
  void query_row(std::size_t step, std::int64_t entry, std::int64_t query_head, std::int64_t query,
                 std::span<double> row) const;

  /// Content of unspecified rows for a poison: 0, a moderate value, the largest finite, NaN.
  double poison(Poison poison) const;

  /// The tokens that a query points at, beside its own place all that it depends on; null for the
  /// fills whose queries point at none.
  const NeedleSet* needles(std::size_t step, std::int64_t entry, std::int64_t query) const {
    if (!pointed_) return nullptr;
    return &needles_of(step, entry)[static_cast<std::size_t>(query)];
  }

  /// Data of entry b is that of entry b + first_entry() of the fill.
  std::int64_t first_entry() const { return scenario_->fill.first_entry; }

 private:
  const std::vector<NeedleSet>& needles_of(std::size_t step, std::int64_t entry) const {
    return needles_[step * static_cast<std::size_t>(scenario_->batch) +
                    static_cast<std::size_t>(entry)];
  }
  /// What the lanes of the row of `token` in one tensor hash with.
  std::uint64_t row_hash(std::uint64_t tensor, std::int64_t entry, std::int64_t head,
                         Token token) const;
  ShapedRow shaped_row(std::uint64_t tensor, std::int64_t entry, std::int64_t head,
                       Token token) const;
  /// Lanes of a row by the row's hash.
  double key_lane(std::uint64_t row, std::int64_t lane) const;
  double value_lane(std::uint64_t row, std::int64_t lane) const;
  /// A row of about normal numbers.
  void normal_row(std::uint64_t hash, std::span<double> row) const;

  struct QueryRow;  // What all lanes of one query share.
  QueryRow query_source(std::size_t step, std::int64_t entry, std::int64_t query_head,
                        std::int64_t query) const;
  double query_lane(const QueryRow& row, std::int64_t lane) const;
  ShapedRow shaped_query_row(std::size_t step, std::int64_t entry, std::int64_t query_head,
                             std::int64_t query) const;

  const Scenario* scenario_;
  const Timeline* timeline_;
  std::optional<LiteralFill> literal_;
  bool shaped_ = false;
  bool pointed_ = false;  // needles or selection
  double needle_gain_ = 0;
  std::vector<std::vector<NeedleSet>> needles_;  // [step and entry][query]
  std::vector<std::uint64_t> heads_;             // [tensor][entry][head] or empty, see row_hash().
};

/// Lane of the output that shows the weight of `position` under a position fill, for `kv_head` of
/// `entry`; lanes are rotated per head and entry so that a swapped head decodes to wrong
/// positions. -1 where position_block leaves the position dark, or where the one lane
/// of position_code shows a binary digit (of the position plus one) that is 0.
/// \pre the fill is position_code or position_block
std::int64_t position_lane(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head,
                           Position position);

/// Digits that position_digits can show in the lanes of a value, each in two lanes or more; 0 where
/// it can show none.
std::int64_t most_digits(const Scenario& scenario);

/// Lane of the output that shows digit `digit` of `position` under position_digits, rotated as
/// those of position_lane(). Digits have lanes of their own: no two positions that differ in one
/// light the same lane for it.
/// \pre the fill is position_digits, 0 <= digit < fill.index
std::int64_t digit_lane(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head,
                        Position position, std::int64_t digit);

/// What V is where it shows a digit: a number from 1 to kDigitValues that tells neighbouring KV
/// heads and entries apart, counted through the batch; 1 where the cache is quantised, whose codes
/// reach no further.
double digit_value(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head);

/// So many KV heads, those of all entries, have a digit_value() each.
inline constexpr std::int64_t kDigitValues = 6;

}  // namespace kvcheck::model
