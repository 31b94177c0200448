// Edits of a scenario's steps and entries.
#include "shrinkers/edits.h"

#include <algorithm>
#include <variant>

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;
using model::Step;
using Counts = std::vector<std::int64_t>;

Counts kept(const Counts& counts, const std::vector<std::size_t>& keep) {
  Counts result;
  for (const std::size_t entry : keep) result.push_back(counts.at(entry));
  return result;
}

bool all_zero(const Counts& counts) { return largest(counts) == 0; }

void add(Counts& to, const Counts& more) {
  for (std::size_t b = 0; b < to.size() && b < more.size(); ++b) to[b] += more[b];
}

/// Takes `take` of the newest tokens that entry `entry` holds before step `end` off the steps
/// that brought them.
void take_newest(Scenario& s, std::size_t end, std::size_t entry, std::int64_t take) {
  std::int64_t dead = 0;  // Tokens already gone through a rollback in between.
  for (std::size_t i = end; i-- > 0 && take > 0;) {
    const std::int64_t tokens = tokens_of(s.steps[i])[entry];
    if (std::holds_alternative<Rollback>(s.steps[i])) {
      dead += tokens;
      continue;
    }
    const std::int64_t live = std::max<std::int64_t>(0, tokens - dead);
    dead = std::max<std::int64_t>(0, dead - tokens);
    const std::int64_t taken = std::min(take, live);
    set_tokens(s.steps[i], entry, tokens - taken);
    take -= taken;
  }
}

void drop_idle_steps(Scenario& s) {
  std::erase_if(s.steps, [](const Step& step) { return all_zero(tokens_of(step)); });
}

}  // namespace

Counts& tokens_of(Step& step) {
  return std::visit([](auto& any) -> Counts& { return any.tokens; }, step);
}

const Counts& tokens_of(const Step& step) {
  return std::visit([](const auto& any) -> const Counts& { return any.tokens; }, step);
}

std::int64_t largest(const Counts& counts) {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

void set_tokens(Step& step, std::size_t entry, std::int64_t tokens) {
  if (auto* append = std::get_if<Append>(&step)) {
    if (append->queries[entry] == append->tokens[entry]) append->queries[entry] = tokens;
  }
  tokens_of(step)[entry] = tokens;
}

void cap_tokens(Step& step, std::int64_t limit) {
  const Counts tokens = tokens_of(step);
  for (std::size_t b = 0; b < tokens.size(); ++b) set_tokens(step, b, std::min(tokens[b], limit));
}

std::vector<Counts> lengths_before(const Scenario& s) {
  std::vector<Counts> lengths(1, Counts(static_cast<std::size_t>(s.batch), 0));
  for (const Step& step : s.steps) {
    Counts next = lengths.back();
    const Counts& tokens = tokens_of(step);
    for (std::size_t b = 0; b < next.size(); ++b) {
      next[b] += std::holds_alternative<Rollback>(step) ? -tokens[b] : tokens[b];
    }
    lengths.push_back(std::move(next));
  }
  return lengths;
}

std::int64_t longest_length(const Scenario& s) {
  std::int64_t longest = 0;
  for (const Counts& lengths : lengths_before(s)) longest = std::max(longest, largest(lengths));
  return longest;
}

Scenario keep_entries(Scenario s, const std::vector<std::size_t>& keep) {
  s.batch = static_cast<std::int64_t>(keep.size());
  for (Step& step : s.steps) {
    tokens_of(step) = kept(tokens_of(step), keep);
    if (auto* append = std::get_if<Append>(&step)) append->queries = kept(append->queries, keep);
  }
  return s;
}

Scenario remove_steps(Scenario s, std::size_t first, std::size_t count) {
  const auto begin = s.steps.begin() + static_cast<std::ptrdiff_t>(first);
  s.steps.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  return s;
}

Scenario steps_to_past(const Scenario& s, std::size_t count) {
  const Counts lengths = lengths_before(s)[count];
  Scenario result = remove_steps(s, 0, count);
  if (!all_zero(lengths)) result.steps.insert(result.steps.begin(), Past{lengths});
  return result;
}

Scenario cancel_rollback(Scenario s, std::size_t index) {
  const Counts dropped = tokens_of(s.steps[index]);
  for (std::size_t b = 0; b < dropped.size(); ++b) take_newest(s, index, b, dropped[b]);
  s = remove_steps(std::move(s), index, 1);
  drop_idle_steps(s);
  return s;
}

Scenario land_on_empty(Scenario s, std::size_t index) {
  const Counts lengths = lengths_before(s)[index];
  const Counts dropped = tokens_of(s.steps[index]);
  for (std::size_t b = 0; b < dropped.size(); ++b) {
    if (dropped[b] == 0) continue;
    std::int64_t surplus = lengths[b] - dropped[b];
    for (std::size_t i = 0; i < index && surplus > 0; ++i) {
      if (std::holds_alternative<Rollback>(s.steps[i])) break;  // Oldest run of appends only.
      const std::int64_t tokens = tokens_of(s.steps[i])[b];
      const std::int64_t taken = std::min(tokens, surplus);
      set_tokens(s.steps[i], b, tokens - taken);
      surplus -= taken;
    }
  }
  drop_idle_steps(s);
  return s;
}

std::optional<Scenario> merge_steps(const Scenario& s, std::size_t index) {
  if (index + 1 >= s.steps.size()) return std::nullopt;
  Step merged = s.steps[index];
  const Step& next = s.steps[index + 1];
  if (auto* rollback = std::get_if<Rollback>(&merged)) {
    if (!std::holds_alternative<Rollback>(next)) return std::nullopt;
    add(rollback->tokens, tokens_of(next));
  } else {
    const auto* second = std::get_if<Append>(&next);
    if (!second) return std::nullopt;
    Append append = *second;
    add(append.tokens, tokens_of(merged));
    const auto* first = std::get_if<Append>(&merged);
    if (s.op == model::Operator::gqa) {
      // gqa asks a query for every token of a step or none at all.
      const bool asks = !all_zero(append.queries) || (first && !all_zero(first->queries));
      if (asks) append.queries = append.tokens;
    } else if (first) {
      add(append.queries, first->queries);
    }
    merged = append;
  }
  Scenario result = remove_steps(s, index, 1);
  result.steps[index] = std::move(merged);
  return result;
}

std::int64_t other_generations(const Scenario& s) {
  std::int64_t rollbacks = 0, others = 0;
  for (const Step& step : s.steps) {
    if (std::holds_alternative<Rollback>(step)) ++rollbacks;
    if (const auto* append = std::get_if<Append>(&step)) others += append->generation != rollbacks;
  }
  return others;
}

Scenario default_generations(Scenario s) {
  std::int64_t rollbacks = 0;
  for (Step& step : s.steps) {
    if (std::holds_alternative<Rollback>(step)) ++rollbacks;
    if (auto* append = std::get_if<Append>(&step)) append->generation = rollbacks;
  }
  return s;
}

}  // namespace kvcheck::shrinkers
