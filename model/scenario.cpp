// Names, words and repair of scenarios.
#include "model/scenario.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/layout.h"
#include "model/literal.h"
#include "model/scenario_features.h"

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

/// One value per batch entry, each in [0, most]; a short list repeats its last value.
void fit_to_batch(std::vector<std::int64_t>& counts, std::int64_t batch, std::int64_t most) {
  if (counts.empty()) counts.push_back(0);
  counts.resize(static_cast<std::size_t>(batch), counts.back());
  for (auto& n : counts) n = std::clamp<std::int64_t>(n, 0, most);
}

void repair_shape(Scenario& s) {
  const auto clip = [](std::int64_t n) { return std::clamp<std::int64_t>(n, 1, kMaxShape); };
  s.batch = clip(s.batch);
  s.kv_heads = clip(s.kv_heads);
  // Up to the next multiple of kv_heads, unless that passes the limit.
  const std::int64_t group =
      std::min((clip(s.query_heads) + s.kv_heads - 1) / s.kv_heads, kMaxShape / s.kv_heads);
  s.query_heads = group * s.kv_heads;
  s.head_size = clip(s.head_size);
  s.value_head_size = s.op == Operator::gqa ? s.head_size : clip(s.value_head_size);
  // A row of one batch entry is at most kMaxShape^2 elements, so some batch always fits.
  s.batch =
      std::min(s.batch, kMaxElements / (s.query_heads * std::max(s.head_size, s.value_head_size)));
}

void repair_for_operator(Scenario& s) {
  if (s.op == Operator::gqa) {
    s.opset = 1;
    s.nonpad_kv_seqlen = false;
  } else {
    s.opset = std::clamp(s.opset, s.nonpad_kv_seqlen ? 24 : 23, 25);
    s.cache.layout = LayoutKind::full;
    s.share_buffers = true;
    if (!s.nonpad_kv_seqlen) s.cache.capacity = 0;
  }
}

/// Most tokens of a sequence whose cache keeps them all in at most `rows` rows, or else at all.
std::int64_t longest_allowed(const CacheSpec& cache, std::int64_t rows) {
  if (!keeps_every_token(cache)) return kMaxLength;
  return cache.layout == LayoutKind::paged ? rows / cache.page_size * cache.page_size : rows;
}

std::int64_t whole_pages(std::int64_t rows, std::int64_t page_size) {
  return (rows + page_size - 1) / page_size * page_size;
}

/// Sizes of an evicting layout such that its least capacity is at most `rows`.
void repair_layout(CacheSpec& cache, std::int64_t rows) {
  const bool paged = cache.layout == LayoutKind::paged;
  const bool sinks = cache.layout == LayoutKind::sinks;
  cache.sink_tokens = sinks ? std::clamp<std::int64_t>(cache.sink_tokens, 0, rows - 1) : 0;
  cache.page_size = paged ? std::clamp<std::int64_t>(cache.page_size, 1, rows) : 0;
  if (cache.layout == LayoutKind::full) return;
  if (!paged && !cache.window_size) cache.window_size = cache.capacity - cache.sink_tokens;
  if (cache.window_size) {
    // One page of them all may be cut by the oldest position of the window.
    const std::int64_t most =
        paged ? (rows / cache.page_size - 1) * cache.page_size + 1 : rows - cache.sink_tokens;
    cache.window_size = std::clamp<std::int64_t>(*cache.window_size, 1, most);
  }
  cache.capacity = std::max(cache.capacity, least_capacity(cache));
  if (paged) {
    cache.capacity = std::min(whole_pages(cache.capacity, cache.page_size),
                              rows / cache.page_size * cache.page_size);
  }
}

/// Window and capacity within the limits; a buffer that keeps every token is raised to the
/// lengths later.
void repair_cache(Scenario& s) {
  CacheSpec& cache = s.cache;
  const std::int64_t rows = max_rows(s);
  cache.capacity = std::clamp<std::int64_t>(cache.capacity, 0, rows);
  if (cache.window_size) {
    const std::int64_t least = cache.layout == LayoutKind::full && s.op == Operator::gqa ? 0 : 1;
    cache.window_size = std::clamp<std::int64_t>(*cache.window_size, least, kMaxLength);
  }
  repair_layout(cache, rows);
}

/// Steps put in order one after the other, with the lengths that they lead to.
class StepRepair {
 public:
  explicit StepRepair(Scenario& scenario)
      : s_(scenario),
        equal_lengths_(scenario.op == Operator::attention && !scenario.nonpad_kv_seqlen),
        widest_(max_rows(scenario)),
        longest_allowed_(longest_allowed(scenario.cache, widest_)),
        lengths_(static_cast<std::size_t>(scenario.batch), 0) {}

  void run() {
    const auto most = static_cast<std::size_t>(kMaxStepEntries / s_.batch);
    if (s_.steps.size() > most) s_.steps.resize(most);
    std::vector<Step> kept;
    for (Step& step : s_.steps) {
      const bool wanted = std::visit([&](auto& s) { return repair(s, kept.empty()); }, step);
      if (!wanted) continue;
      longest_ = std::max(longest_, *std::max_element(lengths_.begin(), lengths_.end()));
      kept.push_back(std::move(step));
    }
    s_.steps = std::move(kept);
    if (s_.steps.empty()) add_one_token();
    CacheSpec& cache = s_.cache;
    if (!keeps_every_token(cache) || (cache.capacity == 0 && !s_.nonpad_kv_seqlen)) return;
    cache.capacity = std::max<std::int64_t>({1, cache.capacity, longest_});
    if (cache.layout == LayoutKind::paged)
      cache.capacity = whole_pages(cache.capacity, cache.page_size);
  }

 private:
  void fit(std::vector<std::int64_t>& counts, std::int64_t most, bool equal) const {
    fit_to_batch(counts, s_.batch, most);
    if (equal) counts.assign(counts.size(), counts.front());
  }

  /// False when the step does nothing and is to be left out.
  bool repair(Append& append, bool) {
    fit(append.tokens, widest_, equal_lengths_);
    fit(append.queries, widest_, s_.op == Operator::attention);
    append.generation = std::max<std::int64_t>(0, append.generation);
    const bool even_before = even(lengths_);
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      append.tokens[b] = std::min(append.tokens[b], longest_allowed_ - lengths_[b]);
      lengths_[b] += append.tokens[b];
    }
    const bool only_asks = all_zero(append.tokens) && !all_zero(append.queries);
    if (s_.op == Operator::gqa && only_asks) {
      fit_shared_kv(append.queries);
    } else if (s_.op == Operator::gqa && !all_zero(append.queries)) {
      append.queries = append.tokens;
    }
    if (s_.mask.kind != MaskKind::none && !(even_before && even(lengths_))) {
      if (s_.mask.rank > 1 && !s_.mask.one_query) s_.mask.rank = 4, s_.mask.one_entry = false;
    }
    if (!all_zero(append.tokens)) {
      fit_columns();
      return true;
    }
    if (all_zero(append.queries)) return false;
    if (!s_.nonpad_kv_seqlen && lengths_.front() == 0) return false;
    fit_columns();
    return true;
  }

  static bool even(const std::vector<std::int64_t>& counts) {
    return std::equal(counts.begin() + 1, counts.end(), counts.begin());
  }

  /// The same number of queries for all, each of a token that is there; none where that cannot be.
  void fit_shared_kv(std::vector<std::int64_t>& queries) const {
    const bool can = s_.cache.layout == LayoutKind::full && !s_.packed_qkv;
    const std::int64_t shortest = *std::min_element(lengths_.begin(), lengths_.end());
    const std::int64_t asked = *std::max_element(queries.begin(), queries.end());
    queries.assign(queries.size(), can ? std::min(asked, shortest) : 0);
  }

  void fit_columns() {
    std::int64_t& missing = s_.mask.missing_columns;
    if (missing == 0) return;
    const std::int64_t longest = *std::max_element(lengths_.begin(), lengths_.end());
    const std::int64_t spare = s_.nonpad_kv_seqlen ? s_.cache.capacity - longest : longest - 1;
    missing = std::clamp<std::int64_t>(missing, 0, std::max<std::int64_t>(0, spare));
  }

  bool repair(Past& past, bool first) {
    fit(past.tokens, longest_allowed_, equal_lengths_);
    if (!first || all_zero(past.tokens)) return false;
    lengths_ = past.tokens;
    return true;
  }

  bool repair(Rollback& rollback, bool) {
    fit(rollback.tokens, kMaxLength, equal_lengths_);
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      rollback.tokens[b] = std::min(rollback.tokens[b], lengths_[b]);
      lengths_[b] -= rollback.tokens[b];
    }
    return !all_zero(rollback.tokens);
  }

  void add_one_token() {
    const std::vector<std::int64_t> one(lengths_.size(), 1);
    s_.steps.push_back(Append{one, one, 0});
    longest_ = 1;
    lengths_ = one;
    fit_columns();
  }

  Scenario& s_;
  bool equal_lengths_;
  std::int64_t widest_;
  std::int64_t longest_allowed_;
  std::vector<std::int64_t> lengths_;
  std::int64_t longest_ = 0;
};

}  // namespace

std::string Refusal::message() const { return fmt::format("{} = {}: {}", field, value, remedy); }

Scenario normalise(Scenario scenario) {
  repair_shape(scenario);
  repair_for_operator(scenario);
  repair_features(scenario);
  repair_cache(scenario);
  StepRepair(scenario).run();
  if (!mask_fits(scenario)) scenario.mask = {};
  fit_literals(scenario);
  return scenario;
}

std::string_view to_string(Operator op) { return op == Operator::gqa ? "gqa" : "attention"; }

std::string_view to_string(LayoutKind layout) {
  switch (layout) {
    case LayoutKind::full:
      return "full";
    case LayoutKind::block:
      return "block";
    case LayoutKind::min_overflow:
      return "min_overflow";
    case LayoutKind::ring:
      return "ring";
    case LayoutKind::sinks:
      return "sinks";
    case LayoutKind::paged:
      return "paged";
  }
  return "?";
}

std::string_view to_string(QuantisationKind kind) {
  switch (kind) {
    case QuantisationKind::none:
      return "none";
    case QuantisationKind::int8:
      return "int8";
    case QuantisationKind::int4:
      return "int4";
    case QuantisationKind::fp8:
      return "fp8";
  }
  return "?";
}

std::string_view to_string(QkOutput output) {
  switch (output) {
    case QkOutput::none:
      return "none";
    case QkOutput::raw:
      return "raw";
    case QkOutput::softcapped:
      return "softcapped";
    case QkOutput::biased:
      return "biased";
    case QkOutput::probabilities:
      return "probabilities";
  }
  return "?";
}

bool is_position_fill(FillKind kind) {
  return kind == FillKind::position_code || kind == FillKind::position_block ||
         kind == FillKind::position_digits;
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
    case FillKind::position_digits:
      return "position_digits";
    case FillKind::extreme:
      return "extreme";
    case FillKind::ties:
      return "ties";
    case FillKind::cancelling:
      return "cancelling";
    case FillKind::selection:
      return "selection";
    case FillKind::integers:
      return "integers";
    case FillKind::literal:
      return "literal";
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
