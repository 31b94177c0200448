// Row content: which token a row of the cache holds.
//
// Rows that hold what the operator was given are compared bit for bit. Keys that a target computes
// (norm, rotary embedding) and codes of a quantised cache have a range instead: all that the
// target's own rounding can make of them, one side of a tie as well as the other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/fill.h"
#include "model/operands.h"
#include "model/reading.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

/// The content that tokens have in K and V rows, computed once for each token.
class RowContent {
 public:
  /// `roundoff` is the target's unit roundoff. All must outlive the content. `operands`, if not
  /// null, are those of the right reading of the same scenario and roundoff.
  RowContent(const model::Scenario& scenario, const model::Timeline& timeline,
             const model::Fill& fill, double roundoff, model::Operands* operands = nullptr);
  RowContent(const RowContent&) = delete;
  RowContent& operator=(const RowContent&) = delete;

  /// Type and shape of `rows` against [B,Nk,R,lanes] as the cache stores them: what is wrong, or
  /// empty. Whatever else reads rows asks this first.
  std::string shape_problem(const kernels::CacheRows& rows) const;

  /// The token that stands at `position` of `entry` after `step`.
  /// \pre 0 <= position < length of the entry after the step
  model::HeldToken held(std::size_t step, std::int64_t entry, model::Position position) const;

  /// Whether row `row` of `rows` holds `token` for `kv_head` of its entry, in K and in V.
  struct Match {
    bool key = false, value = false;
    bool both() const { return key && value; }
  };
  Match match(const kernels::CacheRows& rows, std::int64_t kv_head, std::int64_t row,
              const model::HeldToken& token);

  /// The same where the rows hold fewer entries: entry `entry` of `rows` stands for the token's.
  Match match_in(const kernels::CacheRows& rows, std::int64_t entry, std::int64_t kv_head,
                 std::int64_t row, const model::HeldToken& token);

  /// Of a row that does not match, key before value: the first stored element that is not the
  /// nearest one, which of a tie may be the other side. 0 where there is none.
  std::int64_t first_other_lane(const kernels::CacheRows& rows, std::int64_t kv_head,
                                std::int64_t row, const model::HeldToken& token);

  /// The token of `entry` whose key the row holds; empty when none has this content. Keys are
  /// distinct per token in every fill with enough lanes; the newest match wins.
  std::optional<model::HeldToken> identify(const kernels::CacheRows& rows, std::int64_t entry,
                                           std::int64_t kv_head, std::int64_t row);

  /// Whether a correct row may have other bits than the nearest ones.
  bool has_ranges() const { return computed_keys_ || quantised_; }

 private:
  enum class Side { key, value };
  /// Bytes of the rows of all KV heads that are nearest to the exact content, token by token in
  /// the order in which they were asked for.
  struct Stored {
    std::size_t width = 0;            // Bytes of one row.
    std::vector<std::byte> bytes;     // [kv_head][width] of each token
    std::vector<std::int64_t> first;  // [token] where its rows begin, -1 until asked.
  };
  std::size_t index_of(const model::HeldToken& token) const;
  /// Valid until the next call.
  std::span<const std::byte> stored(Side side, const model::HeldToken& token, std::int64_t kv_head);
  /// Of all KV heads, as the operator was given them; empty where the cache stores something else,
  /// or nobody shares what was given. Valid until the next call.
  std::span<const std::byte> given(Side side, const model::HeldToken& token) const;
  void encode(Side side, const model::HeldToken& token, std::int64_t kv_head,
              std::span<std::byte> bytes);
  bool side_matches(std::span<const std::byte> row, Side side, const model::HeldToken& token,
                    std::int64_t kv_head);
  bool within_range(std::span<const std::byte> row, Side side, const model::HeldToken& token,
                    std::int64_t kv_head);

  const model::Scenario& scenario_;
  const model::Timeline& timeline_;
  const model::Fill& fill_;
  bool computed_keys_, quantised_;
  model::Reading unquantised_;  // Operands before the cache quantises them.
  std::optional<model::Operands> own_operands_;
  model::Operands* operands_;
  std::vector<model::HeldToken> tokens_;          // In the order of the steps that brought them.
  std::vector<std::vector<std::size_t>> begins_;  // [step][entry], first of its tokens.
  std::array<Stored, 2> stored_;                  // [side]
};

/// Bytes of row `row` of a [B,Nk,R,lanes] tensor.
std::span<const std::byte> row_bytes(const kernels::Tensor& tensor, std::int64_t entry,
                                     std::int64_t kv_head, std::int64_t row);

}  // namespace kvcheck::properties
