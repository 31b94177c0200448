// Drawing scenarios: operator, shape, cache and data.
#include "properties/generator.h"

#include <string>

#include <rapidcheck/Shrinkable.h>
#include <rapidcheck/shrinkable/Create.h>

#include "properties/calls/call_draw.h"
#include "properties/convert.h"
#include "properties/draw.h"
#include "properties/feature_draw.h"
#include "properties/step_draw.h"

namespace kvcheck::properties {
namespace {

using kernels::Capabilities;
using model::Scenario;

std::vector<Family> families(const Capabilities& target, const GeneratorFocus& focus) {
  std::vector<Family> result;
  const bool gqa = target.operators.count("gqa") > 0;
  const bool attention = target.operators.count("attention") > 0 && !target.opsets.empty();
  if (gqa && focus.gqa_block && target.layouts.count("block")) {
    result.insert(result.end(), 2, Family::gqa_block);
  }
  if (gqa && focus.gqa_full && target.layouts.count("full")) result.push_back(Family::gqa_full);
  // Of long contexts few are judged in a second, and attention has what is rarest.
  const std::size_t attentions = focus.context_length > 0 ? 2 : 1;
  if (attention && focus.attention_past) {
    result.insert(result.end(), attentions, Family::attention_past);
  }
  if (attention && focus.attention_nonpad && *target.opsets.rbegin() >= 24 &&
      target.has("nonpad_kv_seqlen")) {
    result.insert(result.end(), attentions, Family::attention_nonpad);
  }
  return result;
}

/// The draw of one scenario: shape first, then cache, then steps with lengths in view.
class Drawing {
 public:
  Drawing(const Capabilities& target, Family family, Draw& draw, int size, std::int64_t context)
      : target_(target), family_(family), draw_(draw), size_(size), context_(context) {}

  Scenario run() {
    // What many tokens, heads and lanes cost is their product, so most scenarios have one of them.
    long_ = context_ == 0 && rarely(12);
    narrow_ = context_ > 0 || (long_ && !rarely(4));
    draw_shape();
    draw_cache();
    draw_features(target_, draw_, context_, s_);
    draw_data();
    const StepSizes sizes{size_, context_, context_ == 0 && !long_};
    const std::int64_t longest = draw_steps(target_, family_, draw_, sizes, s_);
    if (family_ == Family::attention_nonpad || family_ == Family::gqa_full) {
      s_.cache.capacity = longest + draw_.pick({0, 0, 1, 3, 8});
    }
    draw_mask(target_, draw_, {longest, context_}, s_);
    s_ = model::normalise(s_);
    draw_call_change(target_, draw_, s_);
    return s_;
  }

 private:
  bool gqa() const { return family_ == Family::gqa_block || family_ == Family::gqa_full; }
  /// One in `of` of the scenarios is several times longer than the usual ones.
  bool rarely(int of) { return draw_.between(1, of) == 1; }

  void draw_shape() {
    s_.op = gqa() ? model::Operator::gqa : model::Operator::attention;
    s_.batch = draw_.percent(70) ? 1 : draw_.pick({2, 2, 3});
    s_.kv_heads = draw_.pick({1, 1, 1, 1, 1, 2, 2, 3});
    std::int64_t group = draw_.pick({1, 1, 1, 1, 2, 2, 3, rarely(4) ? 8 : 4});
    if (narrow_) {
      s_.batch = draw_.percent(gqa() ? 75 : 55) ? 1 : 2;
      s_.kv_heads = draw_.pick({1, 1, 2});
      group = draw_.pick({1, 1, 2, 3});
    }
    s_.query_heads = s_.kv_heads * group;
    if (gqa()) {
      s_.opset = 1;
      s_.head_size = target_.head_size_multiple * draw_.pick({1, 1, 1, 1, 2, narrow_ ? 1 : 5});
      if (target_.head_size_multiple < 8) s_.head_size = free_head_size();
      s_.value_head_size = s_.head_size;
    } else {
      const bool nonpad = family_ == Family::attention_nonpad;
      const auto first = nonpad ? target_.opsets.lower_bound(24) : target_.opsets.begin();
      const bool newest = context_ > 0 && draw_.percent(40);
      s_.opset = newest ? *target_.opsets.rbegin()
                        : draw_.pick(std::vector<int>(first, target_.opsets.end()));
      s_.nonpad_kv_seqlen = nonpad;
      s_.head_size = draw_.percent(60) ? draw_.pick({1, 2, 4, 8, 8, 8, 16}) : free_head_size();
      s_.value_head_size = draw_.percent(70) ? s_.head_size : draw_.pick({2, 3, 8, 8, 10, 17});
      s_.causal = draw_.percent(85);
    }
    std::vector<std::string> types(target_.element_types.begin(), target_.element_types.end());
    s_.element_type = draw_.percent(60) && target_.element_types.count("f32")
                          ? model::ElementType::f32
                          : *model::element_type_from(draw_.pick(types));
    if (target_.has("launches") && draw_.percent(75)) fit_to_packets();
    // Of double the truth decides each element, key by key.
    const bool costly = context_ > 0 && s_.element_type == model::ElementType::f64;
    if (costly && target_.element_types.count("f32") && draw_.percent(75)) {
      s_.element_type = model::ElementType::f32;
    }
    if (draw_.percent(15)) s_.scale = draw_.pick(std::vector<double>{0.25, 0.5, 1.0});
  }

  /// Most kernels of devices take 16-bit numbers in rows of whole packets.
  void fit_to_packets() {
    const std::int64_t lanes = packet_lanes(target_);
    s_.head_size += (lanes - s_.head_size % lanes) % lanes;
    s_.value_head_size += (lanes - s_.value_head_size % lanes) % lanes;
    if (s_.element_type == model::ElementType::f32) {
      s_.element_type = draw_.pick(std::vector{model::ElementType::f16, model::ElementType::bf16});
    }
  }

  /// Around the widths of vector registers and tiles, in lanes; wide heads are rare for their cost.
  std::int64_t free_head_size() {
    if (narrow_) return draw_.pick({1, 2, 4, 8, 8, 16});
    if (draw_.percent(60)) return draw_.pick({8, 8, 8, 16, 24});
    if (rarely(8)) return draw_.pick({31, 32, 33, 48, 63, 64, 65, 80, 128});
    return draw_.between(1, 20);
  }

  /// Small, or of a long context: around all of it, half of it, or small as well.
  std::int64_t window() {
    if (context_ > 0 && draw_.percent(60)) {
      return std::max<std::int64_t>(
          1, draw_.pick({context_, context_ / 2, context_ / 4}) + draw_.between(-1, 1));
    }
    if (rarely(12)) return draw_.between(13, 40);
    return draw_.percent(75) ? draw_.between(1, 4) : draw_.between(1, 12);
  }

  void draw_cache() {
    if (family_ == Family::gqa_block) {
      const bool shifts = target_.layouts.count("min_overflow") > 0 && draw_.percent(20);
      s_.cache.layout = shifts ? model::LayoutKind::min_overflow : model::LayoutKind::block;
      s_.cache.window_size = window();
      s_.cache.capacity =
          *s_.cache.window_size +
          (rarely(12) ? draw_.between(9, 40) : draw_.pick({0, 0, 1, 1, 2, 3, 4, 8}));
    } else if (family_ == Family::gqa_full && draw_.percent(50)) {
      s_.cache.window_size = target_.has("empty_window") && rarely(12) ? 0 : window();
    }
    s_.share_buffers = !(gqa() && target_.has("separate_buffers") && draw_.percent(30));
  }

  void draw_data() {
    using enum model::FillKind;
    const int kind = static_cast<int>(draw_.between(0, 99));
    // Extreme logits have six shapes; each is to come in a few hundred long contexts.
    const bool behind = context_ > 0;
    static const std::vector shaped{extreme, ties, cancelling, selection, integers};
    static const std::vector shaped_behind{extreme,    extreme,   extreme, ties,
                                           cancelling, selection, integers};
    s_.fill.kind = kind < (behind ? 30 : 40)   ? random
                   : kind < (behind ? 60 : 75) ? needles
                                               : draw_.pick(behind ? shaped_behind : shaped);
    s_.fill.seed = draw_.bits() & 0xffffffffu;
    const int poison = static_cast<int>(draw_.between(0, 99));
    s_.poison = poison < 45   ? model::Poison::finite
                : poison < 80 ? model::Poison::huge
                              : model::Poison::zero;
    if (bears_nan(target_, s_) && draw_.percent(30)) s_.poison = model::Poison::nan;
  }

  const Capabilities& target_;
  Family family_;
  Draw& draw_;
  int size_;
  std::int64_t context_;
  bool long_ = false;    // As long as it is drawn, whatever it costs.
  bool narrow_ = false;  // Few entries, heads and lanes.
  Scenario s_;
};

}  // namespace

std::int64_t packet_lanes(const Capabilities& target) {
  return target.has("cache_quantised_only") ? 16 : 8;
}

bool can_draw(const Capabilities& target, const GeneratorFocus& focus) {
  return !families(target, focus).empty();
}

rc::Gen<Scenario> scenario_generator(const Capabilities& target, const GeneratorFocus& focus) {
  return rc::Gen<Scenario>([target, choices = families(target, focus),
                            context = focus.context_length](const rc::Random& random, int size) {
    Draw draw(random);
    const Family family = draw.pick(choices);
    return rc::shrinkable::just(Drawing(target, family, draw, size, context).run());
  });
}

rc::Gen<Scenario> scenario_generator(const Capabilities& target) {
  return scenario_generator(target, GeneratorFocus{});
}

}  // namespace kvcheck::properties
