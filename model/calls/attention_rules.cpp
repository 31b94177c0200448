#include "model/calls/attention_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace kvcheck::model {
namespace {

using enum AttentionRule;

bool is_float(TensorType type) {
  return type == TensorType::f32 || type == TensorType::f16 || type == TensorType::f64 ||
         type == TensorType::bf16;
}

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return a > kMost - b ? kMost : a + b;
}

/// A head count of 0 counts as absent.
bool agrees(const std::optional<std::int64_t>& count, std::int64_t heads) {
  return count.value_or(0) == 0 || *count == heads;
}

class Checker {
 public:
  Checker(const AttentionCall& call, Strictness strictness)
      : c_(call), cpu_(strictness == Strictness::onnxruntime_cpu) {}

  std::vector<AttentionRuleBreak> run() {
    attributes();
    presence();
    types();
    ranks();
    // Each group below relies on what those before it ask for.
    if (breaks_.empty()) heads();
    if (breaks_.empty()) sizes();
    if (breaks_.empty()) past();
    if (breaks_.empty()) mask();
    if (breaks_.empty()) nonpad();
    if (cpu_ && breaks_.empty()) cpu();
    return std::move(breaks_);
  }

 private:
  template <class T>
  void require(AttentionRule rule, bool ok, std::string_view field, const T& value,
               std::string remedy) {
    if (!ok) {
      breaks_.push_back({rule, std::string(field), fmt::format("{}", value), std::move(remedy)});
    }
  }

  void require_shape(AttentionRule rule, bool ok, std::string_view field, const TensorInfo& tensor,
                     std::string remedy) {
    require(rule, ok, field, to_string(tensor.shape), std::move(remedy));
  }

  void attributes() {
    require(opset, c_.opset >= 23 && c_.opset <= 25, "opset", c_.opset, "must be 23, 24 or 25");
    for (const auto& [name, size] : {std::pair("left_window_size", c_.left_window_size),
                                     std::pair("right_window_size", c_.right_window_size)}) {
      if (!size) continue;
      require(window_opset, c_.opset >= 25, name, *size, "must be left out before opset 25");
      require(window_value, *size >= -1, name, *size, "must be at least 0, or -1 for no window");
    }
    require(output_mode, c_.qk_matmul_output_mode >= 0 && c_.qk_matmul_output_mode <= 3,
            "qk_matmul_output_mode", c_.qk_matmul_output_mode, "must be between 0 and 3");
    if (c_.softmax_precision) {
      constexpr std::array<std::int64_t, 4> kFloatTypes{1, 10, 11, 16};
      require(AttentionRule::softmax_precision,
              std::find(kFloatTypes.begin(), kFloatTypes.end(), *c_.softmax_precision) !=
                  kFloatTypes.end(),
              "softmax_precision", *c_.softmax_precision, "must be 1, 10, 11 or 16");
    }
  }

  void presence() {
    const bool past = c_.past_key || c_.past_value;
    require(past_together, c_.past_key.has_value() == c_.past_value.has_value(),
            "past_key, past_value", c_.past_key ? "the first alone" : "the second alone",
            "must be both given or both left out");
    require(presents_together, c_.opset < 25 || c_.present_key == c_.present_value,
            "present_key, present_value", c_.present_key ? "the first alone" : "the second alone",
            "must be both asked for or neither in opset 25");
    if (!c_.nonpad_kv_seqlen) return;
    require(nonpad_opset, c_.opset >= 24, "nonpad_kv_seqlen", "present",
            "must be left out before opset 24");
    require(nonpad_past, !past, "nonpad_kv_seqlen", "present", "must be left out with a past");
    // The pages of opset 24 only advise against it.
    require(nonpad_presents, c_.opset < 25 || past || !(c_.present_key && c_.present_value),
            "nonpad_kv_seqlen", "present", "must be left out with present outputs in opset 25");
  }

  void require_type(AttentionRule rule, std::string_view field,
                    const std::optional<TensorInfo>& tensor, TensorType wanted) {
    if (!tensor) return;
    require(rule, tensor->type == wanted, field, to_string(tensor->type),
            fmt::format("must be {}", to_string(wanted)));
  }

  void types() {
    require(float_type, is_float(c_.q.type), "Q", to_string(c_.q.type), "must be a float type");
    require(float_type, is_float(c_.v.type), "V", to_string(c_.v.type), "must be a float type");
    require_type(query_key_type, "K", c_.k, c_.q.type);
    require_type(past_type, "past_key", c_.past_key, c_.k.type);
    require_type(past_type, "past_value", c_.past_value, c_.v.type);
    require_type(nonpad_type, "nonpad_kv_seqlen", c_.nonpad_kv_seqlen, TensorType::i64);
  }

  void require_rank(AttentionRule rule, std::string_view field,
                    const std::optional<TensorInfo>& tensor, std::int64_t least,
                    std::int64_t most) {
    if (!tensor) return;
    require_shape(rule, tensor->rank() >= least && tensor->rank() <= most, field, *tensor,
                  least == most ? fmt::format("must have rank {}", least)
                                : fmt::format("must have rank {} to {}", least, most));
    const auto negative = std::any_of(tensor->shape.begin(), tensor->shape.end(),
                                      [](std::int64_t size) { return size < 0; });
    require_shape(dimensions, !negative, field, *tensor, "must have no negative dimension");
  }

  void ranks() {
    require_rank(rank, "Q", c_.q, 3, 4);
    if (c_.q.rank() == 3 || c_.q.rank() == 4) {
      require_rank(ranks_equal, "K", c_.k, c_.q.rank(), c_.q.rank());
      require_rank(ranks_equal, "V", c_.v, c_.q.rank(), c_.q.rank());
    }
    require_rank(past_rank, "past_key", c_.past_key, 4, 4);
    require_rank(past_rank, "past_value", c_.past_value, 4, 4);
    require_rank(mask_rank, "attn_mask", c_.attn_mask, 1, 4);
    require_rank(nonpad_rank, "nonpad_kv_seqlen", c_.nonpad_kv_seqlen, 1, 1);
  }

  void heads() {
    if (c_.q.rank() == 3) {
      for (const auto& [name, count] :
           {std::pair("q_num_heads", c_.q_num_heads), std::pair("kv_num_heads", c_.kv_num_heads)}) {
        require(heads_given, count.has_value() && *count >= 1, name, count.value_or(0),
                "must be given and at least 1 for inputs of rank 3");
      }
      query_heads_ = c_.q_num_heads.value_or(0);
      kv_heads_ = c_.kv_num_heads.value_or(0);
      return;
    }
    query_heads_ = c_.q.dim(1);
    kv_heads_ = c_.k.dim(1);
    if (c_.opset >= 25) {
      require(heads_absent, !c_.q_num_heads && !c_.kv_num_heads, "q_num_heads, kv_num_heads",
              "present", "must be left out for inputs of rank 4");
    } else {
      require(query_heads_dimension, agrees(c_.q_num_heads, query_heads_), "q_num_heads",
              c_.q_num_heads.value_or(0),
              fmt::format("must be {}, as Q, or left out", query_heads_));
      require(kv_heads_dimension, agrees(c_.kv_num_heads, kv_heads_), "kv_num_heads",
              c_.kv_num_heads.value_or(0), fmt::format("must be {}, as K, or left out", kv_heads_));
    }
    require(heads_positive, query_heads_ >= 1, "Q dimension 1", query_heads_, "must be at least 1");
    require(heads_positive, kv_heads_ >= 1, "K dimension 1", kv_heads_, "must be at least 1");
    require_shape(value_heads, c_.v.dim(1) == kv_heads_, "V", c_.v,
                  fmt::format("must have {} heads, as K", kv_heads_));
  }

  void sizes() {
    require(heads_multiple, query_heads_ % kv_heads_ == 0, "query heads", query_heads_,
            fmt::format("must be a multiple of the KV heads ({})", kv_heads_));
    batch_ = c_.q.dim(0);
    for (const auto& [name, tensor] : {std::pair("K", &c_.k), std::pair("V", &c_.v)}) {
      require_shape(batch, tensor->dim(0) == batch_, name, *tensor,
                    fmt::format("must have batch {}, as Q", batch_));
    }
    const bool split = c_.q.rank() == 4;
    const std::int64_t length_axis = split ? 2 : 1;
    queries_ = c_.q.dim(length_axis);
    new_keys_ = c_.k.dim(length_axis);
    head_size_ = split ? c_.q.dim(3) : c_.q.dim(2) / query_heads_;
    value_head_size_ = split ? c_.v.dim(3) : c_.v.dim(2) / kv_heads_;
    require_shape(key_value_length, c_.v.dim(length_axis) == new_keys_, "V", c_.v,
                  fmt::format("must have length {}, as K", new_keys_));
    if (!split) {
      require_shape(hidden_size, c_.q.dim(2) % query_heads_ == 0, "Q", c_.q,
                    fmt::format("must have a hidden size in {} heads", query_heads_));
      require_shape(hidden_size, c_.v.dim(2) % kv_heads_ == 0, "V", c_.v,
                    fmt::format("must have a hidden size in {} heads", kv_heads_));
    }
    const bool equal = split
                           ? c_.k.dim(3) == head_size_
                           : c_.k.dim(2) % kv_heads_ == 0 && c_.k.dim(2) / kv_heads_ == head_size_;
    require_shape(AttentionRule::head_size, equal, "K", c_.k,
                  fmt::format("must have head size {}, as Q", head_size_));
  }

  void past() {
    total_ = new_keys_;
    if (!c_.past_key) return;
    const std::int64_t length = c_.past_key->dim(2);
    total_ = saturating_sum(length, new_keys_);
    struct Part {
      std::string_view name;
      const TensorInfo& tensor;
      std::int64_t width;
    };
    for (const Part& part : {Part{"past_key", *c_.past_key, head_size_},
                             Part{"past_value", *c_.past_value, value_head_size_}}) {
      require_shape(past_batch, part.tensor.dim(0) == batch_, part.name, part.tensor,
                    fmt::format("must have batch {}, as Q", batch_));
      require_shape(past_shape, part.tensor.dim(1) == kv_heads_ && part.tensor.dim(3) == part.width,
                    part.name, part.tensor,
                    fmt::format("must have {} heads of {}", kv_heads_, part.width));
    }
    require_shape(past_length, c_.past_value->dim(2) == length, "past_value", *c_.past_value,
                  fmt::format("must have length {}, as past_key", length));
  }

  /// A dimension of the mask, counted from the end, that may be 1 or `size`.
  void require_broadcast(AttentionRule rule, std::int64_t from_end, std::int64_t size) {
    if (c_.attn_mask->rank() < from_end) return;
    const std::int64_t found = c_.attn_mask->dim(-from_end);
    require_shape(rule, found == 1 || found == size, "attn_mask", *c_.attn_mask,
                  fmt::format("must have 1 or {} in dimension {} from the end", size, from_end));
  }

  void mask() {
    if (!c_.attn_mask) return;
    require_broadcast(mask_batch, 4, batch_);
    require_broadcast(mask_heads, 3, query_heads_);
    require_broadcast(mask_queries, 2, queries_);
    const std::int64_t columns = c_.attn_mask->dim(-1);
    if (c_.opset >= 24) {
      // Columns that lack count as hidden.
      require_shape(mask_keys, columns <= total_, "attn_mask", *c_.attn_mask,
                    fmt::format("must have at most {} columns", total_));
    } else {
      require_broadcast(mask_keys, 1, total_);
    }
  }

  void nonpad() {
    if (!c_.nonpad_kv_seqlen) return;
    require_shape(nonpad_count, c_.nonpad_kv_seqlen->dim(0) == batch_, "nonpad_kv_seqlen",
                  *c_.nonpad_kv_seqlen, fmt::format("must have shape ({})", batch_));
    std::int64_t longest = 0;
    for (std::size_t b = 0; b < c_.nonpad_kv_seqlen_values.size(); ++b) {
      const std::int64_t length = c_.nonpad_kv_seqlen_values[b];
      longest = std::max(longest, length);
      if (length >= 0 && length <= total_)
        continue;  // A long list must not cost a text per number.
      require(nonpad_range, false, fmt::format("nonpad_kv_seqlen[{}]", b), length,
              fmt::format("must be between 0 and {}", total_));
    }
    if (!c_.attn_mask || !breaks_.empty()) return;
    require_shape(mask_nonpad, c_.attn_mask->dim(-1) >= longest, "attn_mask", *c_.attn_mask,
                  fmt::format("must have at least {} columns, as nonpad_kv_seqlen", longest));
  }

  /// Whether ONNX Runtime has a CPU kernel for the call, other than the function body.
  bool has_cpu_kernel() const {
    const TensorType type = c_.q.type;
    return c_.opset <= 24 && (type == TensorType::f32 || type == TensorType::f16) &&
           c_.v.type == type &&
           (!c_.attn_mask || c_.attn_mask->type == TensorType::boolean ||
            c_.attn_mask->type == type);
  }

  void cpu() {
    require(cpu_type, c_.q.type != TensorType::bf16 && c_.v.type == c_.q.type, "V",
            to_string(c_.v.type), "must have the type of Q, and neither be bf16");
    struct Size {
      std::string_view name;
      std::int64_t size;
      bool body;  ///< The function body needs it too.
    };
    for (const Size& size :
         {Size{"batch", batch_, false}, Size{"Q length", queries_, false},
          Size{"K length", new_keys_, false}, Size{"total length", total_, true},
          Size{"head size", head_size_, true}, Size{"V head size", value_head_size_, true}}) {
      require(cpu_sizes, size.size >= 1 || !(size.body || has_cpu_kernel()), size.name, size.size,
              "must be at least 1");
    }
    if (!has_cpu_kernel()) return;
    require(cpu_scale, !c_.scale || !(*c_.scale <= 0), "scale", c_.scale.value_or(0),
            "must be above 0");
    require(cpu_past_presents, !c_.past_key || (c_.present_key && c_.present_value), "present_key",
            "absent", "must be asked for with a past, and present_value too");
    if (!c_.attn_mask) return;
    const TensorInfo& mask = *c_.attn_mask;
    require_shape(cpu_mask_rank, mask.rank() >= 2, "attn_mask", mask, "must have rank 2 to 4");
    require_shape(cpu_mask_queries, mask.rank() < 2 || mask.dim(-2) == queries_, "attn_mask", mask,
                  fmt::format("must have {} rows", queries_));
    require_shape(cpu_mask_keys, mask.dim(-1) == total_, "attn_mask", mask,
                  fmt::format("must have {} columns", total_));
  }

  const AttentionCall& c_;
  bool cpu_;
  std::int64_t query_heads_ = 0;
  std::int64_t kv_heads_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t queries_ = 0;
  std::int64_t new_keys_ = 0;
  std::int64_t head_size_ = 0;
  std::int64_t value_head_size_ = 0;
  std::int64_t total_ = 0;  ///< T.
  std::vector<AttentionRuleBreak> breaks_;
};

}  // namespace

std::vector<AttentionRuleBreak> check(const AttentionCall& call, Strictness strictness) {
  return Checker(call, strictness).run();
}

}  // namespace kvcheck::model
