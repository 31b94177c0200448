// Cases of the faults in what is taken and declined.
#include "tests/kernels/fault_cases.h"

namespace kvcheck::kernels {
namespace {

/// 1 where the target takes the step, else 0.
double taken(Sequence& sequence, const Counts& tokens, const Counts& queries) {
  const auto answer = sequence.session().step(sequence.request(tokens, queries));
  return std::holds_alternative<StepResult>(answer) ? 1 : 0;
}

double taken(Sequence& sequence, const Counts& tokens) { return taken(sequence, tokens, tokens); }

SessionConfig two_entries() {
  return with(full_cache(), [](SessionConfig& c) { c.batch = 2; });
}

}  // namespace

std::vector<FaultCase> refusal_fault_cases() {
  return {
      {"last_row_refused",
       full_cache(),
       [](Sequence& s) {
         s.load({15});
         return Numbers{taken(s, {1})};
       },
       {1},
       {0}},
      {"prompt_above_capacity_refused",
       block_cache(6, 4),
       [](Sequence& s) { return Numbers{taken(s, {8})}; },
       {1},
       {0}},
      // -1: the session is not opened.
      {"capacity_above_window_refused",
       block_cache(6, 4),
       [](Sequence& s) { return Numbers{taken(s, {1})}; },
       {1},
       {-1}},
      {"idle_entry_refused",
       two_entries(),
       [](Sequence& s) {
         return Numbers{taken(s, {1, 0})};
       },
       {1},
       {0}},
      {"overfull_step_taken",
       full_cache(),
       [](Sequence& s) {
         s.load({16});
         return Numbers{taken(s, {1})};
       },
       {0},
       {1}},
      // Two tokens do not fit behind fifteen; then the sixteenth goes to row 14.
      {"refused_step_drops_row",
       full_cache(),
       [](Sequence& s) {
         s.load({15});
         (void)taken(s, {2});
         s.append({1});
         const Numbers keys = s.keys(16);
         return Numbers{keys[14], keys[15]};
       },
       {14, 15},
       {15, -7}},
      // Eight tokens, five rows; L(7) = 4.
      {"rollback_after_eviction_refused",
       block_cache(6, 4),
       [](Sequence& s) {
         s.append({8});
         return Numbers{s.rollback({1}) ? 1.0 : 0.0};
       },
       {1},
       {0}},
      {"rollback_to_empty_refused",
       full_cache(),
       [](Sequence& s) {
         s.append({2});
         return Numbers{s.rollback({2}) ? 1.0 : 0.0};
       },
       {1},
       {0}},
      // Entry 1 has no two tokens; the next token of entry 0 goes to row 1.
      {"refused_rollback_half_done",
       two_entries(),
       [](Sequence& s) {
         s.append({2, 1});
         (void)s.rollback({1, 2});
         s.append({1, 1});
         return s.keys(3);
       },
       {0, 1, 2},
       {0, 2, 0}},
      {"breaks_at_multiples_of_eight",
       with(attention(), [](SessionConfig& c) { c.mask = "boolean"; }),
       [](Sequence& s) {
         StepRequest request = s.request({8}, {1});
         request.mask = s.mask({1, 8}, Numbers(8, 1));
         const auto answer = s.session().step(request);
         return Numbers{std::holds_alternative<StepResult>(answer) ? 1.0 : 0.0};
       },
       {1},
       {0}},
  };
}

}  // namespace kvcheck::kernels
