// Scenario to session, capabilities to arithmetic profile.
#include "properties/convert.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/quantisation.h"
#include "model/rotary.h"
#include "properties/parameter_tensors.h"

namespace kvcheck::properties {
namespace {

using kernels::Capabilities;
using model::Append;
using model::Operator;
using model::Past;
using model::Rollback;
using model::Scenario;

bool uniform(const std::vector<std::int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [&](std::int64_t n) { return n == counts.front(); });
}

std::int64_t largest(const std::vector<std::int64_t>& counts) {
  return *std::max_element(counts.begin(), counts.end());
}

std::int64_t smallest(const std::vector<std::int64_t>& counts) {
  return *std::min_element(counts.begin(), counts.end());
}

/// What gqa steps of this scenario need beyond the basics; empty = the target claims it all.
std::string missing_gqa_feature(const Capabilities& target, const Scenario& scenario,
                                const Append& append, const std::vector<std::int64_t>& lengths) {
  const bool first = largest(lengths) == 0;
  const bool evicts = scenario.cache.layout != model::LayoutKind::full;
  const char* chunks = scenario.causal ? "batched_chunks" : "bidirectional_chunks";
  if (smallest(append.tokens) == 0) {
    if (!target.has("idle_entries")) return "idle_entries";
    if (!scenario.causal && !target.has(chunks)) return chunks;
  }
  if (scenario.batch == 1) return "";
  if (first && !uniform(append.tokens)) {
    const char* feature = evicts ? "ragged_prompt_block" : "ragged_prompt";
    return target.has(feature) ? "" : feature;
  }
  const bool single = uniform(append.tokens) && append.tokens.front() == 1;
  if (!first && !single && !target.has(chunks)) return chunks;
  return "";
}

/// Said of layouts that no session can carry: they are not asked for, whatever the target claims.
constexpr std::string_view kModelAlone = " (only the model answers for it so far)";

/// The first optional feature of the operator that the scenario uses and the target does not
/// claim; empty = none.
std::string missing_operator_feature(const Capabilities& target, const Scenario& s) {
  const bool gqa = s.op == Operator::gqa;
  const std::pair<bool, std::string_view> uses[] = {
      {gqa && !s.causal, "bidirectional"},
      {gqa && s.cache.window_size == 0, "empty_window"},
      {!gqa && s.cache.window_size, "attention_window"},
      {s.right_window_size.has_value(), "right_window"},
      {gqa && s.mask.kind != model::MaskKind::none, "attention_bias"},
      {s.mask.one_entry || s.mask.one_head, "mask_broadcast"},
      {s.mask.rank == 1 || s.mask.one_query, "mask_one_row"},
      {s.mask.missing_columns > 0, "short_mask"},
      {s.input_rank == 3, "input_rank_3"},
      {s.packed_qkv, "packed_qkv"},
      {s.softcap != 0, "softcap"},
      {s.smooth_softmax, "smooth_softmax"},
      {s.head_sink, "head_sink"},
      {s.rotary.has_value(), "rotary"},
      {s.qk_norm.has_value(), "qk_norm"},
      {s.qk_output != model::QkOutput::none, "qk_output"},
      {s.softmax_precision.has_value(), "softmax_precision"},
      {s.launch.has_value(), "launches"},
  };
  for (const auto& [used, feature] : uses) {
    if (used && !claims(target, s, feature)) return std::string(feature);
  }
  return "";
}

/// The kind of cache that the target does not claim; empty = it does.
std::string missing_quantisation(const Capabilities& target, const Scenario& s) {
  const auto kind = s.cache.quantisation.kind;
  if (kind != model::QuantisationKind::none) {
    const std::string feature = fmt::format("cache_{}", to_string(kind));
    return target.has(feature) ? "" : feature;
  }
  return target.has("cache_quantised_only") ? "a cache that is not quantised" : "";
}

/// The rule of Capabilities::head_size_multiple_with that the scenario breaks; empty = none.
std::string broken_multiple(const Capabilities& target, const Scenario& s) {
  if (target.head_size_multiple_with.empty()) return "";
  const auto broken = [&](const std::string& what, std::int64_t lanes) {
    const auto found = target.head_size_multiple_with.find(what);
    return found != target.head_size_multiple_with.end() && lanes % found->second != 0;
  };
  if (s.rotary) {
    const std::int64_t lanes = model::rotary_lanes(s);
    if (broken("rotary", s.head_size)) return fmt::format("head_size {} with rotary", s.head_size);
    if (broken("rotary", lanes)) return fmt::format("rotary.dim {}", lanes);
  }
  const std::string cache =
      fmt::format("{} cache_{}", to_string(s.cache.layout), to_string(s.cache.quantisation.kind));
  return broken(cache, s.head_size) ? fmt::format("head_size {} with {}", s.head_size, cache) : "";
}

/// Whether position_ids turn tokens by the step that brings them. The first prompt counts up by
/// one from its first element, later steps read the list as flat (model/rotary.h).
bool turns_depend_on_steps(const Scenario& s) {
  if (!s.rotary || !s.rotary->position_ids) return false;
  const model::PositionIds& ids = *s.rotary->position_ids;
  return ids.stride != 1 || (ids.extra_columns > 0 && s.batch > 1);
}

bool only_asks(const Append& append) {
  return largest(append.tokens) == 0 && largest(append.queries) > 0;
}

std::string missing_step_feature(const Capabilities& target, const Scenario& scenario) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(scenario.batch), 0);
  for (const model::Step& step : scenario.steps) {
    if (const auto* past = std::get_if<Past>(&step)) {
      if (!target.has("load")) return "load";
      lengths = past->tokens;
    } else if (const auto* rollback = std::get_if<Rollback>(&step)) {
      if (!target.has("rollback")) return "rollback";
      for (std::size_t b = 0; b < lengths.size(); ++b) lengths[b] -= rollback->tokens[b];
    } else {
      const auto& append = std::get<Append>(step);
      if (largest(append.queries) == 0 && !target.has("queryless_append"))
        return "queryless_append";
      if (scenario.op == Operator::gqa && only_asks(append)) {
        if (!target.has("shared_kv")) return "shared_kv";
        const bool many = scenario.batch > 1 && largest(append.queries) > 1;
        if (many && !target.has("batched_questions")) return "batched_questions";
      } else if (!scenario.nonpad_kv_seqlen && only_asks(append)) {
        const bool flat = scenario.input_rank == 3 && target.has("no_empty_append_rank_3");
        if (flat || !claims(target, scenario, "empty_append")) return "empty_append";
      } else if (scenario.op == Operator::gqa) {
        const std::string missing = missing_gqa_feature(target, scenario, append, lengths);
        if (!missing.empty()) return missing;
      } else if (append.queries != append.tokens && largest(append.queries) > 0 &&
                 !scenario.nonpad_kv_seqlen && !target.has("queries_differ")) {
        return "queries_differ";
      }
      for (std::size_t b = 0; b < lengths.size(); ++b) lengths[b] += append.tokens[b];
    }
  }
  return "";
}

/// What the target declares where the softmax has a type of its own ("attention f64 softmax f16",
/// with the opset after the type where that decides), else for operator, type and opset.
const kernels::Arithmetic& declared_arithmetic(const Capabilities& target, const Scenario& s) {
  const auto op = to_string(s.op), type = to_string(s.element_type);
  if (s.softmax_precision && !target.arithmetic_where.empty()) {
    const auto precision = to_string(*s.softmax_precision);
    for (const std::string& where :
         {fmt::format("{} {} {} softmax {}", op, type, s.opset, precision),
          fmt::format("{} {} softmax {}", op, type, precision)}) {
      const auto found = target.arithmetic_where.find(where);
      if (found != target.arithmetic_where.end()) return found->second;
    }
  }
  return target.arithmetic_of(op, type, s.opset);
}

}  // namespace

kernels::ElementType to_kernel(model::ElementType type) {
  switch (type) {
    case model::ElementType::f32:
      return kernels::ElementType::f32;
    case model::ElementType::f16:
      return kernels::ElementType::f16;
    case model::ElementType::bf16:
      return kernels::ElementType::bf16;
    case model::ElementType::f64:
      return kernels::ElementType::f64;
  }
  return kernels::ElementType::f32;
}

model::ElementType to_model(kernels::ElementType type) {
  switch (type) {
    case kernels::ElementType::f16:
      return model::ElementType::f16;
    case kernels::ElementType::bf16:
      return model::ElementType::bf16;
    case kernels::ElementType::f64:
      return model::ElementType::f64;
    default:
      return model::ElementType::f32;
  }
}

kernels::ElementType storage_type(const Scenario& scenario) {
  switch (scenario.cache.quantisation.kind) {
    case model::QuantisationKind::int8:
      return kernels::ElementType::i8;
    case model::QuantisationKind::int4:
      return kernels::ElementType::u8;
    case model::QuantisationKind::fp8:
      return kernels::ElementType::f8e4m3;
    case model::QuantisationKind::none:
      break;
  }
  return to_kernel(scenario.element_type);
}

std::int64_t stored_lanes(const Scenario& scenario, std::int64_t lanes) {
  const auto kind = scenario.cache.quantisation.kind;
  return kind == model::QuantisationKind::none ? lanes : model::row_bytes(kind, lanes);
}

kernels::SessionConfig session_config(const Scenario& scenario, const model::Timeline& timeline,
                                      double poison) {
  kernels::SessionConfig config;
  config.op = to_string(scenario.op);
  config.opset = scenario.opset;
  config.batch = scenario.batch;
  config.query_heads = scenario.query_heads;
  config.kv_heads = scenario.kv_heads;
  config.head_size = scenario.head_size;
  config.value_head_size = scenario.value_head_size;
  config.element_type = to_kernel(scenario.element_type);
  config.layout = to_string(scenario.cache.layout);
  config.capacity = timeline.buffer_rows();
  config.window_size = scenario.cache.window_size.value_or(-1);
  config.causal = scenario.causal;
  config.nonpad_kv_seqlen = scenario.nonpad_kv_seqlen;
  config.share_buffers = scenario.share_buffers;
  config.mask = to_string(scenario.mask.kind);
  config.scale = scenario.scale.value_or(0);
  config.initial_poison = poison;
  config.right_window_size = scenario.right_window_size.value_or(-1);
  config.softcap = scenario.softcap;
  config.smooth_softmax = scenario.smooth_softmax;
  config.input_rank = scenario.input_rank;
  config.packed_qkv = scenario.packed_qkv;
  config.qk_output = to_string(scenario.qk_output);
  if (scenario.softmax_precision) config.softmax_precision = to_kernel(*scenario.softmax_precision);
  if (scenario.head_sink) config.head_sink = head_sink(scenario);
  if (scenario.rotary) config.rotary = rotary_config(scenario, timeline);
  if (scenario.qk_norm) config.qk_norm = qk_norm_config(scenario);
  config.quantisation = quantisation_config(scenario);
  if (const auto& launch = scenario.launch) {
    config.launch = {std::string(to_string(launch->order)), launch->seed,
                     std::string(to_string(launch->kernel)), launch->threads,
                     launch->split_positions};
  }
  return config;
}

model::ArithmeticProfile arithmetic_profile(const Capabilities& target, const Scenario& scenario) {
  const kernels::Arithmetic& declared = declared_arithmetic(target, scenario);
  const double width = scenario.element_type == model::ElementType::f64 ? 0x1p-29 : 1.0;
  model::ArithmeticProfile profile;
  profile.accumulator_roundoff = declared.accumulator_roundoff * width;
  profile.truncates = declared.truncates;
  profile.operand_roundoff = declared.operand_roundoff * width;
  profile.product_roundoff = declared.product_roundoff * width;
  profile.logit_roundoff = declared.logit_roundoff * width;
  profile.probability_roundoff = declared.probability_roundoff * width;
  profile.sums_stored_weights = declared.sums_stored_weights;
  profile.exp_error = declared.exp_error * width;
  profile.tanh_error = declared.tanh_error * width;
  profile.exp_flushes = declared.exp_flushes;
  profile.base_two = declared.base_two;
  profile.fused_shift = declared.fused_shift;
  profile.scale_on_operands = declared.scale_on_operands;
  profile.exact_products = declared.exact_products;
  if (scenario.cache.quantisation.kind != model::QuantisationKind::none) {
    profile.dequantise_roundings = declared.dequantise_roundings;
  }
  profile.dot_ways = declared.dot_ways;
  profile.dot_block = declared.dot_block;
  profile.value_block = declared.value_block;
  profile.max_rescales = declared.max_rescales;
  profile.rescale_block = declared.rescale_block;
  profile.splits = declared.splits;
  profile.merges_by_lse = declared.merges_by_lse;
  profile.output_type = scenario.element_type;
  return profile;
}

bool bears_nan(const Capabilities& target, const Scenario& scenario) {
  return target.has("nan_safe") || (scenario.op == Operator::gqa && target.has("nan_safe_gqa"));
}

bool bears_huge(const Capabilities& target, const Scenario& scenario) {
  return scenario.op == Operator::gqa || !claims(target, scenario, "huge_has_influence");
}

bool claims(const Capabilities& target, const Scenario& scenario, std::string_view feature) {
  return target.has_at(feature, scenario.opset, to_string(scenario.element_type));
}

std::string fixed_tensors_reason(const Scenario& scenario) {
  return scenario.fill.kind == model::FillKind::literal
             ? "the tensors of the scenario are spelled out"
             : "";
}

std::string fixed_data_reason(const Scenario& scenario) {
  if (turns_depend_on_steps(scenario)) return "position_ids turn a token by the step it comes in";
  if (scenario.mask.missing_columns > 0 && !scenario.nonpad_kv_seqlen) {
    return "the mask lacks columns of the length that each step reaches";
  }
  return fixed_tensors_reason(scenario);
}

std::string unsupported_reason(const Capabilities& target, const Scenario& scenario) {
  const std::string op(to_string(scenario.op));
  const std::string type(to_string(scenario.element_type));
  const std::string layout(to_string(scenario.cache.layout));
  if (!target.operators.count(op)) return fmt::format("operator {}", op);
  const auto where = target.element_types_where.find(op);
  if (!target.element_types.count(type) ||
      (where != target.element_types_where.end() && !where->second.count(type))) {
    return fmt::format("element_type {}", type);
  }
  if (!target.layouts.count(layout)) return fmt::format("cache.layout {}", layout);
  // Requests and comparisons of rows take row r of an entry for position first + r.
  using enum model::LayoutKind;
  const auto kind = scenario.cache.layout;
  if (kind == ring || kind == sinks || kind == paged) {
    return fmt::format("cache.layout {}{}", layout, kModelAlone);
  }
  if (scenario.op == Operator::attention && !target.opsets.count(scenario.opset)) {
    return fmt::format("opset {}", scenario.opset);
  }
  if (scenario.op == Operator::gqa && scenario.head_size % target.head_size_multiple != 0) {
    return fmt::format("head_size {} (a multiple of {} is needed)", scenario.head_size,
                       target.head_size_multiple);
  }
  if (!scenario.share_buffers && !target.has("separate_buffers")) return "separate_buffers";
  if (scenario.nonpad_kv_seqlen && !target.has("nonpad_kv_seqlen")) return "nonpad_kv_seqlen";
  if (scenario.mask.kind == model::MaskKind::boolean && !target.has("mask_boolean")) {
    return "mask_boolean";
  }
  if (scenario.op == Operator::attention && scenario.mask.kind == model::MaskKind::additive &&
      !target.has("mask_additive")) {
    return "mask_additive";
  }
  if (scenario.poison == model::Poison::huge && !bears_huge(target, scenario)) return "poison huge";
  if (scenario.poison == model::Poison::nan && !bears_nan(target, scenario)) return "poison nan";
  if (scenario.softmax_precision == model::ElementType::bf16 &&
      target.has("no_softmax_precision_bf16")) {
    return "softmax_precision bf16";
  }
  std::string feature = missing_quantisation(target, scenario);
  if (feature.empty() && scenario.op == Operator::gqa) feature = broken_multiple(target, scenario);
  if (feature.empty()) feature = missing_operator_feature(target, scenario);
  if (!feature.empty()) return feature;
  return missing_step_feature(target, scenario);
}

}  // namespace kvcheck::properties
