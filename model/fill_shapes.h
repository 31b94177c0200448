// The shaped fills: data made to show one kind of arithmetic fault each.
#pragma once

#include <cstdint>

#include "model/scenario.h"

namespace kvcheck::model {

/// What the elements of one row of a shaped fill depend on.
struct ShapedRow {
  /// Hash of everything that names the row: tensor, entry, head, position and generation.
  std::uint64_t own = 0;
  /// Hash of entry and KV head, the same for keys and for the queries that read them.
  std::uint64_t column = 0;
  std::int64_t position = 0;
};

/// extreme, ties, cancelling or integers. (selection is made of needles, see fill.h.)
bool is_shaped_fill(FillKind kind);

/// How the logits of `extreme` run over the positions, and where its values are huge; by the seed.
enum class ExtremeShape {
  ascending,   ///< Every key raises the maximum: an online softmax rescales all the time.
  descending,  ///< The first key is the maximum.
  far_below,   ///< All logits near -6e4, below the finite sentinels that stand for -infinity.
  above_exp,   ///< All logits a little above 100, where exp overflows in f32.
  spread,      ///< From -2^15 to 98, in one row.
  huge_values  ///< Random logits; |V| near 2^112, or 6e4 in f16.
};
ExtremeShape extreme_shape(const Scenario& scenario);

/// Element `lane` of a row, representable in the scenario's element type. Logits are meant before
/// norm, rotary embedding and quantisation, and for heads whose queries stay below 2048.
/// extreme: even lanes of keys carry the logit, odd ones a code that tells tokens apart. Where 16
/// bits meet a rotary embedding logits stay within 96, else one rounding of a key would move them
/// by more than the bound can follow.
/// ties: all logits of a query are equal and not 0: queries have one lane, in which keys agree.
/// cancelling: positions 2i and 2i+1 have the same logit and values of about +-1000 (1 in a
/// quantised cache) that cancel but for their last bits.
/// integers: keys of -4..4, queries of -1..1, values of -16..16 quarters: products and short sums
/// are exact.
/// \pre is_shaped_fill(scenario.fill.kind)
double shaped_key(const Scenario& scenario, const ShapedRow& row, std::int64_t lane);
double shaped_value(const Scenario& scenario, const ShapedRow& row, std::int64_t lane);
double shaped_query(const Scenario& scenario, const ShapedRow& row, std::int64_t lane);

}  // namespace kvcheck::model
