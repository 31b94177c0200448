// Cases of the faults in where rows lie and how many there are.
#include "tests/kernels/fault_cases.h"

namespace kvcheck::kernels {
namespace {

/// Two entries with full caches of 16 rows.
SessionConfig two_entries() {
  SessionConfig config = full_cache();
  config.batch = 2;
  return config;
}

/// Lengths 3 and 1 and one token more; rows without a position hold -7.
Numbers ragged_step(Sequence& sequence) {
  sequence.load({3, 1});
  return sequence.append({1, 1});
}

/// Rows 0..3 after the seventh token: the first compaction of six rows with window 4.
Numbers keys_after_compaction(Sequence& sequence) {
  sequence.append({6});
  sequence.append({1});
  return sequence.keys(4);
}

/// Keys of a staged first step: eight tokens into six rows.
Numbers keys_after_staging(Sequence& sequence) {
  sequence.append({8});
  return sequence.keys(5);
}

/// Four tokens, `tokens` dropped, one appended: its output.
Numbers replace_one(Sequence& sequence, std::int64_t tokens) {
  sequence.append({4});
  sequence.rollback({tokens});
  return sequence.append({1});
}

std::vector<FaultCase> length_cases() {
  return {
      // T = 4 of 8 rows, two queries: {0..2}, {0..3}; counted from 8 both see all four.
      {"capacity_for_length",
       nonpad(8),
       [](Sequence& s) {
         s.load({3});
         return s.append({1}, {2});
       },
       {1, 1.5},
       {1.5, 1.5}},
      // Rows 0, 1, -7, -7.
      {"nonpad_limit_ignored",
       nonpad(4, false),
       [](Sequence& s) {
         s.load({1});
         return s.append({1}, {1});
       },
       {0.5},
       {-3.25}},
      // Entry 1 sees rows 1000, 1001, -7, -7.
      {"batch_maximum_for_length",
       two_entries(),
       ragged_step,
       {1.5, 1000.5},
       {1.5, 496.75},
       "cpu-naive"},
      // Positions 2 and 3 of entry 1 are not there.
      {"batch_maximum_for_length",
       with(two_entries(), [](SessionConfig& c) { c.window_size = 2; }),
       ragged_step,
       {2.5, 1000.5},
       {2.5, 0},
       "cpu-flash"},
      // Row 1 of entry 1 stays -7.
      {"append_at_longest", two_entries(), ragged_step, {1.5, 1000.5}, {1.5, 496.5}},
      // Row 0 of entry 1 is counted and empty.
      {"idle_entry_advances",
       two_entries(),
       [](Sequence& s) {
         s.append({1, 0});
         return s.append({1, 1});
       },
       {0.5, 1000},
       {0.5, 500}},
      // Row 2 is zero.
      {"length_one_too_many",
       with(full_cache(), [](SessionConfig& c) { c.causal = false; }),
       [](Sequence& s) { return s.append({2}); },
       {0.5, 0.5},
       {1.0 / 3, 1.0 / 3}},
      // Entry 0 begins with position 3; entry 1, with four tokens, has position 3 in row 3.
      {"first_position_of_entry_zero",
       with(block_cache(6, 4), [](SessionConfig& c) { c.batch = 2; }),
       [](Sequence& s) {
         s.load({7, 3}, {3, 0});
         return s.append({1, 1});
       },
       {5.5, 1001.5},
       {5.5, 1000}},
      {"batch_entry_zero_rows", two_entries(), ragged_step, {1.5, 1000.5}, {1.5, 0.5}},
      // Entry 1 has one token, 5, and then padding of 9.
      {"padding_before_tokens",
       two_entries(),
       [](Sequence& s) {
         return attend(s, {2, 1}, {2, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 3, 5, 9});
       },
       {1, 2, 5},
       {1, 2, 9}},
      // Padding of 100 behind the queries of entry 1 draws all weight to its key 1.
      {"padding_before_queries",
       two_entries(),
       [](Sequence& s) {
         return attend(s, {3, 2}, {3, 2}, {0, 0, 0, 0, 0, 100}, {0, 0, 0, 0, 1, 0},
                       {0, 0, 0, 0, 1, 0});
       },
       {0, 0, 0, 0, 0.5},
       {0, 0, 0, 0, 1}},
  };
}

std::vector<FaultCase> layout_cases() {
  const SessionConfig six = block_cache(6, 4);
  SessionConfig separate = full_cache();
  separate.share_buffers = false;
  return {
      {"min_overflow_eviction", six, keys_after_staging, {3, 4, 5, 6, 7}, {2, 3, 4, 5, 6}},
      {"compaction_one_row_short", six, keys_after_compaction, {3, 4, 5, 6}, {3, 4, 2, 6}},
      {"compaction_skipped", six, keys_after_compaction, {3, 4, 5, 6}, {0, 1, 2, 6}},
      {"evicts_one_row_early",
       six,
       [](Sequence& s) {
         s.append({6});
         return s.keys(4);
       },
       {0, 1, 2, 3},
       {2, 3, 4, 5}},
      {"evicts_inside_window",
       six,
       [](Sequence& s) {
         s.append({8});
         return s.keys(4);
       },
       {3, 4, 5, 6},
       {4, 5, 6, 7}},
      {"ring_append", six, keys_after_compaction, {3, 4, 5, 6}, {6, 1, 2, 3}},
      {"values_not_compacted",
       six,
       [](Sequence& s) {
         s.append({6});
         s.append({1});
         return s.values(4);
       },
       {3, 4, 5, 6},
       {0, 1, 2, 6}},
      {"compaction_first_head_only",
       with(six, [](SessionConfig& c) { c.query_heads = c.kv_heads = 2; }),
       [](Sequence& s) {
         s.append({6});
         s.append({1});
         return s.keys(4, 0, 1);
       },
       {103, 104, 105, 106},
       {100, 101, 102, 106}},
      // Three rows move by two, newest first: row 2 is overwritten before row 0 reads it.
      {"compaction_copied_backward",
       block_cache(5, 4),
       [](Sequence& s) {
         s.append({5});
         s.append({1});
         return s.keys(4);
       },
       {2, 3, 4, 5},
       {4, 3, 4, 5}},
      {"value_stale_after_compaction",
       six,
       [](Sequence& s) {
         s.append({6});
         s.append({1});
         return s.values(4);
       },
       {3, 4, 5, 6},
       {2, 3, 4, 6}},
      {"separate_past_not_copied",
       separate,
       [](Sequence& s) {
         s.append({2});
         s.append({1});
         return s.keys(3);
       },
       {0, 1, 2},
       {0, 0, 2}},
      {"past_copied_one_row_short",
       separate,
       [](Sequence& s) {
         s.append({2});
         s.append({1});
         return s.keys(3);
       },
       {0, 1, 2},
       {0, 0, 2}},
      // The query at position 5 reads 2..5; position 2 is evicted by the step itself.
      {"staging_skipped",
       six,
       [](Sequence& s) {
         s.append({5});
         return s.append({2});
       },
       {3.5, 4.5},
       {4, 4.5}},
      {"write_back_oldest", six, keys_after_staging, {3, 4, 5, 6, 7}, {0, 1, 2, 3, 4}},
      {"write_back_one_row_early", six, keys_after_staging, {3, 4, 5, 6, 7}, {2, 3, 4, 5, 6}},
  };
}

std::vector<FaultCase> shared_memory_cases() {
  const SessionConfig six = block_cache(6, 4);
  return {
      {"staged_values_over_keys",
       six,
       [](Sequence& s) {
         attend(s, {8}, {8}, Numbers(8, 0), {0, 1, 2, 3, 4, 5, 6, 7},
                {50, 51, 52, 53, 54, 55, 56, 57});
         return s.keys(5);
       },
       {3, 4, 5, 6, 7},
       {53, 54, 55, 56, 57}},
      {"staging_shared_by_entries",
       with(six, [](SessionConfig& c) { c.batch = 2; }),
       [](Sequence& s) {
         s.append({8, 8});
         return s.keys(5);
       },
       {3, 4, 5, 6, 7},
       {1003, 1004, 1005, 1006, 1007}},
  };
}

/// Rows 0 and `row` after a token behind `row` others.
std::function<Numbers(Sequence&)> append_at(std::int64_t row) {
  return [row](Sequence& s) {
    s.load({row});
    s.append({1});
    const Numbers keys = s.keys(row + 1);
    return Numbers{keys[0], keys.back()};
  };
}

std::vector<FaultCase> width_cases() {
  const auto wide = [](std::int64_t rows) {
    return with(full_cache(), [&](SessionConfig& c) {
      c.head_size = c.value_head_size = 64;
      c.capacity = rows;
    });
  };
  return {
      {"row_in_four_bits",
       with(full_cache(), [](SessionConfig& c) { c.capacity = 20; }),
       append_at(16),
       {0, 16},
       {16, -7}},
      // Two rows of 64 f32 are 512 bytes.
      {"offset_in_nine_bits", wide(20), append_at(2), {0, 2}, {2, -7}},
      {"entry_offset_in_ten_bits",
       with(wide(16), [](SessionConfig& c) { c.batch = 2; }),
       [](Sequence& s) {
         s.append({1, 1});
         return Numbers{s.keys(1)[0], s.keys(1, 1)[0]};
       },
       {0, 1000},
       {1000, 0}},
      // Position 16 counts as 0, which sees row 0 alone.
      {"position_in_four_bits",
       with(full_cache(), [](SessionConfig& c) { c.capacity = 20; }),
       [](Sequence& s) {
         s.load({16});
         return s.append({1});
       },
       {8},
       {0}},
  };
}

std::vector<FaultCase> rollback_cases() {
  return {
      // Twelve tokens, drop three: refused, then {9..12}. Accepted: rows 9, 10, 11 pass for
      // 6, 7, 8 and the token of position 9 is 9.5.
      {"rollback_always_accepted",
       block_cache(6, 4),
       [](Sequence& s) {
         s.append({12});
         Numbers answer{s.rollback({3}) ? 1.0 : 0.0};
         answer.push_back(s.append({1})[0]);
         return answer;
       },
       {0, 10.5},
       {1, 9.875}},
      // 0, 1, 2, 3.5; one too many: 0, 1, 3.5; ignored: 0, 1, 2, 3, 3.5.
      {"rollback_one_too_many",
       full_cache(),
       [](Sequence& s) { return replace_one(s, 1); },
       {1.625},
       {1.5}},
      {"rollback_ignored",
       full_cache(),
       [](Sequence& s) { return replace_one(s, 1); },
       {1.625},
       {static_cast<float>(1.9)}},
      {"append_row_kept_by_rollback",
       full_cache(),
       [](Sequence& s) {
         replace_one(s, 2);
         return s.keys(5);
       },
       {0, 1, 2.5, 3, 0},
       {0, 1, 2, 3, 2.5}},
  };
}

std::vector<FaultCase> split_cases() {
  return {
      {"chunk_reversed",
       full_cache(),
       [](Sequence& s) {
         s.append({2});
         return s.keys(2);
       },
       {0, 1},
       {1, 0}},
      {"chunk_first_position",
       full_cache(),
       [](Sequence& s) { return s.append({3}); },
       {0, 0.5, 1},
       {0, 0, 0}},
  };
}

}  // namespace

std::vector<FaultCase> cache_fault_cases() {
  std::vector<FaultCase> cases;
  for (const auto& part : {length_cases(), layout_cases(), shared_memory_cases(), width_cases(),
                           rollback_cases(), split_cases()}) {
    cases.insert(cases.end(), part.begin(), part.end());
  }
  return cases;
}

}  // namespace kvcheck::kernels
