// The passes of the search and their order.
#pragma once

#include <span>
#include <string_view>

#include "shrinkers/attempt.h"
#include "shrinkers/shrink.h"

namespace kvcheck::shrinkers {

/// One pass: proposes smaller scenarios until nothing it knows helps. A pass may propose anything;
/// the attempt keeps only what is valid, strictly smaller and still fails.
struct Pass {
  std::string_view name;
  void (*run)(Attempt&);
};

/// All passes in order: sizes (each later run gets cheaper), steps (tail first), cache, mask and
/// values (few runs each; what they accept later would make the passes below run again), numbers
/// of the steps, coupled numbers.
std::span<const Pass> passes();

/// Pass 0, run once: cuts after the failing step, keeps the failing entry and one KV group; all
/// together, then singly. Parts of the hint that do not fit the scenario are left out.
void guided_jump(Attempt& attempt, const Hint& hint);

// Sizes: pass_sizes.cpp.
void one_shot_minima(Attempt& attempt);
void shrink_batch(Attempt& attempt);
void shrink_kv_heads(Attempt& attempt);
void shrink_query_heads(Attempt& attempt);
void shrink_head_size(Attempt& attempt);

// Steps: pass_steps.cpp.
void cut_tail(Attempt& attempt);
void lead_in_to_past(Attempt& attempt);
void delete_chunks(Attempt& attempt);
void cancel_rollbacks(Attempt& attempt);
void merge_neighbours(Attempt& attempt);

// Cache, mask, flags, values: pass_values.cpp.
void shrink_window(Attempt& attempt);
void shrink_capacity(Attempt& attempt);
void shrink_mask(Attempt& attempt);
void shrink_flags(Attempt& attempt);
void shrink_values(Attempt& attempt);

// Optional features of the operators: pass_features.cpp.
void shrink_features(Attempt& attempt);

// Numbers of the steps: pass_tokens.cpp.
void shrink_rollbacks(Attempt& attempt);
void shrink_tokens(Attempt& attempt);
void shrink_queries(Attempt& attempt);

// Numbers that sit on a common boundary: pass_coupled.cpp.
void shrink_coupled(Attempt& attempt);

}  // namespace kvcheck::shrinkers
