// Edits of a scenario's steps and entries: pure functions, the result not yet normalised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::shrinkers {

/// Tokens per entry that a step appends, puts in place or drops.
std::vector<std::int64_t>& tokens_of(model::Step& step);
const std::vector<std::int64_t>& tokens_of(const model::Step& step);

/// The largest count of any entry; 0 for an empty list.
std::int64_t largest(const std::vector<std::int64_t>& counts);

/// Sets the tokens of one entry. An append that asked a query for every token keeps doing so.
void set_tokens(model::Step& step, std::size_t entry, std::int64_t tokens);

/// Lowers every entry to at most `limit` tokens.
void cap_tokens(model::Step& step, std::int64_t limit);

/// lengths[i][b]: tokens that entry b holds before step i; one row more than steps.
std::vector<std::vector<std::int64_t>> lengths_before(const model::Scenario& scenario);

/// The longest length that any entry reaches.
std::int64_t longest_length(const model::Scenario& scenario);

/// Keeps the entries `keep`, with their own lengths. \pre keep ascending, not empty
model::Scenario keep_entries(model::Scenario scenario, const std::vector<std::size_t>& keep);

/// Without steps [first, first + count). Generations of later appends stay.
model::Scenario remove_steps(model::Scenario scenario, std::size_t first, std::size_t count);

/// The first `count` steps as one past of the length that they reach.
model::Scenario steps_to_past(const model::Scenario& scenario, std::size_t count);

/// Without rollback `index` and without the tokens that it drops, which are taken off the steps
/// before it; appends that are left with nothing go too. \pre step `index` is a rollback
model::Scenario cancel_rollback(model::Scenario scenario, std::size_t index);

/// Rollback `index` kept, and so many of the oldest tokens before it removed that it empties each
/// entry that it touches. \pre step `index` is a rollback
model::Scenario land_on_empty(model::Scenario scenario, std::size_t index);

/// Steps `index` and `index + 1` as one: two appends, a past and an append, two rollbacks. Empty
/// when they do not combine.
std::optional<model::Scenario> merge_steps(const model::Scenario& scenario, std::size_t index);

/// Number of appends whose generation is not the number of rollbacks before them.
std::int64_t other_generations(const model::Scenario& scenario);
model::Scenario default_generations(model::Scenario scenario);

/// Place of a fill on the way from simple (0) to complicated.
std::int64_t fill_rank(model::FillKind kind);

}  // namespace kvcheck::shrinkers
