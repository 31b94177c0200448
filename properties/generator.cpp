// Drawing scenarios.
#include "properties/generator.h"

#include <memory>
#include <string>

#include <rapidcheck/Shrinkable.h>
#include <rapidcheck/shrinkable/Create.h>

#include "model/layout.h"
#include "properties/convert.h"
#include "properties/draw.h"
#include "properties/feature_draw.h"

namespace kvcheck::properties {
namespace {

using kernels::Capabilities;
using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

enum class Family { gqa_block, gqa_full, attention_past, attention_nonpad };

std::vector<Family> families(const Capabilities& target, const GeneratorFocus& focus) {
  std::vector<Family> result;
  const bool gqa = target.operators.count("gqa") > 0;
  const bool attention = target.operators.count("attention") > 0 && !target.opsets.empty();
  if (gqa && focus.gqa_block && target.layouts.count("block")) {
    result.insert(result.end(), 2, Family::gqa_block);
  }
  if (gqa && focus.gqa_full && target.layouts.count("full")) result.push_back(Family::gqa_full);
  if (attention && focus.attention_past) result.push_back(Family::attention_past);
  if (attention && focus.attention_nonpad && *target.opsets.rbegin() >= 24 &&
      target.has("nonpad_kv_seqlen")) {
    result.push_back(Family::attention_nonpad);
  }
  return result;
}

/// The draw of one scenario: shape first, then cache, then steps with lengths in view.
class Drawing {
 public:
  Drawing(const Capabilities& target, Family family, Draw& draw, int size)
      : target_(target), family_(family), draw_(draw), size_(size) {}

  Scenario run() {
    draw_shape();
    draw_cache();
    draw_features(target_, draw_, s_);
    draw_data();
    draw_steps();
    if (family_ == Family::attention_nonpad || family_ == Family::gqa_full) {
      s_.cache.capacity = longest_ + draw_.pick({0, 0, 1, 3, 8});
    }
    draw_mask(target_, draw_, longest_, s_);
    return model::normalise(s_);
  }

 private:
  bool gqa() const { return family_ == Family::gqa_block || family_ == Family::gqa_full; }
  bool uniform_entries() const { return family_ == Family::attention_past; }
  /// One in `of` of the scenarios is several times longer than the usual ones.
  bool rarely(int of) { return draw_.between(1, of) == 1; }

  void draw_shape() {
    s_.op = gqa() ? model::Operator::gqa : model::Operator::attention;
    s_.batch = draw_.percent(55) ? 1 : draw_.between(2, 3);
    s_.kv_heads = draw_.pick({1, 1, 1, 2, 2, 3});
    s_.query_heads = s_.kv_heads * draw_.pick({1, 1, 2, 2, 3, 4, 5, rarely(4) ? 8 : 6});
    if (gqa()) {
      s_.opset = 1;
      s_.head_size = target_.head_size_multiple * draw_.pick({1, 1, 1, 2, 3, 5});
      if (target_.head_size_multiple < 8) s_.head_size = free_head_size();
      s_.value_head_size = s_.head_size;
    } else {
      const bool nonpad = family_ == Family::attention_nonpad;
      const auto first = nonpad ? target_.opsets.lower_bound(24) : target_.opsets.begin();
      s_.opset = draw_.pick(std::vector<int>(first, target_.opsets.end()));
      s_.nonpad_kv_seqlen = nonpad;
      s_.head_size = draw_.percent(60) ? draw_.pick({1, 2, 4, 4, 8, 8, 16}) : free_head_size();
      s_.value_head_size = draw_.percent(70) ? s_.head_size : draw_.pick({2, 3, 8, 10, 17});
      s_.causal = draw_.percent(85);
    }
    std::vector<std::string> types(target_.element_types.begin(), target_.element_types.end());
    s_.element_type = draw_.percent(60) && target_.element_types.count("f32")
                          ? model::ElementType::f32
                          : *model::element_type_from(draw_.pick(types));
    if (draw_.percent(15)) s_.scale = draw_.pick(std::vector<double>{0.25, 0.5, 1.0});
  }

  /// Around the widths of vector registers and tiles, in lanes; wide heads are rare for their cost.
  std::int64_t free_head_size() {
    if (draw_.percent(50)) return draw_.pick({8, 8, 16, 24});
    if (rarely(8)) return draw_.pick({31, 32, 33, 48, 63, 64, 65, 80, 128});
    return draw_.between(1, 20);
  }

  void draw_cache() {
    if (family_ == Family::gqa_block) {
      const bool shifts = target_.layouts.count("min_overflow") > 0 && draw_.percent(20);
      s_.cache.layout = shifts ? model::LayoutKind::min_overflow : model::LayoutKind::block;
      const std::int64_t window = rarely(12) ? draw_.between(13, 40) : draw_.between(1, 12);
      s_.cache.window_size = window;
      s_.cache.capacity =
          window + (rarely(12) ? draw_.between(9, 40) : draw_.pick({0, 0, 1, 2, 3, 4, 5, 8}));
    } else if (family_ == Family::gqa_full && draw_.percent(50)) {
      s_.cache.window_size = target_.has("empty_window") && rarely(12) ? 0 : draw_.between(1, 12);
    }
    layout_ = model::make_layout(s_.cache);
    s_.share_buffers = !(gqa() && target_.has("separate_buffers") && draw_.percent(30));
  }

  void draw_data() {
    using enum model::FillKind;
    const int kind = static_cast<int>(draw_.between(0, 99));
    s_.fill.kind = kind < 40 ? random
                   : kind < 75
                       ? needles
                       : draw_.pick(std::vector{extreme, ties, cancelling, selection, integers});
    s_.fill.seed = draw_.bits() & 0xffffffffu;
    const int poison = static_cast<int>(draw_.between(0, 99));
    s_.poison = poison < 45   ? model::Poison::finite
                : poison < 80 ? model::Poison::huge
                              : model::Poison::zero;
    if (bears_nan(target_, s_) && draw_.percent(30)) s_.poison = model::Poison::nan;
  }

  /// A length worth trying: around the window and the capacity, or small, or anything.
  std::int64_t notable_length() {
    const std::int64_t window = s_.cache.window_size.value_or(4);
    const std::int64_t capacity = family_ == Family::gqa_block ? s_.cache.capacity : 8;
    if (draw_.percent(60)) {
      return std::max<std::int64_t>(
          1, draw_.pick({1, window, capacity, capacity + 1, 2 * capacity}) + draw_.between(-1, 1));
    }
    return draw_.between(1, rarely(10) ? 120 : 16);
  }

  /// Edges of tiles, blocks and splits of keys, where a kernel changes its path.
  std::int64_t tile_length() {
    return draw_.pick({16, 32, 64, 64, 128, 256, 512, 512, 1024}) + draw_.between(-1, 1);
  }

  /// Every query of a prompt costs as much as the keys before it, so wide ones are rare.
  std::int64_t prompt_length() {
    return rarely(20) ? draw_.pick({16, 32, 64}) + draw_.between(-1, 1) : notable_length();
  }

  std::int64_t step_tokens() {
    const std::int64_t window = s_.cache.window_size.value_or(4);
    const std::int64_t capacity = family_ == Family::gqa_block ? s_.cache.capacity : 6;
    if (draw_.percent(50)) return 1;
    if (draw_.percent(60)) return draw_.between(2, 5);
    return std::max<std::int64_t>(1, draw_.pick({window - 1, window, window + 1, capacity - 1,
                                                 capacity, capacity + 1, capacity + window}));
  }

  std::vector<std::int64_t> for_entries(std::int64_t count) const {
    return std::vector<std::int64_t>(static_cast<std::size_t>(s_.batch), count);
  }

  void draw_steps() {
    lengths_ = for_entries(0);
    if (target_.has("load") && draw_.percent(35)) draw_past();
    const std::int64_t events = draw_.between(1, 3 + size_ / 15);
    for (std::int64_t i = 0; i < events; ++i) {
      if (target_.has("rollback") && longest() > 0 && draw_.percent(25) && draw_rollback())
        continue;
      if (longest() > 0 && may_only_ask() && draw_.percent(10)) {
        draw_question();
        continue;
      }
      draw_append();
    }
    draw_append();  // A scenario ends with a query.
  }

  /// Whether a step may ask queries of what the cache holds, without tokens of its own.
  bool may_only_ask() const {
    if (family_ == Family::gqa_full) return target_.has("shared_kv") && !s_.packed_qkv;
    return family_ == Family::attention_past && target_.has("empty_append");
  }

  void draw_question() {
    const std::int64_t shortest = *std::min_element(lengths_.begin(), lengths_.end());
    if (shortest == 0) return;
    // As many as a prompt may have: each costs as much as the keys before it.
    const std::int64_t queries = std::min<std::int64_t>(shortest, draw_.pick({1, 1, 2, 3, 65}));
    s_.steps.emplace_back(Append{for_entries(0), for_entries(queries), generation_});
  }

  std::int64_t longest() const { return *std::max_element(lengths_.begin(), lengths_.end()); }

  void draw_past() {
    Past past{for_entries(rarely(5) ? tile_length() : notable_length())};
    if (!uniform_entries() && draw_.percent(60)) {
      for (auto& n : past.tokens) n = notable_length();
    }
    lengths_ = past.tokens;
    longest_ = std::max(longest_, longest());
    s_.steps.emplace_back(past);
  }

  bool draw_rollback() {
    Rollback rollback{for_entries(0)};
    const bool deep = target_.has("checks_rollback") && draw_.percent(8);
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      const std::int64_t most = deep ? lengths_[b] : layout_->max_exact_rollback(lengths_[b]);
      if (most <= 0) continue;
      rollback.tokens[b] =
          draw_.percent(30) ? most : draw_.between(1, std::min<std::int64_t>(most, 6));
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

  void draw_append() {
    const bool chunk = !gqa() || s_.batch == 1 || longest() == 0 || target_.has("batched_chunks");
    const std::int64_t count = s_.steps.empty() ? prompt_length() : step_tokens();
    Append append{for_entries(chunk ? count : 1), {}, generation_};
    if (s_.batch > 1 && may_be_ragged() && draw_.percent(50)) {
      const bool idle =
          longest() > 0 && (family_ == Family::attention_nonpad || target_.has("idle_entries"));
      for (auto& n : append.tokens)
        n = std::max<std::int64_t>(idle && draw_.percent(20) ? 0 : 1, draw_.between(0, count));
      if (*std::max_element(append.tokens.begin(), append.tokens.end()) == 0) append.tokens[0] = 1;
    }
    append.queries = append.tokens;
    if (!gqa()) {
      append.queries = for_entries(append.tokens.front());
      if (target_.has("queries_differ") && draw_.percent(50)) {
        append.queries = for_entries(draw_.pick({1, 1, 2, 3, append.tokens.front() + 1}));
      }
      if (append.queries.front() == 0) append.queries = for_entries(1);
    } else if (target_.has("queryless_append") && draw_.percent(6)) {
      append.queries = for_entries(0);
    }
    for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] += append.tokens[b];
    longest_ = std::max(longest_, longest());
    s_.steps.emplace_back(append);
  }

  const Capabilities& target_;
  Family family_;
  Draw& draw_;
  int size_;
  Scenario s_;
  std::unique_ptr<model::Layout> layout_;
  std::vector<std::int64_t> lengths_;
  std::int64_t longest_ = 0;
  std::int64_t generation_ = 0;
};

}  // namespace

rc::Gen<Scenario> scenario_generator(const Capabilities& target, const GeneratorFocus& focus) {
  return rc::Gen<Scenario>(
      [target, choices = families(target, focus)](const rc::Random& random, int size) {
        Draw draw(random);
        const Family family = draw.pick(choices);
        return rc::shrinkable::just(Drawing(target, family, draw, size).run());
      });
}

rc::Gen<Scenario> scenario_generator(const Capabilities& target) {
  return scenario_generator(target, GeneratorFocus{});
}

}  // namespace kvcheck::properties
