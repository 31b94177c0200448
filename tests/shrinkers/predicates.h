// Planted failures: pure functions of a scenario that stand for a kernel's fault.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <variant>

#include "model/scenario.h"
#include "shrinkers/edits.h"

namespace kvcheck::shrinkers::testing {

/// The causal mask is skipped for one query over two or more new keys behind a past.
inline bool decode_ignores_causal(const model::Scenario& s) {
  if (s.op != model::Operator::attention || !s.causal || s.nonpad_kv_seqlen) return false;
  const auto lengths = lengths_before(s);
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    const auto* append = std::get_if<model::Append>(&s.steps[i]);
    if (append && append->queries[0] == 1 && append->tokens[0] >= 2 && lengths[i][0] >= 1) {
      return true;
    }
  }
  return false;
}

/// A rollback after the cache has evicted, with a window of three or more.
inline bool rollback_after_eviction(const model::Scenario& s) {
  if (s.cache.layout != model::LayoutKind::block || *s.cache.window_size < 3) return false;
  const auto lengths = lengths_before(s);
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    if (std::holds_alternative<model::Rollback>(s.steps[i]) &&
        largest(lengths[i]) > s.cache.capacity) {
      return true;
    }
  }
  return false;
}

/// Two entries of different length at the end, as if one length served the whole batch.
inline bool one_length_for_the_batch(const model::Scenario& s) {
  const auto last = lengths_before(s).back();
  return s.batch >= 2 &&
         std::adjacent_find(last.begin(), last.end(), std::not_equal_to<>()) != last.end();
}

/// A buffer two rows larger than the window, and a step that ends exactly where the first block
/// is evicted: window, capacity and length sit on one boundary.
inline bool first_eviction_of_slack_two(const model::Scenario& s) {
  if (s.cache.layout != model::LayoutKind::block) return false;
  if (*s.cache.window_size != s.cache.capacity - 2) return false;
  for (const auto& lengths : lengths_before(s)) {
    if (std::count(lengths.begin(), lengths.end(), s.cache.capacity + 1) > 0) return true;
  }
  return false;
}

/// A query head that is not its KV head, at a head size of a full vector, in a narrow type.
inline bool wide_grouped_half(const model::Scenario& s) {
  return s.query_heads >= 2 * s.kv_heads && s.kv_heads >= 2 && s.head_size >= 16 &&
         s.element_type == model::ElementType::f16;
}

/// A rollback of two or more, then an append that must overwrite what was dropped.
inline bool stale_after_rollback(const model::Scenario& s) {
  for (std::size_t i = 0; i + 1 < s.steps.size(); ++i) {
    if (std::holds_alternative<model::Rollback>(s.steps[i]) &&
        largest(tokens_of(s.steps[i])) >= 2 &&
        std::holds_alternative<model::Append>(s.steps[i + 1]) &&
        largest(std::get<model::Append>(s.steps[i + 1]).queries) >= 1) {
      return true;
    }
  }
  return false;
}

/// Seven or more queries at once behind three or more tokens, under a window of five or more.
inline bool long_append_over_a_wide_window(const model::Scenario& s) {
  if (s.cache.window_size.value_or(0) < 5) return false;
  const auto lengths = lengths_before(s);
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    const auto* append = std::get_if<model::Append>(&s.steps[i]);
    for (std::size_t b = 0; append && b < append->queries.size(); ++b) {
      if (append->queries[b] >= 7 && lengths[i][b] >= 3) return true;
    }
  }
  return false;
}

/// A dead row under a boolean mask per head, with poison that is not finite.
inline bool dead_row_with_nan(const model::Scenario& s) {
  return s.mask.kind != model::MaskKind::none && s.mask.empty_rows && s.mask.rank >= 3 &&
         s.poison == model::Poison::nan;
}

}  // namespace kvcheck::shrinkers::testing
