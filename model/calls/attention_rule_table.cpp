// Names of the rules, and ONNX Runtime's words for them.
#include <array>

#include "model/calls/attention_rules.h"

namespace kvcheck::model {
namespace {

struct Entry {
  AttentionRule rule;
  std::string_view name;
  std::string_view phrase;
};

using enum AttentionRule;

constexpr std::array kEntries{
    Entry{opset, "opset", "No Op registered for Attention"},
    Entry{window_opset, "window_opset", "Unrecognized attribute"},
    Entry{window_value, "window_value", "must be -1 or nonnegative"},
    Entry{output_mode, "output_mode", "qk_matmul_output_mode must be"},
    Entry{softmax_precision, "softmax_precision",
          "Could not find an implementation for Attention(25)"},
    Entry{past_together, "past_together",
          "past_key and past_value must be both null or both not null"},
    Entry{presents_together, "presents_together",
          "present_key and present_value must be requested together"},
    Entry{nonpad_opset, "nonpad_opset", "has input size 7 not in range"},
    Entry{nonpad_past, "nonpad_past",
          "nonpad_kv_seqlen should not be used together with past_key and past_value"},
    Entry{nonpad_presents, "nonpad_presents", "cannot be combined with past or present"},
    Entry{float_type, "float_type", "of input parameter"},
    Entry{query_key_type, "query_key_type", "bound to different types"},
    Entry{past_type, "past_type", "bound to different types"},
    Entry{nonpad_type, "nonpad_type", "of input parameter (nonpad_kv_seqlen)"},
    Entry{dimensions, "dimensions", ""},
    Entry{rank, "rank", "Inputs 0 (query) shall be 3 or 4 dimensions"},
    Entry{ranks_equal, "ranks_equal", "must have the same rank"},
    Entry{past_rank, "past_rank", "The past_key input shall be 4 dimensions"},
    Entry{heads_given, "heads_given", "3D inputs expected to have"},
    Entry{heads_absent, "heads_absent", "must not be specified for 4D inputs"},
    Entry{query_heads_dimension, "query_heads_dimension", "q_num_heads different from Q.shape[1]"},
    Entry{kv_heads_dimension, "kv_heads_dimension", "kv_num_heads different from K.shape[1]"},
    Entry{hidden_size, "hidden_size", "_hidden_size, it should be a multiple of"},
    Entry{heads_positive, "heads_positive", "number of heads must be greater than 0"},
    Entry{heads_multiple, "heads_multiple", "q_num_heads must be a multiple of kv_num_heads"},
    Entry{batch, "batch", "inconsistent batch_size (between Q and"},
    Entry{value_heads, "value_heads", "kv_num_heads different from V.shape[1]"},
    Entry{head_size, "head_size", "inconsistent head_size"},
    Entry{key_value_length, "key_value_length", "inconsistent kv_sequence_length"},
    Entry{past_batch, "past_batch", "inconsistent batch_size (between Q and past_"},
    Entry{past_shape, "past_shape", "Output shapes for Attention could not be computed"},
    Entry{past_length, "past_length", "inconsistent past_sequence_length"},
    Entry{mask_rank, "mask_rank", "attn_mask must be 2D or 3D or 4D tensor"},
    Entry{mask_batch, "mask_batch", "not compatible with batch_size"},
    Entry{mask_heads, "mask_heads", "not compatible with q_num_heads"},
    Entry{mask_queries, "mask_queries", "inconsistent q_sequence_length"},
    Entry{mask_keys, "mask_keys", "inconsistent total_sequence_length"},
    Entry{nonpad_rank, "nonpad_rank", "nonpad_kv_seqlen must be a 1D tensor"},
    Entry{nonpad_count, "nonpad_count", "nonpad_kv_seqlen must have shape [batch_size]"},
    Entry{nonpad_range, "nonpad_range", "nonpad_kv_seqlen["},
    Entry{mask_nonpad, "mask_nonpad", "inconsistent total_sequence_length"},
    Entry{cpu_type, "cpu_type", "Could not find an implementation"},
    Entry{cpu_scale, "cpu_scale", "scale must be greater than 0 if specified"},
    Entry{cpu_sizes, "cpu_sizes", "must be greater than 0"},
    Entry{cpu_past_presents, "cpu_past_presents", "The implementation does not support past_"},
    Entry{cpu_mask_rank, "cpu_mask_rank", "attn_mask must be 2D or 3D or 4D tensor"},
    Entry{cpu_mask_queries, "cpu_mask_queries", "inconsistent q_sequence_length"},
    Entry{cpu_mask_keys, "cpu_mask_keys", "inconsistent total_sequence_length"}};

constexpr const Entry& entry_of(AttentionRule rule) {
  return kEntries[static_cast<std::size_t>(rule)];
}

static_assert(kEntries.size() == static_cast<std::size_t>(cpu_mask_keys) + 1);
static_assert([] {
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].rule != static_cast<AttentionRule>(i)) return false;
  }
  return true;
}());

}  // namespace

std::string_view to_string(AttentionRule rule) { return entry_of(rule).name; }

std::string_view phrase(AttentionRule rule) { return entry_of(rule).phrase; }

const std::vector<AttentionRule>& attention_rules() {
  static const std::vector<AttentionRule> rules = [] {
    std::vector<AttentionRule> found;
    for (const Entry& entry : kEntries) found.push_back(entry.rule);
    return found;
  }();
  return rules;
}

}  // namespace kvcheck::model
