// Operands of attention: queries, keys and values as the operator computes with them.
//
// What the fill gives passes the norm, then the rotary embedding; keys are then rounded to the
// element type, keys and values are quantised where the cache is. Each operand comes with its
// doubt: how far the one that a target holds may lie from it, since it computes them with errors of
// its own, which move a stored value only across a tie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/fill.h"
#include "model/reading.h"
#include "model/rotary.h"
#include "model/row_source.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// One token of one entry, for all KV heads, as the cache holds it (dequantised).
struct TokenRows {
  explicit TokenRows(std::pmr::memory_resource* memory)
      : keys(memory), values(memory), key_doubts(memory), value_doubts(memory) {}

  std::pmr::vector<double> keys;          ///< [kv_heads][head_size]
  std::pmr::vector<double> values;        ///< [kv_heads][value_head_size]
  std::pmr::vector<double> key_doubts;    ///< As keys, or empty: all exact.
  std::pmr::vector<double> value_doubts;  ///< As values, or empty.
};

/// One query row: high + low is the exact operand to about 2^-100.
struct QueryRow {
  std::vector<double> high;
  std::vector<double> low;     ///< Empty = 0.
  std::vector<double> doubts;  ///< Empty = exact.
};

class Operands {
 public:
  /// `roundoff` is the target's unit roundoff. All must outlive the operands.
  Operands(const Scenario& scenario, const Timeline& timeline, const Fill& fill, double roundoff,
           const Reading& reading);

  /// From here on rows come from `rows` in place of the fill. \pre it gives those of the fill
  void share_rows(RowSource& rows) { source_ = &rows; }
  /// Null where the rows are not shared.
  RowSource* shared_rows() const { return source_; }

  /// Evaluated once per token. Valid as long as the operands.
  const TokenRows& stored(const HeldToken& token);

  /// \pre step is an Append, 0 <= query < queries of the entry
  void query(std::size_t step, std::int64_t entry, std::int64_t query_head, std::int64_t query,
             QueryRow& row);

 private:
  struct NameHash {
    std::size_t operator()(const HeldToken& name) const;
  };
  struct SameName {
    bool operator()(const HeldToken& a, const HeldToken& b) const;
  };
  std::int64_t turn_of(std::size_t step, std::int64_t entry, std::int64_t token, bool key) const;
  void norm(QueryRow& row, bool key);
  std::span<const Turn> turns_at(std::int64_t position);
  void rotate(QueryRow& row, std::int64_t position);
  void give_rows(const HeldToken& token, TokenRows& rows) const;
  void give_query(std::size_t step, std::int64_t entry, std::int64_t query_head, std::int64_t query,
                  std::span<double> row);
  void store_keys(const HeldToken& token, TokenRows& rows);
  void quantise_rows(TokenRows& rows) const;
  const TokenRows** shortcut(const HeldToken& token);
  void make(const HeldToken& token, TokenRows& rows);

  const Scenario* scenario_;
  const Timeline* timeline_;
  const Fill* fill_;
  double roundoff_;
  const Reading* reading_;
  RowSource* source_ = nullptr;
  /// The query whose rows of all heads shared_query_ holds.
  struct QueryName {
    std::size_t step;
    std::int64_t entry, query;
    friend bool operator==(const QueryName&, const QueryName&) = default;
  };
  std::optional<QueryName> shared_query_name_;
  std::vector<double> shared_query_;  // [query_heads][head_size]
  std::optional<Rotary> rotary_;
  std::optional<std::int64_t> turns_position_;       // What turns_ are of.
  std::vector<Turn> turns_;                          // [pair]
  QueryRow key_row_;                                 // Memory of store_keys().
  std::array<std::vector<double>, 2> norm_weights_;  // Of queries and of keys, empty until asked.
  std::pmr::monotonic_buffer_resource memory_;       // Of all tokens' rows.
  std::unordered_map<HeldToken, TokenRows, NameHash, SameName> rows_;
  std::deque<TokenRows> noted_rows_;  // Those that a shortcut leads to.
  /// [step][entry], then by position from the past of the step on: rows of tokens whose generation
  /// is the step's. Null until asked.
  std::vector<std::vector<const TokenRows*>> shortcuts_;
};

}  // namespace kvcheck::model
