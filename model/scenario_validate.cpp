// The rules that a scenario must keep, one refusal for each that it breaks.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/layout.h"
#include "model/refusal_collector.h"
#include "model/scenario.h"
#include "model/scenario_features.h"

namespace kvcheck::model {
namespace {

class Checker : private RefusalCollector {
 public:
  explicit Checker(const Scenario& scenario) : s_(scenario) {}

  std::vector<Refusal> run() {
    check_shape();
    if (s_.op == Operator::gqa) {
      check_gqa();
    } else {
      check_attention();
    }
    check_cache_layout();
    for (Refusal& refusal : feature_refusals(s_)) refusals_.push_back(std::move(refusal));
    // Later checks index lists by entry, so they need the shape to be sound.
    if (refusals_.empty()) check_steps();
    if (refusals_.empty()) check_size();
    if (refusals_.empty()) check_mask_size();
    if (refusals_.empty()) refusals_ = literal_refusals(s_);
    return std::move(refusals_);
  }

 private:
  void require_count(std::string_view field, std::int64_t value) {
    require(value >= 1 && value <= kMaxShape, field, value, "must be between 1 and {}", kMaxShape);
  }

  void check_shape() {
    require_count("batch", s_.batch);
    require_count("query_heads", s_.query_heads);
    require_count("kv_heads", s_.kv_heads);
    require_count("head_size", s_.head_size);
    require_count("value_head_size", s_.value_head_size);
    if (refusals_.empty()) {
      require(s_.query_heads % s_.kv_heads == 0, "query_heads", s_.query_heads,
              "must be a multiple of kv_heads ({})", s_.kv_heads);
    }
    require(!s_.steps.empty(), "steps", "[]", "must hold at least one step");
    if (refusals_.empty()) {
      const std::int64_t most = kMaxStepEntries / s_.batch;
      require(static_cast<std::int64_t>(s_.steps.size()) <= most, "steps", s_.steps.size(),
              "must be at most {} steps with batch {}; remove steps", most, s_.batch);
    }
    require(s_.cache.capacity >= 0 && s_.cache.capacity <= kMaxLength, "cache.capacity",
            s_.cache.capacity, "must be between 0 (as large as needed) and {}", kMaxLength);
    if (s_.cache.window_size) {
      require(*s_.cache.window_size >= 0 && *s_.cache.window_size <= kMaxLength,
              "cache.window_size", *s_.cache.window_size,
              "must be between 0 (no key at all) and {}; leave it out for no window", kMaxLength);
    }
  }

  void check_gqa() {
    require(s_.opset == 1, "opset", s_.opset, "must be 1 for gqa");
    require(s_.value_head_size == s_.head_size, "value_head_size", s_.value_head_size,
            "must equal head_size ({}) for gqa", s_.head_size);
    require(!s_.nonpad_kv_seqlen, "nonpad_kv_seqlen", s_.nonpad_kv_seqlen,
            "belongs to the attention operator; leave it out for gqa");
  }

  /// Layouts beside full are gqa's; check_attention refuses them there.
  void check_cache_layout() {
    const CacheSpec& cache = s_.cache;
    const auto name = to_string(cache.layout);
    const bool sinks = cache.layout == LayoutKind::sinks;
    const bool paged = cache.layout == LayoutKind::paged;
    require(sinks || cache.sink_tokens == 0, "cache.sink_tokens", cache.sink_tokens,
            "belongs to layout sinks; leave it out for {}", name);
    require(paged || cache.page_size == 0, "cache.page_size", cache.page_size,
            "belongs to layout paged; leave it out for {}", name);
    if (s_.op != Operator::gqa || cache.layout == LayoutKind::full) return;
    const std::size_t before = refusals_.size();
    if (cache.window_size) {
      require(*cache.window_size != 0, "cache.window_size", 0, "must be at least 1 for layout {}",
              name);
    } else {
      require(paged, "cache.window_size", "absent", "must be given for layout {}", name);
    }
    require(cache.sink_tokens >= 0 && cache.sink_tokens <= kMaxLength, "cache.sink_tokens",
            cache.sink_tokens, "must be between 0 and {}", kMaxLength);
    require(!paged || (cache.page_size >= 1 && cache.page_size <= kMaxLength), "cache.page_size",
            cache.page_size, "must be between 1 and {} for layout paged", kMaxLength);
    if (refusals_.size() == before) check_layout_capacity();
  }

  void check_layout_capacity() {
    const CacheSpec& cache = s_.cache;
    const std::int64_t window = cache.window_size.value_or(0);
    if (window < 0 || window > kMaxLength) return;  // check_shape says so.
    if (cache.layout == LayoutKind::paged) {
      require(cache.capacity % cache.page_size == 0, "cache.capacity", cache.capacity,
              "must be a multiple of page_size ({})", cache.page_size);
    }
    if (cache.capacity >= least_capacity(cache)) return;
    std::string sizes = fmt::format("window_size ({})", window);
    std::string lower = "lower the window";
    if (cache.layout == LayoutKind::sinks) {
      sizes = fmt::format("sink_tokens + window_size ({})", least_capacity(cache));
      lower = "lower one of them";
    } else if (cache.layout == LayoutKind::paged) {
      sizes = fmt::format("the pages that {} touches at any alignment ({} rows)",
                          cache.window_size ? "a " + sizes : "one token", least_capacity(cache));
      lower = "lower page_size";
    }
    require(false, "cache.capacity", cache.capacity, "must be at least {}; raise it or {}", sizes,
            lower);
  }

  void check_attention() {
    require(s_.opset >= 23 && s_.opset <= 25, "opset", s_.opset,
            "must be 23, 24 or 25 for attention");
    require(s_.cache.layout == LayoutKind::full, "cache.layout", to_string(s_.cache.layout),
            "must be full for attention");
    require(s_.share_buffers, "share_buffers", s_.share_buffers,
            "belongs to gqa; leave it out for attention");
    if (s_.nonpad_kv_seqlen) {
      require(s_.opset >= 24, "opset", s_.opset, "must be at least 24 with nonpad_kv_seqlen");
      require(s_.cache.capacity >= 1, "cache.capacity", s_.cache.capacity,
              "must be given with nonpad_kv_seqlen: it is the length of K and V");
    } else {
      require(s_.cache.capacity == 0, "cache.capacity", s_.cache.capacity,
              "must be left out: attention without nonpad_kv_seqlen concatenates past and new");
    }
  }

  bool check_list(const StepField& field, const std::vector<std::int64_t>& counts) {
    const auto before = refusals_.size();
    require(static_cast<std::int64_t>(counts.size()) == s_.batch, field, counts.size(),
            "must hold one number, or one for each of the {} batch entries", s_.batch);
    for (const std::int64_t n : counts) {
      if (n >= 0 && n <= kMaxLength) continue;  // A long list must not cost a text per number.
      require(false, field, n, "must be between 0 and {}", kMaxLength);
    }
    return refusals_.size() == before;
  }

  static bool uniform(const std::vector<std::int64_t>& counts) {
    for (const std::int64_t n : counts) {
      if (n != counts.front()) return false;
    }
    return true;
  }

  static bool zero(const std::vector<std::int64_t>& counts) {
    return uniform(counts) && counts.front() == 0;
  }

  void require_uniform(const StepField& field, const std::vector<std::int64_t>& counts) {
    if (uniform(counts)) return;
    require(false, field, fmt::format("[{}]", fmt::join(counts, ", ")),
            "must be the same for every batch entry: attention takes dense tensors");
  }

  bool concatenates() const { return s_.op == Operator::attention && !s_.nonpad_kv_seqlen; }

  void check_append(const StepField& name, const Append& append,
                    const std::vector<std::int64_t>& lengths) {
    if (!check_list(name.of(".append"), append.tokens)) return;
    if (!check_list(name.of(".queries"), append.queries)) return;
    require(append.generation >= 0, name.of(".generation"), append.generation,
            "must be at least 0");
    const bool only_asks = zero(append.tokens) && !zero(append.queries);
    if (s_.op == Operator::gqa) {
      if (append.queries != append.tokens && !zero(append.queries) && !only_asks) {
        require(false, name.of(".queries"), fmt::format("[{}]", fmt::join(append.queries, ", ")),
                "must equal the appended tokens for gqa, or be 0 for an append without queries");
      }
      if (only_asks) check_shared_kv(name, append, lengths);
    } else {
      require_uniform(name.of(".queries"), append.queries);
    }
    if (concatenates()) require_uniform(name.of(".append"), append.tokens);
    if (!zero(append.tokens) || (only_asks && s_.nonpad_kv_seqlen)) return;
    require(only_asks && lengths.front() > 0, name.of(".append"), 0,
            "must append at least one token, or ask queries of the tokens that are there; remove "
            "the step instead");
  }

  /// Queries without tokens of their own, which stand at the end of the sequence.
  void check_shared_kv(const StepField& name, const Append& append,
                       const std::vector<std::int64_t>& lengths) {
    require(s_.cache.layout == LayoutKind::full && !s_.packed_qkv, name.of(".append"), 0,
            "must append tokens: queries alone need cache.layout full and no packed_qkv");
    require_uniform(name.of(".queries"), append.queries);
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      if (append.queries[b] <= lengths[b]) continue;
      require(false, name.of(".queries"), append.queries[b],
              "must be at most the {} tokens that entry {} holds, as no token is "
              "appended",
              lengths[b], b);
    }
  }

  void check_steps() {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(s_.batch), 0);
    for (std::size_t i = 0; i < s_.steps.size() && refusals_.empty(); ++i) {
      const StepField name{i};
      if (const auto* append = std::get_if<Append>(&s_.steps[i])) {
        check_append(name, *append, lengths);
        if (!refusals_.empty()) return;
        const bool same_pasts = uniform(lengths);
        for (std::size_t b = 0; b < lengths.size(); ++b) lengths[b] += append->tokens[b];
        // The mask is a function of positions; entries of different lengths ask at different
        // positions in one row of the tensor, so they cannot share it.
        require(mask_tells_entries_apart() || (same_pasts && uniform(lengths)), "mask.rank",
                s_.mask.rank, "must be 4, without one_entry, where batch entries differ in length");
        check_columns(lengths);
      } else if (const auto* past = std::get_if<Past>(&s_.steps[i])) {
        if (!check_list(name.of(".past"), past->tokens)) return;
        require(i == 0, name.of(".past"), past->tokens.front(), "must be the first step");
        require(!zero(past->tokens), name.of(".past"), 0,
                "must hold at least one token; remove the step");
        if (concatenates()) require_uniform(name.of(".past"), past->tokens);
        lengths = past->tokens;
      } else {
        check_rollback(name, std::get<Rollback>(s_.steps[i]).tokens, lengths);
      }
      check_lengths(name, lengths);
    }
  }

  bool mask_tells_entries_apart() const {
    const MaskSpec& mask = s_.mask;
    return mask.kind == MaskKind::none || mask.rank == 1 || mask.one_query ||
           (mask.rank == 4 && !mask.one_entry);
  }

  void check_columns(const std::vector<std::int64_t>& lengths) {
    const std::int64_t missing = s_.mask.missing_columns;
    if (missing == 0) return;
    const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    const std::int64_t left = (s_.nonpad_kv_seqlen ? s_.cache.capacity : longest) - missing;
    require(left >= std::max<std::int64_t>(1, s_.nonpad_kv_seqlen ? longest : 1),
            "mask.missing_columns", missing,
            s_.nonpad_kv_seqlen ? "must leave a column for each token of the longest entry"
                                : "must leave at least one column in every step");
  }

  void check_rollback(const StepField& name, const std::vector<std::int64_t>& tokens,
                      std::vector<std::int64_t>& lengths) {
    if (!check_list(name.of(".rollback"), tokens)) return;
    if (concatenates()) require_uniform(name.of(".rollback"), tokens);
    require(!zero(tokens), name.of(".rollback"), 0,
            "must drop at least one token; remove the step");
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      if (tokens[b] > lengths[b]) {
        require(false, name.of(".rollback"), tokens[b],
                "must be at most the {} tokens that entry {} holds", lengths[b], b);
      }
      lengths[b] -= tokens[b];
    }
  }

  void check_lengths(const StepField& name, const std::vector<std::int64_t>& lengths) {
    const bool bounded = keeps_every_token(s_.cache) && s_.cache.capacity > 0;
    const std::int64_t limit = bounded ? s_.cache.capacity : kMaxLength;
    for (const std::int64_t length : lengths) {
      longest_ = std::max(longest_, length);
      if (length <= limit) continue;
      require(false, name, length,
              bounded
                  ? fmt::format("the length must stay within cache.capacity ({}); raise it", limit)
                  : fmt::format("the length must stay within {}", limit));
    }
  }

  void check_size() {
    const std::int64_t rows = s_.cache.capacity > 0 ? s_.cache.capacity : longest_;
    std::int64_t widest_step = 1;
    for (const Step& step : s_.steps) {
      if (const auto* append = std::get_if<Append>(&step)) {
        for (const auto n : append->tokens) widest_step = std::max(widest_step, n);
        for (const auto n : append->queries) widest_step = std::max(widest_step, n);
      }
    }
    const std::int64_t most = max_rows(s_);
    require(std::max(rows, widest_step) <= most, rows >= widest_step ? "cache.capacity" : "steps",
            std::max(rows, widest_step),
            "at most {} rows keep each tensor within {} elements; lower batch, heads, "
            "head_size, the capacity or the lengths",
            most, kMaxElements);
  }

  void check_mask_size() {
    require(mask_fits(s_), "mask.rank", s_.mask.rank,
            "the mask of the longest step exceeds {} elements; lower the rank, the "
            "queries or the lengths",
            kMaxElements);
  }

  const Scenario& s_;
  std::int64_t longest_ = 0;
};

}  // namespace

std::vector<Refusal> validate(const Scenario& scenario) { return Checker(scenario).run(); }

std::int64_t max_rows(const Scenario& s) {
  const std::int64_t lanes = std::max(s.head_size, s.value_head_size);
  return kMaxElements / (s.batch * std::max(s.query_heads, s.kv_heads) * lanes);
}

bool mask_fits(const Scenario& s) {
  if (s.mask.kind == MaskKind::none) return true;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(s.batch), 0);
  std::int64_t longest = s.cache.capacity;
  std::int64_t queries = 0;
  for (const Step& step : s.steps) {
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      if (const auto* append = std::get_if<Append>(&step)) {
        queries = std::max(queries, append->queries[b]);
        lengths[b] += append->tokens[b];
      } else if (const auto* past = std::get_if<Past>(&step)) {
        lengths[b] = past->tokens[b];
      } else {
        lengths[b] -= std::get<Rollback>(step).tokens[b];
      }
      longest = std::max(longest, lengths[b]);
    }
  }
  const MaskSpec& mask = s.mask;
  const std::int64_t planes = (mask.rank >= 3 && !mask.one_head ? s.query_heads : 1) *
                              (mask.rank >= 4 && !mask.one_entry ? s.batch : 1);
  const std::int64_t rows = mask.rank >= 2 && !mask.one_query ? queries : 1;
  return queries == 0 || longest <= kMaxElements / planes / rows;
}

}  // namespace kvcheck::model
