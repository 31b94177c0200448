// The optional features, rule by rule and repair by repair.
#include "model/scenario_features.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "model/fill.h"
#include "model/literal.h"
#include "model/refusal_collector.h"

namespace kvcheck::model {
namespace {

constexpr std::int64_t kMostShift = 1LL << 20;
constexpr std::int64_t kMostStride = 64;
constexpr std::int64_t kMostExtra = 4096;
constexpr double kMostSink = 64;
constexpr std::int64_t kMostFirstEntry = 4096;

bool is_gqa(const Scenario& s) { return s.op == Operator::gqa; }

class FeatureChecker : private RefusalCollector {
 public:
  explicit FeatureChecker(const Scenario& scenario) : s_(scenario) {}

  std::vector<Refusal> run() {
    check_logits();
    if (is_gqa(s_)) {
      check_gqa();
    } else {
      check_attention();
    }
    check_mask();
    check_fill();
    if (s_.launch) check_launch(*s_.launch);
    return std::move(refusals_);
  }

 private:
  void require_default(bool ok, std::string_view field, bool value, std::string_view other) {
    require(ok, field, value, "belongs to {}; leave it out here", other);
  }

  void require_between(std::string_view field, std::int64_t value, std::int64_t most) {
    require(value >= 0 && value <= most, field, value, "must be between 0 and {}", most);
  }

  void check_logits() {
    if (s_.scale) {
      const bool sound = std::isfinite(*s_.scale) && (is_gqa(s_) ? *s_.scale != 0 : *s_.scale > 0);
      require(sound, "scale", *s_.scale,
              is_gqa(s_) ? "must be finite and not 0; leave it out for 1/sqrt(head_size)"
                         : "must be finite and above 0; leave it out for 1/sqrt(head_size)");
    }
    require(std::isfinite(s_.softcap) && s_.softcap >= 0, "softcap", s_.softcap,
            "must be finite and at least 0; 0 is off");
  }

  void check_gqa() {
    require(s_.causal || !s_.cache.window_size, "causal", s_.causal,
            "must be true with cache.window_size: gqa has no window without causality");
    require(!s_.right_window_size, "right_window_size", s_.right_window_size.value_or(0),
            "belongs to attention; leave it out for gqa");
    require(s_.input_rank == 4, "input_rank", s_.input_rank,
            "belongs to attention; leave it out for gqa");
    require(!s_.softmax_precision, "softmax_precision", "given",
            "belongs to attention; leave it out for gqa");
    require(s_.qk_output == QkOutput::none || s_.qk_output == QkOutput::biased ||
                s_.qk_output == QkOutput::probabilities,
            "qk_output", to_string(s_.qk_output), "must be none, biased or probabilities for gqa");
    require(s_.qk_output == QkOutput::none || s_.cache.layout == LayoutKind::full, "qk_output",
            to_string(s_.qk_output), "must be none unless cache.layout is full");
    require(
        s_.cache.quantisation.kind == QuantisationKind::none || s_.element_type != ElementType::f64,
        "cache.quantisation.kind", to_string(s_.cache.quantisation.kind),
        "must be none for element_type f64");
    require(
        s_.cache.quantisation.kind != QuantisationKind::none || !s_.cache.quantisation.per_channel,
        "cache.quantisation.per_channel", true, "must be false where kind is none");
    if (s_.qk_norm) {
      require(std::isfinite(s_.qk_norm->epsilon) && s_.qk_norm->epsilon > 0, "qk_norm.epsilon",
              s_.qk_norm->epsilon, "must be finite and above 0");
    }
    if (s_.rotary) check_rotary(*s_.rotary);
  }

  void check_rotary(const RotarySpec& rotary) {
    const std::int64_t lanes = rotary.dim == 0 ? s_.head_size : rotary.dim;
    require(lanes % 2 == 0 && lanes >= 2 && lanes <= s_.head_size, "rotary.dim", rotary.dim,
            "must be even and at most head_size ({}); 0 = the whole head, if even", s_.head_size);
    if (!rotary.position_ids) return;
    require_between("rotary.position_ids.shift", rotary.position_ids->shift, kMostShift);
    require_between("rotary.position_ids.stride", rotary.position_ids->stride, kMostStride);
    require_between("rotary.position_ids.extra_columns", rotary.position_ids->extra_columns,
                    kMostExtra);
  }

  void check_attention() {
    require_default(!s_.packed_qkv, "packed_qkv", s_.packed_qkv, "gqa");
    require_default(!s_.smooth_softmax, "smooth_softmax", s_.smooth_softmax, "gqa");
    require_default(!s_.head_sink, "head_sink", s_.head_sink, "gqa");
    require_default(!s_.rotary, "rotary", true, "gqa");
    require_default(!s_.qk_norm, "qk_norm", true, "gqa");
    require(s_.cache.quantisation == Quantisation{}, "cache.quantisation.kind",
            to_string(s_.cache.quantisation.kind), "belongs to gqa; leave it out for attention");
    require(s_.input_rank == 3 || s_.input_rank == 4, "input_rank", s_.input_rank,
            "must be 3 or 4");
    if (s_.cache.window_size) {
      require(s_.opset >= 25, "cache.window_size", *s_.cache.window_size,
              "belongs to gqa and to attention from opset 25 on; raise the opset or leave it out");
      require(*s_.cache.window_size >= 1, "cache.window_size", *s_.cache.window_size,
              "must be at least 1 for attention: left_window_size counts the keys before it");
    }
    if (!s_.right_window_size) return;
    require(s_.opset >= 25, "right_window_size", *s_.right_window_size,
            "belongs to opset 25; raise the opset or leave it out");
    require_between("right_window_size", *s_.right_window_size, kMaxLength);
  }

  void check_mask() {
    const MaskSpec& mask = s_.mask;
    require(mask.kind != MaskKind::none || mask == MaskSpec{}, "mask.kind", "none",
            "must be boolean or additive where other fields of mask are given; leave mask out");
    require(mask.rank >= 1 && mask.rank <= 4, "mask.rank", mask.rank, "must be between 1 and 4");
    require(mask.hidden_percent >= 0 && mask.hidden_percent <= 100, "mask.hidden_percent",
            mask.hidden_percent, "must be between 0 and 100");
    require(!mask.one_entry || mask.rank == 4, "mask.one_entry", mask.one_entry,
            "must be false unless mask.rank is 4");
    require(!mask.one_head || mask.rank >= 3, "mask.one_head", mask.one_head,
            "must be false unless mask.rank is 3 or 4");
    require(!mask.one_query || mask.rank >= 2, "mask.one_query", mask.one_query,
            "must be false unless mask.rank is at least 2");
    require_between("mask.missing_columns", mask.missing_columns, kMaxLength);
    if (mask.kind == MaskKind::none) return;
    if (is_gqa(s_)) {
      require(mask.kind == MaskKind::additive, "mask.kind", to_string(mask.kind),
              "must be additive for gqa: it is attention_bias");
      require(mask.rank == 4, "mask.rank", mask.rank, "must be 4 for gqa");
      require(!mask.one_query, "mask.one_query", mask.one_query,
              "must be false for gqa: attention_bias has a row for each query");
      require(!mask.empty_rows, "mask.empty_rows", mask.empty_rows,
              "must be false for gqa: its operator leaves such rows open");
      require(mask.missing_columns == 0, "mask.missing_columns", mask.missing_columns,
              "must be 0 for gqa: attention_bias has a column for each key");
    } else {
      require(mask.missing_columns == 0 || s_.opset >= 24, "mask.missing_columns",
              mask.missing_columns, "must be 0 before opset 24");
    }
  }

  void check_fill() {
    const FillSpec& fill = s_.fill;
    const bool indexed = is_position_fill(fill.kind);
    require(fill.index == 0 || (indexed && fill.index > 0 && fill.index <= kMaxLength),
            "fill.index", fill.index,
            "must be 0, or for the position fills the digit or block, at least 0");
    const bool digits = fill.kind == FillKind::position_digits;
    require(!digits || (fill.index >= 1 && fill.index <= most_digits(s_)), "fill.index", fill.index,
            "must be from 1 to {} for position_digits, which gives each digit two lanes or more of "
            "the {} of a value",
            most_digits(s_), s_.value_head_size);
    require_between("fill.first_entry", fill.first_entry, kMostFirstEntry);
    require(std::abs(fill.sink_logit) <= kMostSink, "fill.sink_logit", fill.sink_logit,
            "must be between -{0} and {0}", kMostSink);
    require(fill.sink_logit == 0 || s_.head_sink, "fill.sink_logit", fill.sink_logit,
            "must be 0 without head_sink");
    require(fill.first_entry == 0 || fill.kind != FillKind::literal, "fill.first_entry",
            fill.first_entry, "must be 0 for a literal fill");
  }

  void check_launch(const LaunchSpec& launch) {
    require(launch.threads >= 0 && launch.threads <= kMaxBlockThreads &&
                launch.threads % kWarpThreads == 0,
            "launch.threads", launch.threads, "must be a multiple of {} up to {}; 0 = any",
            kWarpThreads, kMaxBlockThreads);
    require(launch.split_positions >= 0 && launch.split_positions <= kMaxLength,
            "launch.split_positions", launch.split_positions, "must be between 0 and {}; 0 = any",
            kMaxLength);
  }

  const Scenario& s_;
};

void repair_launch(LaunchSpec& launch) {
  launch.threads = std::clamp<std::int64_t>(launch.threads, 0, kMaxBlockThreads);
  launch.threads -= launch.threads % kWarpThreads;
  launch.split_positions = std::clamp<std::int64_t>(launch.split_positions, 0, kMaxLength);
}

void repair_mask(Scenario& s) {
  MaskSpec& mask = s.mask;
  if (mask.kind == MaskKind::boolean && is_gqa(s)) mask.kind = MaskKind::none;
  if (mask.kind == MaskKind::none) {
    mask = {};
    return;
  }
  mask.rank = is_gqa(s) ? 4 : std::clamp(mask.rank, 1, 4);
  mask.hidden_percent = std::clamp(mask.hidden_percent, 0, 100);
  mask.one_entry = mask.one_entry && mask.rank == 4;
  mask.one_head = mask.one_head && mask.rank >= 3;
  mask.one_query = mask.one_query && mask.rank >= 2 && !is_gqa(s);
  mask.empty_rows = mask.empty_rows && !is_gqa(s);
  const bool may_lack = !is_gqa(s) && s.opset >= 24;
  mask.missing_columns =
      may_lack ? std::clamp<std::int64_t>(mask.missing_columns, 0, kMaxLength) : 0;
}

void repair_rotary(Scenario& s) {
  const std::int64_t widest = s.head_size - s.head_size % 2;
  if (!is_gqa(s) || widest < 2) s.rotary.reset();
  if (!s.rotary) return;
  std::int64_t& dim = s.rotary->dim;
  if (dim != 0) dim = std::clamp<std::int64_t>(dim - dim % 2, 2, widest);
  if (dim == 0 && widest != s.head_size) dim = widest;
  if (!s.rotary->position_ids) return;
  PositionIds& ids = *s.rotary->position_ids;
  ids.shift = std::clamp<std::int64_t>(ids.shift, 0, kMostShift);
  ids.stride = std::clamp<std::int64_t>(ids.stride, 0, kMostStride);
  ids.extra_columns = std::clamp<std::int64_t>(ids.extra_columns, 0, kMostExtra);
}

void repair_gqa(Scenario& s) {
  s.right_window_size.reset();
  s.input_rank = 4;
  s.softmax_precision.reset();
  // Layouts but full and paged get a window later.
  const bool windowed = s.cache.layout != LayoutKind::full && s.cache.layout != LayoutKind::paged;
  if (s.cache.window_size || windowed) s.causal = true;
  if (s.qk_output == QkOutput::raw || s.qk_output == QkOutput::softcapped ||
      s.cache.layout != LayoutKind::full) {
    s.qk_output = QkOutput::none;
  }
  if (s.element_type == ElementType::f64) s.cache.quantisation = {};
  if (s.cache.quantisation.kind == QuantisationKind::none) s.cache.quantisation = {};
  if (s.qk_norm && !(std::isfinite(s.qk_norm->epsilon) && s.qk_norm->epsilon > 0)) {
    s.qk_norm = QkNormSpec{};
  }
}

void repair_attention(Scenario& s) {
  s.packed_qkv = s.smooth_softmax = s.head_sink = false;
  s.qk_norm.reset();
  s.cache.quantisation = {};
  s.input_rank = std::clamp(s.input_rank, 3, 4);
  if (s.opset < 25) s.cache.window_size.reset(), s.right_window_size.reset();
  if (s.cache.window_size)
    s.cache.window_size = std::clamp<std::int64_t>(*s.cache.window_size, 1, kMaxLength);
  if (s.right_window_size)
    s.right_window_size = std::clamp<std::int64_t>(*s.right_window_size, 0, kMaxLength);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

std::vector<Refusal> feature_refusals(const Scenario& scenario) {
  return FeatureChecker(scenario).run();
}

void repair_features(Scenario& s) {
  const bool sound =
      s.scale && std::isfinite(*s.scale) && (is_gqa(s) ? *s.scale != 0 : *s.scale > 0);
  if (!sound) s.scale.reset();
  if (!(std::isfinite(s.softcap) && s.softcap >= 0)) s.softcap = 0;
  if (is_gqa(s)) {
    repair_gqa(s);
  } else {
    repair_attention(s);
  }
  repair_rotary(s);
  if (s.launch) repair_launch(*s.launch);
  repair_mask(s);
  const bool digits = s.fill.kind == FillKind::position_digits;
  if (digits && most_digits(s) < 1) s.fill.kind = FillKind::position_code;
  const bool indexed = is_position_fill(s.fill.kind);
  if (digits && most_digits(s) >= 1) {
    s.fill.index = std::clamp<std::int64_t>(s.fill.index, 1, most_digits(s));
  }
  s.fill.index = indexed ? std::clamp<std::int64_t>(s.fill.index, 0, kMaxLength) : 0;
  s.fill.first_entry = s.fill.kind == FillKind::literal
                           ? 0
                           : std::clamp<std::int64_t>(s.fill.first_entry, 0, kMostFirstEntry);
  const bool weighs = s.head_sink && std::isfinite(s.fill.sink_logit);
  s.fill.sink_logit = weighs ? std::clamp(s.fill.sink_logit, -kMostSink, kMostSink) : 0;
}

std::vector<Refusal> literal_refusals(const Scenario& s) {
  std::vector<Refusal> refusals;
  const bool literal = s.fill.kind == FillKind::literal;
  std::optional<Timeline> timeline;
  if (literal) timeline.emplace(s);
  std::int64_t rollbacks = 0;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    const auto* append = std::get_if<Append>(&s.steps[i]);
    const auto* past = std::get_if<Past>(&s.steps[i]);
    if (append == nullptr && past == nullptr) {
      ++rollbacks;
      continue;
    }
    if (literal && append != nullptr && append->generation != rollbacks) {
      refusals.push_back({fmt::format("steps[{}].generation", i),
                          fmt::format("{}", append->generation),
                          "must be left out where fill.kind is literal"});
    }
    const StepTensors& given = append != nullptr ? append->tensors : past->tensors;
    const StepShapes wanted = literal ? literal_shapes(s, *timeline, i) : StepShapes{};
    const auto check = [&](const char* name, const LiteralTensor& tensor,
                           const std::vector<std::int64_t>& shape) {
      if (tensor.shape == shape) return;
      refusals.push_back({fmt::format("steps[{}].{}", i, name),
                          tensor.shape.empty() ? "absent" : "shape " + shape_text(tensor.shape),
                          shape.empty()
                              ? (literal ? "must be left out: the step takes none"
                                         : "must be left out unless fill.kind is literal")
                              : fmt::format("must have the shape {}", shape_text(shape))});
    };
    check("q", given.q, wanted.q);
    check("k", given.k, wanted.k);
    check("v", given.v, wanted.v);
    check("mask", given.mask, wanted.mask);
  }
  return refusals;
}

}  // namespace kvcheck::model
