// Passes over batch, heads and head size. They come first because every later run gets cheaper.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "shrinkers/edits.h"
#include "shrinkers/passes.h"

namespace kvcheck::shrinkers {
namespace {

using model::Scenario;

/// Kernels commonly take no head size that is not a multiple of this.
constexpr std::int64_t kCommonHeadSize = 8;

Scenario minimum(const Scenario& s, std::int64_t head_size) {
  Scenario smallest = keep_entries(s, {0});
  smallest.kv_heads = 1;
  smallest.query_heads = 1;
  smallest.head_size = std::min(s.head_size, head_size);
  smallest.value_head_size = std::min(s.value_head_size, head_size);
  return smallest;
}

void propose_entry(Attempt& attempt, std::size_t entry) {
  if (attempt.current().batch <= 1) return;
  attempt.propose(keep_entries(attempt.current(), {entry}), fmt::format("kept entry {}", entry));
}

/// Head sizes worth a try below `size`: the smallest, the one that kernels commonly start at, and
/// the next lower power of two.
std::vector<std::int64_t> ladder_below(std::int64_t size) {
  std::int64_t next = 1;
  while (next * 2 < size) next *= 2;
  std::vector<std::int64_t> sizes;
  for (const std::int64_t candidate : {std::int64_t{1}, kCommonHeadSize, next}) {
    if (candidate < size) sizes.push_back(candidate);
  }
  return sizes;
}

/// Walks down the ladder as long as one of its steps helps.
void walk_down(Attempt& attempt, const Number& number) {
  for (bool helped = true; helped;) {
    helped = false;
    for (const std::int64_t size : ladder_below(number.read(attempt.current()))) {
      Scenario candidate = attempt.current();
      number.write(candidate, size);
      helped = attempt.propose(candidate);
      if (helped) break;
    }
  }
}

}  // namespace

void one_shot_minima(Attempt& attempt) {
  const Scenario start = attempt.current();
  const std::string words = start.batch > 1 ? "kept entry 0" : "";
  for (const std::int64_t size : {std::int64_t{1}, kCommonHeadSize, start.head_size}) {
    if (attempt.propose(minimum(start, size), words)) return;
  }
  propose_entry(attempt, 0);
  Scenario heads = attempt.current();
  heads.kv_heads = heads.query_heads = 1;
  attempt.propose(heads);
}

void shrink_batch(Attempt& attempt) {
  for (std::size_t entry = 0; entry < static_cast<std::size_t>(attempt.current().batch); ++entry) {
    propose_entry(attempt, entry);
  }
  // Chunks of entries are left out, the last first; at the end single ones.
  for (auto size = attempt.current().batch / 2; size >= 1; size /= 2) {
    for (auto end = attempt.current().batch; end > 0; end -= size) {
      const std::int64_t batch = attempt.current().batch;
      if (batch - size < 2 || end > batch) continue;
      std::vector<std::size_t> keep;
      for (std::int64_t b = 0; b < batch; ++b) {
        if (b < end - size || b >= end) keep.push_back(static_cast<std::size_t>(b));
      }
      attempt.propose(keep_entries(attempt.current(), keep),
                      fmt::format("dropped {} entries up to {}", size, end - 1));
    }
  }
}

void shrink_kv_heads(Attempt& attempt) {
  // Query heads follow, so that the number of queries per KV head stays.
  lower(attempt,
        {[](const Scenario& s) { return s.kv_heads; },
         [](Scenario& s, std::int64_t heads) {
           s.query_heads = heads * (s.query_heads / s.kv_heads);
           s.kv_heads = heads;
         }},
        1);
  const Scenario& current = attempt.current();
  if (current.kv_heads > 1) {
    Scenario shared = current;
    shared.kv_heads = 1;
    attempt.propose(shared);
  }
}

void shrink_query_heads(Attempt& attempt) {
  lower(attempt,
        {[](const Scenario& s) { return s.query_heads / s.kv_heads; },
         [](Scenario& s, std::int64_t group) { s.query_heads = group * s.kv_heads; }},
        1);
}

void shrink_head_size(Attempt& attempt) {
  walk_down(attempt, {[](const Scenario& s) { return std::max(s.head_size, s.value_head_size); },
                      [](Scenario& s, std::int64_t size) {
                        s.head_size = std::min(s.head_size, size);
                        s.value_head_size = std::min(s.value_head_size, size);
                      }});
  if (attempt.current().op == model::Operator::gqa) return;
  walk_down(attempt, {[](const Scenario& s) { return s.head_size; },
                      [](Scenario& s, std::int64_t size) { s.head_size = size; }});
  walk_down(attempt, {[](const Scenario& s) { return s.value_head_size; },
                      [](Scenario& s, std::int64_t size) { s.value_head_size = size; }});
}

}  // namespace kvcheck::shrinkers
