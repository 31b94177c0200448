// What one query attends to: the visible tokens of a scenario as the input of one attention row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/attention_row.h"
#include "model/fill.h"
#include "model/operands.h"
#include "model/reading.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

class Gatherer {
 public:
  /// `roundoff` is the target's. All must outlive the gatherer.
  Gatherer(const Scenario& scenario, const Timeline& timeline, const Fill& fill, double roundoff,
           const Reading& reading);

  /// The row of one query and head; cheapest when the heads of one query follow each other. Valid
  /// until the next call.
  const AttentionRowInput& row(std::size_t step, std::int64_t entry, std::int64_t head,
                               std::int64_t query);

  /// The same over `positions` in place of the visible ones. No cell of the mask is asked.
  const AttentionRowInput& row_over(const QueryPlace& place, std::span<const Position> positions);

  Operands& operands() { return operands_; }

  /// Positions of the row that was gathered last.
  std::span<const Position> positions() const { return positions_; }

 private:
  bool same_tokens(const QueryPlace& place) const;
  void hold(const QueryPlace& place);
  void find_tokens(const QueryPlace& place);
  void fill_row(const QueryPlace& place);
  void fill_doubts(bool exact, std::pmr::vector<double> TokenRows::*doubts, std::size_t at,
                   std::vector<const double*>& out) const;
  void fill_biases(const QueryPlace& place);

  const Scenario& scenario_;
  const Timeline& timeline_;
  const Reading& reading_;
  Operands operands_;
  bool heads_see_the_same_;

  struct Held {
    std::size_t step;
    std::int64_t entry, query;
  };
  std::optional<Held> held_;  // The query that the two members below are for.
  std::vector<Position> positions_;
  std::vector<Written> written_;
  std::vector<const TokenRows*> tokens_;
  bool keys_are_exact_ = true, values_are_exact_ = true;  // No token has doubts.
  QueryRow query_;
  AttentionRowInput input_;
};

}  // namespace kvcheck::model
