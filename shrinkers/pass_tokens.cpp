// Passes over the numbers of single steps: tokens, rollback depths, queries.
#include <algorithm>
#include <variant>

#include "shrinkers/edits.h"
#include "shrinkers/passes.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Rollback;
using model::Scenario;

/// The longest count of step `index`, lowered by clipping every entry to it.
Number step_tokens(std::size_t index) {
  return {[index](const Scenario& s) {
            return index < s.steps.size() ? largest(tokens_of(s.steps[index])) : 0;
          },
          [index](Scenario& s, std::int64_t limit) { cap_tokens(s.steps[index], limit); }};
}

Number entry_tokens(std::size_t index, std::size_t entry) {
  return {[index, entry](const Scenario& s) {
            return index < s.steps.size() ? tokens_of(s.steps[index])[entry] : 0;
          },
          [index, entry](Scenario& s, std::int64_t tokens) {
            set_tokens(s.steps[index], entry, tokens);
          }};
}

void lower_step(Attempt& attempt, std::size_t index) {
  lower(attempt, step_tokens(index), 1);
  const auto batch = static_cast<std::size_t>(attempt.current().batch);
  if (batch == 1) return;
  for (std::size_t entry = 0; entry < batch; ++entry) {
    lower(attempt, entry_tokens(index, entry), 0);
  }
}

bool is_rollback(const Attempt& attempt, std::size_t index) {
  const Scenario& s = attempt.current();
  return index < s.steps.size() && std::holds_alternative<Rollback>(s.steps[index]);
}

/// Makes rollback `index` leave at most `length` tokens, if that is a shorter rollback.
void propose_landing(Attempt& attempt, std::size_t index, std::int64_t length) {
  Scenario s = attempt.current();
  const auto before = lengths_before(s)[index];
  auto& tokens = tokens_of(s.steps[index]);
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    tokens[b] = std::min(tokens[b], std::max<std::int64_t>(0, before[b] - length));
  }
  attempt.propose(s);
}

Number step_queries(std::size_t index) {
  return {[index](const Scenario& s) -> std::int64_t {
            if (index >= s.steps.size()) return 0;
            const auto* append = std::get_if<Append>(&s.steps[index]);
            return append ? largest(append->queries) : 0;
          },
          [index](Scenario& s, std::int64_t limit) {
            auto& queries = std::get<Append>(s.steps[index]).queries;
            for (auto& n : queries) n = std::min(n, limit);
          }};
}

/// Caps the queries of every append before step `end`.
Scenario cap_queries(Scenario s, std::size_t end, std::int64_t limit) {
  for (std::size_t i = 0; i < end; ++i) {
    if (std::holds_alternative<Append>(s.steps[i])) step_queries(i).write(s, limit);
  }
  return s;
}

}  // namespace

void shrink_rollbacks(Attempt& attempt) {
  for (std::size_t i = attempt.current().steps.size(); i-- > 0;) {
    if (!is_rollback(attempt, i)) continue;
    attempt.propose(land_on_empty(attempt.current(), i));
    if (!is_rollback(attempt, i)) continue;
    if (const auto window = attempt.current().cache.window_size) {
      propose_landing(attempt, i, *window);
      if (is_rollback(attempt, i)) propose_landing(attempt, i, *window - 1);
    }
    if (is_rollback(attempt, i)) lower_step(attempt, i);
  }
}

void shrink_tokens(Attempt& attempt) {
  Scenario ones = attempt.current();
  for (model::Step& step : ones.steps) cap_tokens(step, 1);
  attempt.propose(ones);
  for (std::size_t i = 0; i < attempt.current().steps.size(); ++i) {
    if (!is_rollback(attempt, i)) lower_step(attempt, i);
  }
}

void shrink_queries(Attempt& attempt) {
  const std::size_t count = attempt.current().steps.size();
  // Only the last step asks; then every step asks once at most.
  attempt.propose(cap_queries(attempt.current(), count - 1, 0));
  if (attempt.current().op == model::Operator::attention) {
    attempt.propose(cap_queries(attempt.current(), attempt.current().steps.size(), 1));
  }
  for (std::size_t i = 0; i < attempt.current().steps.size(); ++i) {
    if (attempt.current().op == model::Operator::attention) {
      lower(attempt, step_queries(i), 0);
    } else if (step_queries(i).read(attempt.current()) > 0) {
      Scenario silent = attempt.current();
      step_queries(i).write(silent, 0);
      attempt.propose(silent);
    }
  }
}

}  // namespace kvcheck::shrinkers
