// The steps one by one.
#include "properties/step_draw.h"

#include <algorithm>
#include <memory>

#include "model/layout.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using kernels::Capabilities;
using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

/// The longest prompt with a query for each token that a long context is built with: the cost is
/// its square.
constexpr std::int64_t kWidestPrompt = 64;

/// What the queries of a thrifty scenario may cost: each row of a query costs its lanes, and the
/// rest of what is done for it as much as this many lanes more.
constexpr std::int64_t kRowLanes = 24;
constexpr std::int64_t kMostQueryLanes = 320;

/// Keys that all queries of another one may look at.
constexpr std::int64_t kMostVisits = 6144;

/// Lanes of keys and values that a thrifty scenario may be loaded with.
constexpr std::int64_t kMostPastLanes = 1024;

class StepDrawing {
 public:
  StepDrawing(const Capabilities& target, Family family, Draw& draw, StepSizes sizes,
              Scenario& scenario)
      : target_(target),
        family_(family),
        draw_(draw),
        sizes_(sizes),
        s_(scenario),
        layout_(model::make_layout(scenario.cache)),
        lengths_(for_entries(0)),
        budget_(sizes.thrifty ? kMostQueryLanes : kMostVisits) {
    // Swarm: each case does without some kinds of step, so that the others come in new company.
    rollbacks_ = target.has("rollback") && draw.percent(75);
    questions_ = may_only_ask() && draw.percent(60);
    single_tokens_ = draw.percent(15);
  }

  std::int64_t run() {
    if (sizes_.context > 0) {
      draw_context();
    } else if (target_.has("load") && draw_.percent(sizes_.thrifty ? 33 : 60)) {
      draw_past();
    }
    const std::int64_t events =
        sizes_.context > 0 ? draw_.between(0, 3) : few(2 + sizes_.size / 16);
    for (std::int64_t i = 0; i < events; ++i) {
      if (rollbacks_ && longest() > 0 && draw_.percent(45) && draw_rollback()) continue;
      if (questions_ && longest() > 0 && draw_.percent(16)) {
        draw_question();
        continue;
      }
      draw_append();
    }
    draw_append();  // A scenario ends with a query.
    return longest_;
  }

 private:
  bool gqa() const { return family_ == Family::gqa_block || family_ == Family::gqa_full; }
  bool uniform_entries() const { return family_ == Family::attention_past; }
  /// One in `of` of the scenarios is several times longer than the usual ones.
  bool rarely(int of) { return draw_.between(1, of) == 1; }
  std::int64_t longest() const { return *std::max_element(lengths_.begin(), lengths_.end()); }
  std::int64_t window() const { return s_.cache.window_size.value_or(4); }

  std::vector<std::int64_t> for_entries(std::int64_t count) const {
    return std::vector<std::int64_t>(static_cast<std::size_t>(s_.batch), count);
  }

  /// Between 1 and `most`, the fewer the more often.
  std::int64_t few(std::int64_t most) {
    return std::min({draw_.between(1, most), draw_.between(1, most), draw_.between(1, most)});
  }

  /// A length worth trying: around the window and the capacity, or small, or anything.
  std::int64_t notable_length() {
    const std::int64_t capacity = family_ == Family::gqa_block ? s_.cache.capacity : 8;
    if (draw_.percent(60)) {
      return std::max<std::int64_t>(
          1,
          draw_.pick({1, window(), capacity, capacity + 1, 2 * capacity}) + draw_.between(-1, 1));
    }
    return draw_.between(1, rarely(20) ? 120 : 12);
  }

  /// `count`, or as many queries of every entry as the scenario may still ask; one in any case.
  std::int64_t affordable(std::int64_t count) {
    if (sizes_.context > 0) return count;
    const std::int64_t row = sizes_.thrifty ? kRowLanes + s_.head_size : longest() + count;
    const std::int64_t each = s_.batch * s_.query_heads * row;
    count = std::min(count, std::max<std::int64_t>(1, budget_ / each));
    budget_ -= count * each;
    return count;
  }

  std::int64_t affordable_past(std::int64_t count) const {
    if (!sizes_.thrifty) return count;
    const std::int64_t each = s_.batch * s_.kv_heads * (s_.head_size + s_.value_head_size);
    return std::min(count, std::max<std::int64_t>(1, kMostPastLanes / each));
  }

  /// Edges of tiles, blocks and splits of keys, where a kernel changes its path.
  std::int64_t tile_length() {
    const std::int64_t edge = sizes_.thrifty
                                  ? draw_.pick({16, 32, 64, 64, 128, 256})
                                  : draw_.pick({64, 128, 256, 512, 512, rarely(2) ? 1024 : 512});
    return edge + draw_.between(-1, 1);
  }

  /// Every query of a prompt costs as much as the keys before it, so wide ones are rare.
  std::int64_t prompt_length() {
    return rarely(25) ? draw_.pick({16, 32, 64}) + draw_.between(-1, 1) : notable_length();
  }

  std::int64_t step_tokens() {
    if (single_tokens_ || draw_.percent(sizes_.context > 0 ? 30 : 45)) return 1;
    if (sizes_.context > 0) return draw_.between(2, 3);
    const std::int64_t capacity = family_ == Family::gqa_block ? s_.cache.capacity : 6;
    if (draw_.percent(60)) return draw_.between(2, 5);
    return std::max<std::int64_t>(1, draw_.pick({window() - 1, window(), window() + 1, capacity - 1,
                                                 capacity, capacity + 1, capacity + window()}));
  }

  /// Whether a step may ask queries of what the cache holds, without tokens of its own.
  bool may_only_ask() const {
    if (family_ == Family::gqa_full) return target_.has("shared_kv") && !s_.packed_qkv;
    return family_ == Family::attention_past && claims(target_, s_, "empty_append");
  }

  /// What comes before the queries of a long context: loaded, or appended with as few as possible.
  void draw_context() {
    const std::int64_t n = sizes_.context;
    const std::int64_t less = draw_.percent(60) ? draw_.between(0, 4) : draw_.between(0, n / 8);
    const std::int64_t past = std::max<std::int64_t>(1, n - less);
    // Queries of attention may stand at the beginning of all tokens as well as behind them.
    const bool at_start = uniform_entries() && target_.has("queries_differ") && draw_.percent(20);
    if (target_.has("load") && !at_start) {
      load_context(past);
      return;
    }
    const bool unasked = gqa() ? target_.has("queryless_append") : target_.has("queries_differ");
    if (unasked) {
      const std::int64_t queries = at_start ? draw_.between(1, 3) : gqa() ? 0 : 1;
      append({for_entries(past), for_entries(queries), generation_});
      return;
    }
    const bool chunks = !gqa() || s_.batch == 1 || target_.has("batched_chunks");
    for (std::int64_t left = past; left > 0;) {
      const std::int64_t most = s_.steps.empty() || chunks ? kWidestPrompt : 1;
      const std::int64_t tokens = std::min(left, most);
      append({for_entries(tokens), for_entries(tokens), generation_});
      left -= tokens;
    }
  }

  void load_context(std::int64_t tokens) {
    Past step{for_entries(tokens)};
    if (!uniform_entries() && draw_.percent(40)) {
      for (auto& n : step.tokens) n = std::max<std::int64_t>(1, tokens - draw_.between(0, 5));
    }
    // An entry with fewer tokens than queries beside long ones: its first queries see nothing.
    if (family_ == Family::attention_nonpad && s_.batch > 1 && draw_.percent(60)) {
      step.tokens[static_cast<std::size_t>(draw_.between(0, s_.batch - 1))] = draw_.pick({0, 0, 1});
    }
    note(step.tokens);
    s_.steps.emplace_back(step);
  }

  void note(const std::vector<std::int64_t>& tokens) {
    for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] += tokens[b];
    longest_ = std::max(longest_, longest());
  }

  void append(Append step) {
    note(step.tokens);
    s_.steps.emplace_back(std::move(step));
  }

  void draw_question() {
    const std::int64_t shortest = *std::min_element(lengths_.begin(), lengths_.end());
    if (shortest == 0) return;
    // As many as a prompt may have: each costs as much as the keys before it.
    const std::int64_t many = sizes_.context > 0 ? 2 : 65;
    const std::int64_t queries = affordable(
        std::min<std::int64_t>(shortest, draw_.pick({1, 1, 2, 3, rarely(3) ? many : 4})));
    s_.steps.emplace_back(Append{for_entries(0), for_entries(queries), generation_});
  }

  void draw_past() {
    Past past{for_entries(affordable_past(rarely(6) ? tile_length() : notable_length()))};
    if (!uniform_entries() && draw_.percent(60)) {
      for (auto& n : past.tokens) n = affordable_past(notable_length());
    }
    note(past.tokens);
    s_.steps.emplace_back(past);
  }

  bool draw_rollback() {
    Rollback rollback{for_entries(0)};
    const bool behind = sizes_.context > 0;
    const bool deep = target_.has("checks_rollback") && draw_.percent(behind ? 30 : 8);
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      const std::int64_t exact = layout_->max_exact_rollback(lengths_[b]);
      const std::int64_t most = deep ? lengths_[b] : exact;
      if (most <= 0) continue;
      // Seldom back to nothing where the context is to stay long.
      const bool all = draw_.percent(behind ? 6 : 30);
      const std::int64_t least = behind && deep && exact < most ? exact + 1 : 1;
      rollback.tokens[b] = all ? most : draw_.between(least, std::min(most, least + 5));
    }
    if (uniform_entries()) rollback.tokens = for_entries(rollback.tokens.front());
    if (*std::max_element(rollback.tokens.begin(), rollback.tokens.end()) == 0) return false;
    for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] -= rollback.tokens[b];
    s_.steps.emplace_back(rollback);
    ++generation_;
    return true;
  }

  /// Whether the next gqa step of this batch may hold `ragged` or several tokens.
  bool may_be_ragged() const {
    if (uniform_entries()) return false;
    if (family_ == Family::attention_nonpad) return true;
    if (longest() > 0) return target_.has("batched_chunks");
    return target_.has(family_ == Family::gqa_block ? "ragged_prompt_block" : "ragged_prompt");
  }

  /// An entry that has no token yet stays so every second time, while others are long: all its
  /// queries see nothing then, not the first ones alone.
  void keep_empty(std::vector<std::int64_t>& tokens) {
    if (longest() == 0) return;
    for (std::size_t b = 0; b < tokens.size(); ++b) {
      const bool empty = lengths_[b] == 0 && draw_.percent(50);
      if (empty && std::count(tokens.begin(), tokens.end(), 0) + 1 < s_.batch) tokens[b] = 0;
    }
  }

  /// Beside long entries one that has a key or two is asked for more queries than it has keys.
  void ask_before_keys(Append& step) {
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      const std::int64_t keys = lengths_[b] + step.tokens[b];
      if (family_ == Family::attention_nonpad && keys > 0 && keys < 4 && draw_.percent(60)) {
        step.queries = for_entries(keys + draw_.between(1, 2));
      }
    }
  }

  void draw_append() {
    const bool chunk = !gqa() || s_.batch == 1 || longest() == 0 || target_.has("batched_chunks");
    const std::int64_t count = affordable(s_.steps.empty() ? prompt_length() : step_tokens());
    Append step{for_entries(chunk ? count : 1), {}, generation_};
    if (s_.batch > 1 && may_be_ragged() && draw_.percent(50)) {
      const bool idle =
          longest() > 0 && (family_ == Family::attention_nonpad || target_.has("idle_entries"));
      for (auto& n : step.tokens)
        n = std::max<std::int64_t>(idle && draw_.percent(20) ? 0 : 1, draw_.between(0, count));
      if (*std::max_element(step.tokens.begin(), step.tokens.end()) == 0) step.tokens[0] = 1;
    }
    if (sizes_.context > 0 && family_ == Family::attention_nonpad) keep_empty(step.tokens);
    step.queries = step.tokens;
    if (!gqa()) {
      step.queries = for_entries(step.tokens.front());
      if (target_.has("queries_differ") && draw_.percent(50)) {
        step.queries = for_entries(draw_.pick({1, 1, 2, 3, step.tokens.front() + 1}));
        if (sizes_.context > 0) ask_before_keys(step);
      }
      if (step.queries.front() == 0) step.queries = for_entries(1);
    } else if (target_.has("queryless_append") && draw_.percent(6)) {
      step.queries = for_entries(0);
    }
    append(std::move(step));
  }

  const Capabilities& target_;
  Family family_;
  Draw& draw_;
  StepSizes sizes_;
  Scenario& s_;
  std::unique_ptr<model::Layout> layout_;
  std::vector<std::int64_t> lengths_;
  std::int64_t longest_ = 0;
  std::int64_t budget_;  // Of queries: lanes, or keys that they look at.
  std::int64_t generation_ = 0;
  bool rollbacks_ = false, questions_ = false, single_tokens_ = false;
};

}  // namespace

std::int64_t draw_steps(const Capabilities& target, Family family, Draw& draw, StepSizes sizes,
                        Scenario& scenario) {
  return StepDrawing(target, family, draw, sizes, scenario).run();
}

}  // namespace kvcheck::properties
