// Features one by one.
#include "properties/feature_draw.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <variant>

#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using kernels::Capabilities;
using model::QuantisationKind;
using model::Scenario;

class FeatureDrawing {
 public:
  FeatureDrawing(const Capabilities& target, Draw& draw, Scenario& scenario)
      : target_(target), draw_(draw), s_(scenario), swarm_(draw.bits()) {}

  void run() {
    if (wants("softcap", 12)) s_.softcap = draw_.pick(std::vector<double>{0.5, 2, 20, 50});
    if (s_.op == model::Operator::gqa) {
      run_gqa();
    } else {
      run_attention();
    }
    if (target_.has("launches") && draw_.percent(90)) draw_launch();
  }

 private:
  /// Swarm: half of the cases do without half of the features, others by turns, and have the rest
  /// the more often, so that rare features meet.
  bool wants(std::string_view feature, int chance) {
    if (!claims(target_, s_, feature)) return false;
    if (swarm_ % 2 == 0) return draw_.percent(chance);
    std::uint64_t name = 0;
    for (const char letter : feature) name = name * 31 + static_cast<unsigned char>(letter);
    return ((swarm_ >> 1) * (name | 1) >> 40) % 2 == 0 && draw_.percent(std::min(2 * chance, 90));
  }

  void run_gqa() {
    const bool full = s_.cache.layout == model::LayoutKind::full;
    if (full && !s_.cache.window_size && wants("bidirectional", 15)) s_.causal = false;
    if (wants("packed_qkv", 8)) s_.packed_qkv = true;
    if (wants("smooth_softmax", 8)) s_.smooth_softmax = true;
    if (wants("head_sink", 10)) {
      s_.head_sink = true;
      if (draw_.percent(20)) s_.fill.sink_logit = draw_.pick(std::vector<double>{-8, 3, 6});
    }
    if (wants("rotary", 15)) draw_rotary();
    if (wants("qk_norm", 10)) {
      s_.qk_norm = model::QkNormSpec{draw_.pick(std::vector<double>{1e-6, 1e-6, 1e-5, 0.5})};
    }
    if (full && wants("qk_output", 12)) {
      s_.qk_output = draw_.percent(50) ? model::QkOutput::biased : model::QkOutput::probabilities;
    }
    draw_quantisation();
  }

  void draw_launch() {
    using enum model::LaunchKernel;
    model::LaunchSpec launch;
    launch.order = draw_.pick(std::vector{model::LaunchOrder::lockstep, model::LaunchOrder::random,
                                          model::LaunchOrder::reverse, model::LaunchOrder::priority,
                                          model::LaunchOrder::starve});
    launch.seed = draw_.bits() & 0xffffffu;
    launch.kernel = draw_.pick(std::vector{any, unfused, decode, decode_matrix, prefill});
    launch.threads = draw_.pick({0, 32, 64, 128, 256});
    launch.split_positions = draw_.pick({0, 0, 64, 128, 512});
    s_.launch = launch;
  }

  void draw_rotary() {
    model::RotarySpec rotary;
    rotary.interleaved = draw_.percent(40);
    const auto multiple = target_.head_size_multiple_with.find("rotary");
    std::int64_t lanes = 2;
    if (multiple != target_.head_size_multiple_with.end()) {
      lanes = std::lcm(lanes, multiple->second);
      if (s_.head_size % lanes != 0) s_.head_size += lanes - s_.head_size % lanes;
      s_.value_head_size = s_.head_size;
    }
    if (s_.head_size >= 2 * lanes && draw_.percent(30)) {
      rotary.dim = lanes * draw_.between(1, s_.head_size / lanes);
    }
    if (draw_.percent(35)) {
      rotary.position_ids =
          model::PositionIds{draw_.pick({0, 0, 1, 7, 90}), draw_.pick({1, 1, 1, 0, 2, 3}),
                             draw_.pick({0, 0, 0, 1, 4})};
    }
    s_.rotary = rotary;
  }

  void draw_quantisation() {
    std::vector<QuantisationKind> kinds;
    if (target_.has("cache_int8")) kinds.push_back(QuantisationKind::int8);
    if (target_.has("cache_int4")) kinds.push_back(QuantisationKind::int4);
    if (target_.has("cache_fp8")) kinds.push_back(QuantisationKind::fp8);
    if (kinds.empty() || s_.element_type == model::ElementType::f64) return;
    if (!target_.has("cache_quantised_only") && !draw_.percent(20)) return;
    s_.cache.quantisation = {draw_.pick(kinds), draw_.percent(50)};
  }

  void run_attention() {
    if (wants("input_rank_3", 20)) s_.input_rank = 3;
    if (wants("qk_output", 15)) {
      s_.qk_output = draw_.pick(
          std::vector<model::QkOutput>{model::QkOutput::raw, model::QkOutput::softcapped,
                                       model::QkOutput::biased, model::QkOutput::probabilities});
    }
    if (wants("softmax_precision", 10)) {
      s_.softmax_precision = draw_.pick(
          std::vector<model::ElementType>{model::ElementType::f32, model::ElementType::f16,
                                          model::ElementType::bf16, model::ElementType::f64});
    }
    if (s_.opset < 25) return;
    if (wants("attention_window", 40)) s_.cache.window_size = draw_.between(1, 12);
    if (wants("right_window", 30)) s_.right_window_size = draw_.pick({0, 0, 1, 2, 5});
  }

  const Capabilities& target_;
  Draw& draw_;
  Scenario& s_;
  std::uint64_t swarm_;
};

/// Shapes of a mask that has one element where others have many.
void draw_broadcast(Draw& draw, model::MaskSpec& mask) {
  if (mask.rank == 4) mask.one_entry = draw.percent(25);
  if (mask.rank >= 3) mask.one_head = draw.percent(25);
}

/// The fewest columns that any step's mask has, before some are left out.
std::int64_t fewest_columns(const Scenario& s) {
  if (s.nonpad_kv_seqlen) return s.cache.capacity;
  std::int64_t length = 0;
  std::int64_t fewest = s.cache.capacity > 0 ? s.cache.capacity : model::kMaxLength;
  for (const model::Step& step : s.steps) {
    if (const auto* append = std::get_if<model::Append>(&step)) {
      length += append->tokens.front();
      fewest = std::min(fewest, length);
    } else if (const auto* past = std::get_if<model::Past>(&step)) {
      length = past->tokens.front();
    } else {
      length -= std::get<model::Rollback>(step).tokens.front();
    }
  }
  return fewest;
}

}  // namespace

void draw_features(const Capabilities& target, Draw& draw, Scenario& scenario) {
  FeatureDrawing(target, draw, scenario).run();
}

void draw_mask(const Capabilities& target, Draw& draw, std::int64_t longest, Scenario& s) {
  const bool gqa = s.op == model::Operator::gqa;
  const bool boolean = !gqa && target.has("mask_boolean");
  const bool additive = target.has(gqa ? "attention_bias" : "mask_additive");
  if ((!boolean && !additive) || draw.percent(gqa ? 88 : 50)) return;
  s.mask.kind = boolean && (!additive || draw.percent(60)) ? model::MaskKind::boolean
                                                           : model::MaskKind::additive;
  const bool broadcast = target.has("mask_broadcast");
  const bool one_row = !gqa && claims(target, s, "mask_one_row");
  s.mask.rank = gqa ? 4 : static_cast<int>(draw.between(2, 4));
  if (one_row && draw.percent(10)) s.mask.rank = 1;
  s.mask.hidden_percent = static_cast<int>(draw.pick({0, 10, 30, 60, 90, 100}));
  s.mask.seed = draw.bits() & 0xffffu;
  s.mask.empty_rows = !gqa && draw.percent(30);
  if (broadcast) draw_broadcast(draw, s.mask);
  if (one_row && s.mask.rank >= 2) s.mask.one_query = draw.percent(15);
  if (!gqa && s.opset >= 24 && claims(target, s, "short_mask") && draw.percent(20)) {
    const std::int64_t room =
        s.nonpad_kv_seqlen ? s.cache.capacity - longest : fewest_columns(s) - 1;
    s.mask.missing_columns = std::clamp<std::int64_t>(draw.pick({1, 1, 2, 5}), 0, room);
  }
}

}  // namespace kvcheck::properties
