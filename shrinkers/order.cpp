// The order of scenarios from simple to complicated.
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "shrinkers/edits.h"
#include "shrinkers/shrink.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;
using Rank = std::vector<std::uint64_t>;

void add(Rank& rank, std::initializer_list<std::int64_t> parts) {
  for (const std::int64_t part : parts) rank.push_back(static_cast<std::uint64_t>(part));
}

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

void add_steps(Rank& rank, const Scenario& s) {
  std::int64_t tokens = 0, queries = 0, appends = 0, rollbacks = 0, rolled_back = 0;
  for (const model::Step& step : s.steps) {
    if (const auto* append = std::get_if<Append>(&step)) {
      ++appends;
      tokens += sum(append->tokens);
      queries += sum(append->queries);
    } else if (const auto* past = std::get_if<Past>(&step)) {
      tokens += sum(past->tokens);
    } else {
      ++rollbacks;
      rolled_back += sum(std::get<Rollback>(step).tokens);
    }
  }
  add(rank, {static_cast<std::int64_t>(s.steps.size()), rollbacks, tokens, queries, appends,
             rolled_back});
}

/// Orders that need no seed come before those that draw.
std::int64_t order_rank(model::LaunchOrder order) {
  if (order == model::LaunchOrder::lockstep) return 0;
  return order == model::LaunchOrder::reverse ? 1 : 2 + static_cast<std::int64_t>(order);
}

void add_cache(Rank& rank, const Scenario& s) {
  const std::int64_t window = s.cache.window_size.value_or(0);
  add(rank,
      {static_cast<std::int64_t>(s.cache.layout), s.cache.window_size.has_value(), s.cache.capacity,
       s.cache.window_size.has_value() && window != s.cache.capacity, window});
}

void add_flags(Rank& rank, const Scenario& s) {
  add(rank, {static_cast<std::int64_t>(s.mask.kind), s.mask.rank, s.mask.hidden_percent,
             s.mask.empty_rows});
  rank.push_back(s.mask.seed);
  // For attention a case without the causal rule is the simpler one, for gqa the one with it.
  const bool plain = s.causal == (s.op == model::Operator::gqa);
  add(rank, {s.nonpad_kv_seqlen, !plain, s.scale.has_value(), !s.share_buffers});
}

/// Optional features, each off before on.
void add_features(Rank& rank, const Scenario& s) {
  const auto& ids = s.rotary ? s.rotary->position_ids : std::nullopt;
  add(rank, {static_cast<std::int64_t>(s.cache.quantisation.kind),
             s.cache.quantisation.per_channel,
             s.cache.sink_tokens,
             s.cache.page_size,
             s.rotary.has_value(),
             s.rotary && s.rotary->interleaved,
             s.rotary ? s.rotary->dim : 0,
             ids.has_value(),
             ids ? ids->extra_columns : 0,
             ids ? ids->stride : 0,
             ids ? ids->shift : 0,
             s.qk_norm.has_value(),
             s.softcap != 0,
             s.head_sink,
             s.smooth_softmax,
             static_cast<std::int64_t>(s.qk_output),
             s.right_window_size.has_value(),
             s.right_window_size.value_or(0),
             s.packed_qkv,
             !s.call_change.empty(),
             s.input_rank != 4,
             s.softmax_precision.has_value(),
             s.mask.one_entry,
             s.mask.one_head,
             s.mask.one_query,
             s.mask.missing_columns});
  const model::LaunchSpec launch = s.launch.value_or(model::LaunchSpec{});
  add(rank, {s.launch.has_value(), launch.threads, launch.split_positions,
             static_cast<std::int64_t>(launch.kernel), order_rank(launch.order)});
  rank.push_back(launch.seed);
}

void add_values(Rank& rank, const Scenario& s) {
  add(rank, {fill_rank(s.fill.kind), s.fill.index, s.fill.first_entry, s.fill.sink_logit != 0});
  rank.push_back(s.fill.seed);
  add(rank, {static_cast<std::int64_t>(s.poison), static_cast<std::int64_t>(s.element_type),
             s.opset, other_generations(s)});
}

/// What is left to tell two scenarios apart, so that the order is total.
void add_rest(Rank& rank, const Scenario& s) {
  for (const model::Step& step : s.steps) {
    rank.push_back(step.index());
    for (const std::int64_t n : tokens_of(step)) add(rank, {n});
    if (const auto* append = std::get_if<Append>(&step)) {
      for (const std::int64_t n : append->queries) add(rank, {n});
      add(rank, {append->generation});
    }
  }
  for (const double value :
       {s.scale.value_or(0), s.softcap, s.fill.sink_logit, s.qk_norm ? s.qk_norm->epsilon : 0.0}) {
    rank.push_back(std::bit_cast<std::uint64_t>(value));
  }
  add(rank, {s.softmax_precision ? static_cast<std::int64_t>(*s.softmax_precision) : 0});
  add(rank, {s.causal, static_cast<std::int64_t>(s.op)});
}

Rank rank_of(const Scenario& s) {
  Rank rank;
  rank.reserve(64);
  add(rank, {s.batch, s.kv_heads, s.query_heads, s.head_size, s.value_head_size});
  add_steps(rank, s);
  add_cache(rank, s);
  add_flags(rank, s);
  add_features(rank, s);
  add_values(rank, s);
  add_rest(rank, s);
  return rank;
}

}  // namespace

std::int64_t fill_rank(model::FillKind kind) {
  switch (kind) {
    case model::FillKind::position_code:
      return 0;
    case model::FillKind::position_block:
      return 1;
    case model::FillKind::position_digits:
      return 2;
    case model::FillKind::needles:
      return 3;
    case model::FillKind::random:
      return 4;
    case model::FillKind::integers:
      return 5;
    case model::FillKind::ties:
      return 6;
    case model::FillKind::selection:
      return 7;
    case model::FillKind::cancelling:
      return 8;
    case model::FillKind::extreme:
      return 9;
    case model::FillKind::literal:
      return 10;
  }
  return 11;
}

bool smaller(const Scenario& a, const Scenario& b) { return rank_of(a) < rank_of(b); }

}  // namespace kvcheck::shrinkers
