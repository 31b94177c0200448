// The rules of a GroupQueryAttention call that compare lengths and positions; a part of
// gqa_rules.h.
#pragma once

#include <cstdint>
#include <vector>

#include "model/calls/gqa_rules.h"

namespace kvcheck::model {

/// Sizes that the shapes of a call agree on.
struct GqaSizes {
  std::int64_t batch = 0;
  std::int64_t step = 0;      ///< S.
  std::int64_t new_keys = 0;  ///< Lk.
  std::int64_t head_size = 0;
  std::int64_t past_rows = 0;  ///< C; 0 without a past.
};

/// The rules from GqaRule::total_positive on.
/// \pre `call` keeps all the others
std::vector<GqaRuleBreak> check_lengths(const GqaCall& call, const GqaSizes& sizes);

}  // namespace kvcheck::model
