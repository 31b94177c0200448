// The attn_mask as a hash of absolute positions.
#include "model/mask.h"

#include "model/counter_hash.h"

namespace kvcheck::model {
namespace {

enum Purpose : std::uint64_t { kHidePair = 1, kHideRow = 2, kBias = 3 };

/// One query row in this many is hidden whole.
constexpr std::uint64_t kEmptyRowEvery = 4;

/// Seed of the mask that `head` of `entry` sees: a mask of low rank is the same for all of them.
std::uint64_t plane(const Scenario& scenario, Purpose purpose, std::int64_t entry,
                    std::int64_t head) {
  const MaskSpec& mask = scenario.mask;
  return counter_hash(mask.seed, purpose, mask.rank >= 4 ? scenario.fill.first_entry + entry : 0,
                      mask.rank >= 3 ? head : 0);
}

bool is_position_fill(const FillSpec& fill) {
  return fill.kind == FillKind::position_code || fill.kind == FillKind::position_block;
}

}  // namespace

bool mask_hides(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                Position key) {
  const MaskSpec& mask = scenario.mask;
  if (mask.kind == MaskKind::none) return false;
  const std::uint64_t pair =
      counter_hash(plane(scenario, kHidePair, entry, head), query.value, key.value);
  if (static_cast<int>(pair % 100) < mask.hidden_percent) return true;
  if (!mask.empty_rows) return false;
  return counter_hash(plane(scenario, kHideRow, entry, head), query.value) % kEmptyRowEvery == 0;
}

double mask_bias(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                 Position key) {
  const MaskSpec& mask = scenario.mask;
  if (mask.kind != MaskKind::additive || is_position_fill(scenario.fill)) return 0;
  const std::uint64_t hash =
      counter_hash(plane(scenario, kBias, entry, head), query.value, key.value);
  // Multiples of 1/32 up to 2 take 7 significant bits, which every element type has.
  return static_cast<double>(static_cast<std::int64_t>(hash % 129) - 64) / 32.0;
}

}  // namespace kvcheck::model
