// Rotary embedding inside GroupQueryAttention (contract 1.4.3).
//
// Pair (a, b) of lanes becomes (a cos - b sin, b cos + a sin). Positions are absolute under every
// layout, and a key keeps the turn it was stored with.
#pragma once

#include <cstdint>
#include <vector>

#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// Rotary position of token `token` (0-based in the step) of `entry`: its own position, or what
/// position_ids say. Outside the first prompt the operator reads position_ids as one flat list at
/// entry * S + token, whatever its rows' length; in the first prompt it reads element 0 alone and
/// counts up from it.
/// \pre scenario.rotary, step is an Append
std::int64_t rotary_position(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                             std::int64_t entry, std::int64_t token);

/// The position_ids of a step, [batch][columns]. \pre scenario.rotary->position_ids
std::vector<std::vector<std::int64_t>> position_ids(const Scenario& scenario,
                                                    const Timeline& timeline, std::size_t step);

/// Rows of cos_cache and sin_cache that cover every step: one more than the largest position that
/// any step names, and at least the longest length.
std::int64_t rotary_rows(const Scenario& scenario, const Timeline& timeline);

/// Lanes that turn: rotary.dim, or the whole head.
std::int64_t rotary_lanes(const Scenario& scenario);

/// An element of cos_cache and of sin_cache.
struct Turn {
  double cos = 1;
  double sin = 0;
};

/// The tables of a scenario, evaluated on demand.
class Rotary {
 public:
  /// With `other_pairs` the pairs are of the kind that rotary.interleaved does not ask for.
  /// \pre scenario.rotary
  explicit Rotary(const Scenario& scenario, bool other_pairs = false);

  std::int64_t pairs() const { return static_cast<std::int64_t>(frequencies_.size()); }

  /// cos_cache[position][pair] and sin_cache[position][pair] in the scenario's element type: the
  /// angle is position * 10000^(-2 pair / lanes).
  Turn turn(std::int64_t position, std::int64_t pair) const;

  /// The two lanes of a pair: half a turning part apart, or neighbours.
  struct Lanes {
    std::size_t a = 0;
    std::size_t b = 0;
  };
  Lanes lanes(std::int64_t pair) const;

 private:
  ElementType type_;
  bool interleaved_;
  std::vector<double> frequencies_;  // [pair]
};

/// Whether a step runs as first prompt: nothing is behind any entry, and the operator is not given
/// query lengths, which a windowed cache needs where entries differ.
bool is_first_prompt(const Scenario& scenario, const Timeline& timeline, std::size_t step);

}  // namespace kvcheck::model
