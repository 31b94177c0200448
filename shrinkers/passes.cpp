// The passes in order, and the guided jump before them.
#include "shrinkers/passes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "shrinkers/edits.h"

namespace kvcheck::shrinkers {
namespace {

using model::Scenario;

constexpr std::array kPasses{
    Pass{"minima", one_shot_minima},
    Pass{"batch", shrink_batch},
    Pass{"kv_heads", shrink_kv_heads},
    Pass{"query_heads", shrink_query_heads},
    Pass{"head_size", shrink_head_size},
    Pass{"steps.cut_tail", cut_tail},
    Pass{"steps.to_past", lead_in_to_past},
    Pass{"steps.delete", delete_chunks},
    Pass{"steps.cancel_rollback", cancel_rollbacks},
    Pass{"steps.merge", merge_neighbours},
    Pass{"window", shrink_window},
    Pass{"capacity", shrink_capacity},
    Pass{"mask", shrink_mask},
    Pass{"flags", shrink_flags},
    Pass{"features", shrink_features},
    Pass{"values", shrink_values},
    Pass{"rollbacks", shrink_rollbacks},
    Pass{"tokens", shrink_tokens},
    Pass{"queries", shrink_queries},
    Pass{"coupled", shrink_coupled},
};

/// What a hint asks for, as far as it fits the scenario.
struct Jump {
  std::size_t steps;  ///< Steps to keep; all = no cut.
  std::optional<std::size_t> entry;
  std::optional<std::int64_t> group;  ///< Query heads of the KV group to keep.
};

Jump read_hint(const Scenario& s, const Hint& hint) {
  Jump jump{s.steps.size(), std::nullopt, std::nullopt};
  if (hint.step >= 0 && hint.step < static_cast<std::int64_t>(s.steps.size())) {
    jump.steps = static_cast<std::size_t>(hint.step) + 1;
  }
  if (hint.entry >= 0 && hint.entry < s.batch && s.batch > 1) {
    jump.entry = static_cast<std::size_t>(hint.entry);
  }
  if (hint.query_head >= 0 && hint.query_head < s.query_heads && s.kv_heads > 1) {
    jump.group = s.query_heads / s.kv_heads;
  }
  return jump;
}

void jump_once(Attempt& attempt, const char* name, const Jump& jump) {
  Scenario s = attempt.current();
  std::string words;
  if (jump.steps < s.steps.size()) {
    words = fmt::format("steps: cut after step {}", jump.steps - 1);
    s = remove_steps(s, jump.steps, s.steps.size() - jump.steps);
  }
  if (jump.entry && *jump.entry < static_cast<std::size_t>(s.batch)) {
    words += fmt::format("{}kept entry {}", words.empty() ? "" : ", ", *jump.entry);
    s = keep_entries(s, {*jump.entry});
  }
  if (jump.group) {
    s.kv_heads = 1;
    s.query_heads = *jump.group;
  }
  attempt.enter(name);
  attempt.propose(s, words);
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

void guided_jump(Attempt& attempt, const Hint& hint) {
  const Jump all = read_hint(attempt.current(), hint);
  const std::size_t before = attempt.trail().size();
  jump_once(attempt, "guided", all);
  if (attempt.trail().size() != before) return;
  const std::size_t every_step = attempt.current().steps.size();
  jump_once(attempt, "guided.step", {all.steps, std::nullopt, std::nullopt});
  jump_once(attempt, "guided.entry", {every_step, all.entry, std::nullopt});
  jump_once(attempt, "guided.heads", {every_step, std::nullopt, all.group});
}

}  // namespace kvcheck::shrinkers
