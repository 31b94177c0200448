// A reading of the contract: the places where an implementation can take it otherwise.
//
// The oracle answers for any reading. Null members stand for the right one, which is the default;
// wrong_models.h has the catalogue of wrong ones, each of which replaces one member.
#pragma once

#include <cstdint>
#include <vector>

#include "model/attention_row.h"
#include "model/position.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// One query of one head, in its scenario.
struct QueryPlace {
  const Scenario& scenario;
  const Timeline& timeline;
  std::size_t step = 0;
  std::int64_t entry = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;

  const EntryStep& around() const {
    return timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
  }
  Position position() const { return {around().origin.value + query}; }
};

/// A token of some entry and the step that brought it; position below 0 = a row that nobody wrote.
struct HeldToken {
  std::int64_t entry = 0;
  Token token;
  std::size_t step = 0;
};

struct Reading {
  /// Which positions a query sees, ascending (visibility.h).
  std::vector<Position> (*visible)(const QueryPlace&) = nullptr;
  /// Which token a query finds at a position that it sees.
  HeldToken (*held)(const QueryPlace&, Position) = nullptr;
  /// The KV head of a query head: head / (query heads / KV heads).
  std::int64_t (*kv_head)(const QueryPlace&) = nullptr;
  /// What the mask adds (mask.h).
  double (*bias)(const QueryPlace&, Position) = nullptr;
  /// Rotary position of token `token` of a step, of a query or of a key (rotary.h).
  std::int64_t (*rotary_position)(const Scenario&, const Timeline&, std::size_t step,
                                  std::int64_t entry, std::int64_t token, bool key) = nullptr;
  /// Rotary pairs of the other kind: neighbours for half a head apart, and the reverse.
  bool other_pairs = false;
  bool without_norm = false;          ///< qk_norm is left out.
  bool without_quantisation = false;  ///< Keys and values are read as given, not as stored.
  /// Last word on the row before it is computed.
  void (*distort)(const QueryPlace&, AttentionRowInput&) = nullptr;
};

}  // namespace kvcheck::model
