// Rotary embedding: which position a token turns to, and the turn.
//
// Pair (a, b) of lanes becomes (a cos - b sin, b cos + a sin); lanes beyond the pairs stay
// (contract of GroupQueryAttention, 1.4.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/planted/input_mistakes.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Rotary positions of one step.
///
/// Without position_ids a token's own position. With them, in the first prompt element 0 alone plus
/// the token's index; in other steps the flat list at entry * S + token, whatever the length of its
/// rows. First prompt: S is the longest length, nothing is behind any entry that brings tokens,
/// and the operator is not given query lengths, which an idle entry needs, and a windowed cache
/// with ragged ones.
class RotaryPositions {
 public:
  /// \param lengths before the step. Refers to all three. Of use where the session has a rotary
  /// embedding alone.
  RotaryPositions(const SessionConfig& config, std::span<const std::int64_t> lengths,
                  const StepRequest& request, Fault fault = Fault::none);

  bool first_prompt() const { return first_prompt_; }
  /// \pre token is one of the entry's tokens or queries
  std::int64_t of(std::int64_t entry, std::int64_t token) const {
    const std::int64_t position = right(entry, token);
    if (fault_ == Fault::none) return position;
    return distort_position(fault_, *config_, lengths_, entry, token, position);
  }

 private:
  std::int64_t right(std::int64_t entry, std::int64_t token) const;

  std::span<const std::int64_t> lengths_;
  const StepRequest* request_;
  const SessionConfig* config_;
  Fault fault_;
  bool alone_ = false;  // Queries without tokens, which stand at the end.
  bool first_prompt_ = false;
  const std::byte* ids_ = nullptr;
  std::int64_t width_ = 0;  // S.
};

/// The tables of a session in the type of the arithmetic.
template <class Real>
class RotaryTable {
 public:
  /// \param apart lanes between the two of a pair that is not interleaved; 0 = as many as there are
  /// pairs
  explicit RotaryTable(const RotaryConfig& config, std::int64_t apart = 0);

  /// Turns one row in place. \pre 0 <= position < rows of the tables
  void turn(std::int64_t position, Real* row) const;

 private:
  bool interleaved_;
  std::int64_t pairs_, apart_;
  std::vector<Real> cos_, sin_;
};

}  // namespace kvcheck::kernels
