#include "model/calls/gqa_rules.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/calls/gqa_length_rules.h"

namespace kvcheck::model {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

using enum GqaRule;

std::string upper(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

bool is_float(TensorType type) { return type == TensorType::f32 || type == TensorType::f16; }

class Checker {
 public:
  explicit Checker(const GqaCall& call)
      : c_(call),
        k_quant_type_(upper(call.k_quant_type)),
        v_quant_type_(upper(call.v_quant_type)),
        quantised_(k_quant_type_ != "NONE"),
        windowed_(call.sliding_window_cache == 1),
        packed_(!call.key && !call.value) {}

  std::vector<GqaRuleBreak> run() {
    attributes();
    outputs();
    presence();
    types();
    ranks();
    // Each group below relies on what those before it ask for.
    if (breaks_.empty()) hidden_sizes();
    if (breaks_.empty()) key_and_value();
    if (breaks_.empty()) past();
    if (breaks_.empty()) other_shapes();
    if (breaks_.empty()) return check_lengths(c_, sizes_);
    return std::move(breaks_);
  }

 private:
  template <class T>
  void require(GqaRule rule, bool ok, std::string_view field, const T& value, std::string remedy) {
    if (!ok) {
      breaks_.push_back({rule, std::string(field), fmt::format("{}", value), std::move(remedy)});
    }
  }

  void require_shape(GqaRule rule, bool ok, std::string_view field, const TensorInfo& tensor,
                     std::string remedy) {
    require(rule, ok, field, to_string(tensor.shape), std::move(remedy));
  }

  void require_together(GqaRule rule, bool first, bool second, std::string_view fields) {
    require(rule, first == second, fields, first ? "the first alone" : "the second alone",
            "must be both given or both left out");
  }

  void attributes() {
    for (const auto& [name, count] :
         {std::pair("num_heads", c_.num_heads), std::pair("kv_num_heads", c_.kv_num_heads)}) {
      require(head_counts, count >= 1 && count <= kInt32Max, name, count,
              "must be at least 1 and fit in 32 bits");
    }
    if (c_.kv_num_heads > 0) {
      require(heads_multiple, c_.num_heads % c_.kv_num_heads == 0, "num_heads", c_.num_heads,
              fmt::format("must be a multiple of kv_num_heads ({})", c_.kv_num_heads));
    }
    require(causal_value, c_.causal == 0 || c_.causal == 1, "causal", c_.causal, "must be 0 or 1");
    require(causal_window, c_.causal != 0 || c_.local_window_size == -1, "local_window_size",
            c_.local_window_size, "must be -1 when causal is 0");
    for (const std::string& name : {k_quant_type_, v_quant_type_}) {
      require(quant_type_name, name == "NONE" || name == "PER_TENSOR" || name == "PER_CHANNEL",
              "k_quant_type, v_quant_type", name, "must be NONE, PER_TENSOR or PER_CHANNEL");
    }
    require(quant_types_equal, k_quant_type_ == v_quant_type_, "v_quant_type", v_quant_type_,
            fmt::format("must be that of keys, {}", k_quant_type_));
    const std::int64_t bits = c_.kv_cache_bit_width;
    require(bit_width, !quantised_ || bits == 4 || bits == 8, "kv_cache_bit_width", bits,
            "must be 4 or 8 with a quantised cache");
    require(bit_width_unused, quantised_ || bits == 0, "kv_cache_bit_width", bits,
            "must be left out without a quantised cache");
    require(qk_output_value, c_.qk_output >= 0 && c_.qk_output <= 2, "qk_output", c_.qk_output,
            "must be 0, 1 or 2");
    if (!windowed_) return;
    require(window_positive, c_.local_window_size > 0, "local_window_size", c_.local_window_size,
            "must be above 0 with sliding_window_cache");
    require(windowed_qk_output, c_.qk_output == 0, "qk_output", c_.qk_output,
            "must be 0 with sliding_window_cache");
  }

  void outputs() {
    const bool presents = c_.present_key && c_.present_value;
    require(qk_output_missing, c_.qk_output <= 0 || c_.qk_output > 2 || c_.output_qk, "output_qk",
            "absent", "must be asked for where qk_output is not 0");
    require(qk_output_unasked, c_.qk_output != 0 || !c_.output_qk, "output_qk", "present",
            "needs qk_output 1 or 2");
    require_together(presents_together, c_.present_key, c_.present_value,
                     "present_key, present_value");
    if (c_.present_key != c_.present_value) return;
    require(quantised_presents, !quantised_ || presents, "present_key", "absent",
            "must be asked for with a quantised cache");
    require(windowed_presents, !windowed_ || presents, "present_key", "absent",
            "must be asked for with sliding_window_cache");
    require(query_seqlens_presents, !c_.query_seqlens || presents, "present_key", "absent",
            "must be asked for with query_seqlens");
  }

  void presence() {
    require_together(key_value_together, c_.key.has_value(), c_.value.has_value(), "key, value");
    require_together(past_together, c_.past_key.has_value(), c_.past_value.has_value(),
                     "past_key, past_value");
    require_together(cos_sin_together, c_.cos_cache.has_value(), c_.sin_cache.has_value(),
                     "cos_cache, sin_cache");
    require(rotary_caches, c_.do_rotary != 1 || c_.cos_cache || c_.sin_cache, "cos_cache", "absent",
            "must be given with do_rotary");
    require(qk_norm, !c_.q_norm_weight && !c_.k_norm_weight, "q_norm_weight, k_norm_weight",
            "present", "must be left out: no CPU kernel takes them");
    if (!c_.past_key && !c_.past_value) {
      require(windowed_past, !windowed_, "past_key", "absent",
              "must be given with sliding_window_cache; it may have no rows in use");
      // A windowed cache is refused for that alone.
      require(quantised_past, !quantised_ || windowed_, "past_key", "absent",
              "must be given with a quantised cache; it may have length 0");
      require(query_seqlens_past, !c_.query_seqlens, "past_key", "absent",
              "must be given with query_seqlens");
    }
    require(query_seqlens_causal, !c_.query_seqlens || c_.causal == 1, "causal", c_.causal,
            "must be 1 with query_seqlens");
    if (!quantised_) return;
    for (const auto& [name, scale] :
         {std::pair("k_scale", &c_.k_scale), std::pair("v_scale", &c_.v_scale)}) {
      require(scales_missing, scale->has_value(), name, "absent",
              "must be given with a quantised cache");
    }
  }

  void require_type(GqaRule rule, std::string_view field, const std::optional<TensorInfo>& tensor,
                    TensorType wanted) {
    if (!tensor) return;
    require(rule, tensor->type == wanted, field, to_string(tensor->type),
            fmt::format("must be {}", to_string(wanted)));
  }

  void types() {
    require(query_type, is_float(c_.query.type), "query", to_string(c_.query.type),
            "must be f32 or f16 (CPU)");
    require_type(input_type, "key", c_.key, c_.query.type);
    require_type(input_type, "value", c_.value, c_.query.type);
    require_type(input_type, "cos_cache", c_.cos_cache, c_.query.type);
    require_type(input_type, "sin_cache", c_.sin_cache, c_.query.type);
    require_type(input_type, "attention_bias", c_.attention_bias, c_.query.type);
    require_type(input_type, "head_sink", c_.head_sink, c_.query.type);
    require_type(scale_type, "k_scale", c_.k_scale, TensorType::f32);
    require_type(scale_type, "v_scale", c_.v_scale, TensorType::f32);
    require_type(index_type, "seqlens_k", c_.seqlens_k, TensorType::i32);
    require_type(index_type, "total_sequence_length", c_.total_sequence_length, TensorType::i32);
    require_type(index_type, "query_seqlens", c_.query_seqlens, TensorType::i32);
    require_type(index_type, "position_ids", c_.position_ids, TensorType::i64);
    if (!c_.past_key || !c_.past_value) return;
    const TensorType type = c_.past_key->type;
    require_type(past_types_equal, "past_value", c_.past_value, type);
    if (!quantised_) {
      require(cache_type, is_float(type), "past_key", to_string(type),
              "must be f32 or f16 without quantisation (CPU)");
    } else if (c_.kv_cache_bit_width == 8 || c_.kv_cache_bit_width == 4) {
      require_type(cache_type, "past_key", c_.past_key,
                   c_.kv_cache_bit_width == 8 ? TensorType::i8 : TensorType::u8);
    }
  }

  void require_rank(GqaRule rule, std::string_view field, const std::optional<TensorInfo>& tensor,
                    std::int64_t least, std::int64_t most) {
    if (!tensor) return;
    require_shape(rule, tensor->rank() >= least && tensor->rank() <= most, field, *tensor,
                  least == most ? fmt::format("must have rank {}", least)
                                : fmt::format("must have rank {} or more", least));
    const auto negative = std::any_of(tensor->shape.begin(), tensor->shape.end(),
                                      [](std::int64_t size) { return size < 0; });
    require_shape(dimensions, !negative, field, *tensor, "must have no negative dimension");
  }

  void ranks() {
    require_rank(query_rank, "query", c_.query, 3, 3);
    require_rank(key_value_rank, "key", c_.key, 3, 3);
    require_rank(key_value_rank, "value", c_.value, 3, 3);
    require_rank(past_rank, "past_key", c_.past_key, 4, 4);
    require_rank(past_rank, "past_value", c_.past_value, 4, 4);
    require_rank(seqlens_rank, "seqlens_k", c_.seqlens_k, 1, kInt32Max);
    require_rank(total_one_element, "total_sequence_length", c_.total_sequence_length, 0,
                 kInt32Max);
    require_rank(rotary_rank, "cos_cache", c_.cos_cache, 2, kInt32Max);
    require_rank(rotary_shapes_equal, "sin_cache", c_.sin_cache, 0, kInt32Max);
    require_rank(position_ids_rank, "position_ids", c_.position_ids, 2, kInt32Max);
    require_rank(bias_rank, "attention_bias", c_.attention_bias, 4, 4);
    require_rank(sink_rank, "head_sink", c_.head_sink, 1, 1);
    require_rank(scale_count, "k_scale", c_.k_scale, 0, kInt32Max);
    require_rank(scale_count, "v_scale", c_.v_scale, 0, kInt32Max);
    require_rank(query_seqlens_shape, "query_seqlens", c_.query_seqlens, 1, 1);
  }

  void hidden_sizes() {
    sizes_.batch = c_.query.dim(0);
    sizes_.step = c_.query.dim(1);
    const std::int64_t heads = c_.num_heads + (packed_ ? 2 * c_.kv_num_heads : 0);
    sizes_.head_size = c_.query.dim(2) / heads;
    require(batch_positive, sizes_.batch >= 1, "query dimension 0", sizes_.batch,
            "must be at least 1");
    require(hidden_size, c_.query.dim(2) % heads == 0, "query dimension 2", c_.query.dim(2),
            fmt::format("must be a multiple of the {} heads in it", heads));
    if (!breaks_.empty()) return;
    require(head_size_multiple, sizes_.head_size > 0 && sizes_.head_size % 8 == 0, "head size",
            sizes_.head_size, "must be a multiple of 8, and not 0");
  }

  void key_and_value() {
    sizes_.new_keys = packed_ ? sizes_.step : c_.key->dim(1);
    if (packed_) return;
    for (const auto& [name, tensor] :
         {std::pair("key", &*c_.key), std::pair("value", &*c_.value)}) {
      require_shape(key_batch, tensor->dim(0) == sizes_.batch, name, *tensor,
                    fmt::format("must have batch {}, as query", sizes_.batch));
    }
    require_shape(value_length, c_.value->dim(1) == sizes_.new_keys, "value", *c_.value,
                  fmt::format("must have length {}, as key", sizes_.new_keys));
    // At most the hidden size of query, so that nothing overflows.
    const std::int64_t hidden = c_.kv_num_heads * sizes_.head_size;
    require_shape(key_hidden, c_.key->dim(2) == hidden, "key", *c_.key,
                  fmt::format("must have hidden size {}", hidden));
    require_shape(value_hidden, c_.value->dim(2) == c_.key->dim(2), "value", *c_.value,
                  fmt::format("must have hidden size {}, as key", c_.key->dim(2)));
    // Where several rules speak of a length, the first of them.
    if (!c_.past_key) {
      require(length_without_past, sizes_.new_keys == sizes_.step, "key dimension 1",
              sizes_.new_keys, fmt::format("must be {}, as query, without a past", sizes_.step));
    } else if (sizes_.new_keys != sizes_.step && sizes_.new_keys != 0) {
      require(length_with_past, false, "key dimension 1", sizes_.new_keys,
              fmt::format("must be {}, as query, or 0 for shared KV", sizes_.step));
    } else {
      require(windowed_shared_kv, !windowed_ || sizes_.new_keys != 0, "key dimension 1",
              sizes_.new_keys, "must not be 0 with sliding_window_cache");
      require(query_seqlens_new_keys, !c_.query_seqlens || sizes_.new_keys == sizes_.step,
              "key dimension 1", sizes_.new_keys,
              fmt::format("must be {}, as query, with query_seqlens", sizes_.step));
    }
  }

  void past() {
    if (!c_.past_key) return;
    sizes_.past_rows = c_.past_key->dim(2);
    const bool halved = quantised_ && c_.kv_cache_bit_width == 4;
    const std::int64_t width = halved ? sizes_.head_size / 2 : sizes_.head_size;
    for (const auto& [name, tensor] :
         {std::pair("past_key", &*c_.past_key), std::pair("past_value", &*c_.past_value)}) {
      require_shape(past_batch, tensor->dim(0) == sizes_.batch, name, *tensor,
                    fmt::format("must have batch {}, as query", sizes_.batch));
      require_shape(past_heads, tensor->dim(1) == c_.kv_num_heads, name, *tensor,
                    fmt::format("must have {} heads", c_.kv_num_heads));
      require_shape(past_head_size, tensor->dim(3) == width, name, *tensor,
                    fmt::format("must have last dimension {}", width));
    }
    require_shape(past_length, c_.past_value->dim(2) == sizes_.past_rows, "past_value",
                  *c_.past_value, fmt::format("must have {} rows, as past_key", sizes_.past_rows));
    if (!windowed_) return;
    require(windowed_capacity, sizes_.past_rows >= c_.local_window_size, "past_key dimension 2",
            sizes_.past_rows,
            fmt::format("must be at least local_window_size ({})", c_.local_window_size));
    if (!quantised_) return;
    const std::int64_t unit = halved ? 32 : 16;
    require(windowed_head_size, sizes_.head_size % unit == 0, "head size", sizes_.head_size,
            fmt::format("must be a multiple of {} for a windowed cache of {} bits", unit,
                        c_.kv_cache_bit_width));
  }

  void other_shapes();
  void rotary_shapes();

  const GqaCall& c_;
  std::string k_quant_type_;
  std::string v_quant_type_;
  bool quantised_;
  bool windowed_;
  bool packed_;
  GqaSizes sizes_;
  std::vector<GqaRuleBreak> breaks_;
};

void Checker::rotary_shapes() {
  if (!c_.cos_cache) return;
  require(rotary_head_size, sizes_.head_size % 16 == 0, "head size", sizes_.head_size,
          "must be a multiple of 16 with rotary caches");
  require_shape(rotary_shapes_equal, c_.sin_cache->shape == c_.cos_cache->shape, "sin_cache",
                *c_.sin_cache, "must have the shape of cos_cache");
  const std::int64_t width = c_.cos_cache->dim(1);
  require(rotary_width, width <= sizes_.head_size / 2 && width % 8 == 0, "cos_cache dimension 1",
          width, fmt::format("must be a multiple of 8 up to {}", sizes_.head_size / 2));
}

void Checker::other_shapes() {
  if (quantised_) {
    const std::int64_t count =
        k_quant_type_ == "PER_CHANNEL" ? c_.kv_num_heads * sizes_.head_size : 1;
    for (const auto& [name, scale] :
         {std::pair("k_scale", &*c_.k_scale), std::pair("v_scale", &*c_.v_scale)}) {
      require_shape(scale_count, scale->elements() == count, name, *scale,
                    fmt::format("must hold {} elements", count));
    }
  }
  const TensorInfo& lengths = c_.seqlens_k;
  if (lengths.elements() != sizes_.batch) {
    require_shape(seqlens_count, false, "seqlens_k", lengths,
                  fmt::format("must hold {} elements", sizes_.batch));
  } else {
    const bool plain =
        std::all_of(lengths.shape.begin(), lengths.shape.end(),
                    [&](std::int64_t size) { return size == 1 || size == sizes_.batch; });
    require_shape(seqlens_shape, plain, "seqlens_k", lengths,
                  fmt::format("must have no dimension but 1 and {}", sizes_.batch));
  }
  if (c_.query_seqlens) {
    require_shape(query_seqlens_shape, c_.query_seqlens->dim(0) == sizes_.batch, "query_seqlens",
                  *c_.query_seqlens, fmt::format("must have shape ({})", sizes_.batch));
  }
  const TensorInfo& total = c_.total_sequence_length;
  require_shape(total_one_element, total.rank() <= 1 && total.elements() == 1,
                "total_sequence_length", total, "must be a scalar or of shape (1)");
  rotary_shapes();
  if (c_.position_ids) {
    require_shape(position_ids_batch, c_.position_ids->dim(0) == sizes_.batch, "position_ids",
                  *c_.position_ids, fmt::format("must have batch {}", sizes_.batch));
    require_shape(position_ids_length, c_.position_ids->dim(1) >= sizes_.step, "position_ids",
                  *c_.position_ids, fmt::format("must have at least {} columns", sizes_.step));
  }
  if (c_.attention_bias) {
    const TensorInfo& bias = *c_.attention_bias;
    require_shape(bias_batch, bias.dim(0) == sizes_.batch || bias.dim(0) == 1, "attention_bias",
                  bias, fmt::format("must have dimension 0 of 1 or {}", sizes_.batch));
    require_shape(bias_heads, bias.dim(1) == c_.num_heads || bias.dim(1) == 1, "attention_bias",
                  bias, fmt::format("must have dimension 1 of 1 or {}", c_.num_heads));
    require_shape(bias_step, bias.dim(2) == sizes_.step, "attention_bias", bias,
                  fmt::format("must have dimension 2 of {}", sizes_.step));
  }
  if (c_.head_sink) {
    require_shape(sink_count, c_.head_sink->dim(0) == c_.num_heads, "head_sink", *c_.head_sink,
                  fmt::format("must have shape ({})", c_.num_heads));
  }
}

}  // namespace

std::vector<GqaRuleBreak> check(const GqaCall& call) { return Checker(call).run(); }

}  // namespace kvcheck::model
