// Names, words and repair of scenarios.
#include "model/scenario.h"

#include <algorithm>

#include <fmt/format.h>

namespace kvcheck::model {
namespace {

std::string counts_text(const std::vector<std::int64_t>& counts) {
  if (counts.empty()) return "nothing";
  if (std::equal(counts.begin() + 1, counts.end(), counts.begin()))
    return fmt::format("{}", counts[0]);
  return fmt::format("[{}]", fmt::join(counts, ", "));
}

bool all_zero(const std::vector<std::int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [](std::int64_t n) { return n == 0; });
}

/// One value per batch entry, each at least 0; a short list repeats its last value.
void fit_to_batch(std::vector<std::int64_t>& counts, std::int64_t batch) {
  if (counts.empty()) counts.push_back(0);
  counts.resize(static_cast<std::size_t>(batch), counts.back());
  for (auto& n : counts) n = std::clamp<std::int64_t>(n, 0, kMaxLength);
}

void repair_shape(Scenario& s) {
  s.batch = std::max<std::int64_t>(1, s.batch);
  s.kv_heads = std::max<std::int64_t>(1, s.kv_heads);
  const std::int64_t group =
      std::max<std::int64_t>(1, (s.query_heads + s.kv_heads - 1) / s.kv_heads);
  s.query_heads = group * s.kv_heads;
  s.head_size = std::max<std::int64_t>(1, s.head_size);
  s.value_head_size = std::max<std::int64_t>(1, s.value_head_size);
  s.mask.rank = std::clamp(s.mask.rank, 2, 4);
  s.mask.hidden_percent = std::clamp(s.mask.hidden_percent, 0, 100);
  if (s.mask.kind == MaskKind::none) s.mask = {};
  if (s.fill.kind == FillKind::random || s.fill.kind == FillKind::needles) s.fill.index = 0;
}

void repair_for_operator(Scenario& s) {
  if (s.op == Operator::gqa) {
    s.opset = 1;
    s.value_head_size = s.head_size;
    s.causal = true;
    s.nonpad_kv_seqlen = false;
    s.mask = {};
  } else {
    s.opset = s.nonpad_kv_seqlen ? 24 : std::clamp(s.opset, 23, 24);
    s.cache.layout = LayoutKind::full;
    s.cache.window_size.reset();
    s.share_buffers = true;
    if (!s.nonpad_kv_seqlen) s.cache.capacity = 0;
  }
}

void repair_step(Scenario& s, Append& append) {
  fit_to_batch(append.tokens, s.batch);
  fit_to_batch(append.queries, s.batch);
  if (s.op == Operator::gqa) {
    if (!all_zero(append.queries)) append.queries = append.tokens;
  } else {
    append.queries.assign(append.queries.size(), append.queries.front());
    if (!s.nonpad_kv_seqlen) append.tokens.assign(append.tokens.size(), append.tokens.front());
  }
}

/// Steps in order with lengths kept: a rollback cannot take more than there is.
void repair_steps(Scenario& s) {
  std::vector<Step> kept;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(s.batch), 0);
  const bool equal_lengths = s.op == Operator::attention && !s.nonpad_kv_seqlen;
  for (Step& step : s.steps) {
    if (auto* append = std::get_if<Append>(&step)) {
      repair_step(s, *append);
      const bool idle = s.nonpad_kv_seqlen ? all_zero(append->tokens) && all_zero(append->queries)
                                           : all_zero(append->tokens);
      if (idle) continue;
      for (std::size_t b = 0; b < lengths.size(); ++b) lengths[b] += append->tokens[b];
    } else if (auto* past = std::get_if<Past>(&step)) {
      fit_to_batch(past->tokens, s.batch);
      if (equal_lengths) past->tokens.assign(past->tokens.size(), past->tokens.front());
      if (!kept.empty() || all_zero(past->tokens)) continue;
      lengths = past->tokens;
    } else {
      auto& tokens = std::get<Rollback>(step).tokens;
      fit_to_batch(tokens, s.batch);
      if (equal_lengths) tokens.assign(tokens.size(), tokens.front());
      for (std::size_t b = 0; b < lengths.size(); ++b) tokens[b] = std::min(tokens[b], lengths[b]);
      if (all_zero(tokens)) continue;
      for (std::size_t b = 0; b < lengths.size(); ++b) lengths[b] -= tokens[b];
    }
    kept.push_back(step);
  }
  s.steps = std::move(kept);
}

std::int64_t longest_length(const Scenario& s) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(s.batch), 0);
  std::int64_t longest = 0;
  for (const Step& step : s.steps) {
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      if (const auto* append = std::get_if<Append>(&step)) {
        lengths[b] += append->tokens[b];
      } else if (const auto* past = std::get_if<Past>(&step)) {
        lengths[b] = past->tokens[b];
      } else {
        lengths[b] -= std::get<Rollback>(step).tokens[b];
      }
      longest = std::max(longest, lengths[b]);
    }
  }
  return longest;
}

void repair_cache(Scenario& s) {
  CacheSpec& cache = s.cache;
  cache.capacity = std::clamp<std::int64_t>(cache.capacity, 0, kMaxLength);
  if (cache.window_size)
    cache.window_size = std::clamp<std::int64_t>(*cache.window_size, 1, kMaxLength);
  if (cache.layout == LayoutKind::block) {
    if (!cache.window_size) cache.window_size = std::max<std::int64_t>(1, cache.capacity);
    cache.capacity = std::max(cache.capacity, *cache.window_size);
  } else if (cache.capacity > 0 || s.nonpad_kv_seqlen) {
    cache.capacity = std::max<std::int64_t>({1, cache.capacity, longest_length(s)});
  }
}

}  // namespace

std::string Refusal::message() const { return fmt::format("{} = {}: {}", field, value, remedy); }

Scenario normalise(Scenario scenario) {
  repair_shape(scenario);
  repair_for_operator(scenario);
  repair_steps(scenario);
  repair_cache(scenario);
  return scenario;
}

std::string_view to_string(Operator op) { return op == Operator::gqa ? "gqa" : "attention"; }

std::string_view to_string(LayoutKind layout) {
  return layout == LayoutKind::full ? "full" : "block";
}

std::string_view to_string(FillKind kind) {
  switch (kind) {
    case FillKind::random:
      return "random";
    case FillKind::needles:
      return "needles";
    case FillKind::position_code:
      return "position_code";
    case FillKind::position_block:
      return "position_block";
  }
  return "?";
}

std::string_view to_string(Poison poison) {
  switch (poison) {
    case Poison::zero:
      return "zero";
    case Poison::finite:
      return "finite";
    case Poison::huge:
      return "huge";
    case Poison::nan:
      return "nan";
  }
  return "?";
}

std::string_view to_string(MaskKind kind) {
  switch (kind) {
    case MaskKind::none:
      return "none";
    case MaskKind::boolean:
      return "boolean";
    case MaskKind::additive:
      return "additive";
  }
  return "?";
}

std::string describe(const Step& step) {
  if (const auto* append = std::get_if<Append>(&step)) {
    std::string text = "append " + counts_text(append->tokens);
    if (append->queries != append->tokens) {
      const std::string queries = counts_text(append->queries);
      text += fmt::format(" ({} {})", queries == "0" ? "no" : queries,
                          queries == "1" ? "query" : "queries");
    }
    return text;
  }
  if (const auto* past = std::get_if<Past>(&step)) return "past " + counts_text(past->tokens);
  return "rollback " + counts_text(std::get<Rollback>(step).tokens);
}

}  // namespace kvcheck::model
