// The attn_mask of a scenario as a function of absolute positions.
//
// A mask bound to positions instead of step-relative rows stays the same when the same tokens
// are split into other steps, which the step-split property needs.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "model/counter_hash.h"
#include "model/position.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// Whether the seeded mask hides `key` from `query`. Entries, heads and queries count only as far
/// as the mask's rank and flags reach (rank 1: none of them, rank 2: queries, rank 3: heads too,
/// rank 4: all). gqa never hides a query's own position: its operator leaves an empty row open.
bool mask_hides(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                Position key);

/// What the seeded mask adds to the logit where it does not hide: 0 for none and boolean, a small
/// finite value for additive (0 under the position fills, so that weights stay equal). The value
/// is representable in the scenario's element type.
double mask_bias(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                 Position key);

/// One element of the mask as the operator reads it.
struct MaskCell {
  bool hides = false;
  double bias = 0;  ///< 0 where it hides.
};

/// The cell of query `query` (0-based in the step) and `key`, from the seed or from the step's
/// literal tensor; a column that the mask lacks hides.
/// \pre step is an Append
MaskCell mask_cell(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                   std::int64_t entry, std::int64_t head, std::int64_t query, Position key);

/// All cells of one query's row; mask_cell() of many keys at once.
class MaskRow {
 public:
  /// \pre as mask_cell()
  MaskRow(const Scenario& scenario, const Timeline& timeline, std::size_t step, std::int64_t entry,
          std::int64_t head, std::int64_t query);

  MaskCell at(Position key) const {
    if (literal_) return literal_at(key.value);
    if (hides(key)) return {true, 0};
    return {false, biased_ ? bias_of(biases_, key) : 0};
  }

  /// at(key).hides
  bool hides(Position key) const {
    if (literal_) return literal_at(key.value).hides;
    if (key.value >= columns_) return true;
    return key.value != own_ && (hides_all_ || hides_pair(hidden_percent_, pairs_, key));
  }

  /// Whether a pair is hidden whose row's hashes begin with `row`.
  static bool hides_pair(int hidden_percent, std::uint64_t row, Position key) {
    return static_cast<int>(continue_hash(row, key.value) % 100) < hidden_percent;
  }
  /// The bias of a pair that is not hidden, likewise.
  static double bias_of(std::uint64_t row, Position key) {
    // Multiples of 1/32 up to 2 take 7 significant bits, which every element type has.
    return static_cast<double>(static_cast<std::int64_t>(continue_hash(row, key.value) % 129) -
                               64) /
           32.0;
  }

 private:
  MaskCell literal_at(std::int64_t key) const;

  const Scenario& scenario_;
  const std::size_t step_;
  const std::int64_t entry_, head_, query_;
  std::int64_t columns_;                                         // From here on all is hidden.
  std::int64_t own_ = std::numeric_limits<std::int64_t>::min();  // What gqa never hides.
  bool hides_all_ = false;                                       // But for that key.
  bool literal_ = false;
  bool biased_ = false;
  int hidden_percent_ = 0;
  std::uint64_t pairs_ = 0;   // What the hashes of the row's cells begin with: hidden or not, ...
  std::uint64_t biases_ = 0;  // ... and biases.
};

/// Shape of the mask tensor of a step: queries, then keys up to the longest length (the buffer with
/// nonpad_kv_seqlen) less what is missing.
/// \pre step is an Append, the mask is not none
std::vector<std::int64_t> mask_shape(const Scenario& scenario, const Timeline& timeline,
                                     std::size_t step);

}  // namespace kvcheck::model
