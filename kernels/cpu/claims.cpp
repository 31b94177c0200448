// What every CPU kernel claims.
#include "kernels/cpu/claims.h"

#include <string>

namespace kvcheck::kernels {

Capabilities gqa_claims() {
  Capabilities can;
  can.version = KVCHECK_VERSION;
  can.operators = {"gqa"};
  can.element_types = {"f32", "f16", "bf16"};
  can.layouts = {"full", "block", "min_overflow"};
  can.features = {"separate_buffers",
                  "batched_chunks",
                  "ragged_prompt",
                  "ragged_prompt_block",
                  "idle_entries",
                  "shared_kv",
                  "batched_questions",
                  "bidirectional",
                  "bidirectional_chunks",
                  "empty_window",
                  "attention_bias",
                  "softcap",
                  "head_sink",
                  "smooth_softmax",
                  "rotary",
                  "qk_norm",
                  "qk_output",
                  "packed_qkv",
                  "load",
                  "rollback",
                  "queryless_append",
                  "checks_rollback",
                  "order_bits",
                  "format_bits",
                  "scaling_bits"};
  return can;
}

void add_attention_claims(Capabilities& can) {
  can.operators.insert("attention");
  can.opsets = {23, 24, 25};
  can.features.insert({"mask_boolean", "mask_additive", "nonpad_kv_seqlen", "queries_differ",
                       "empty_append", "attention_window", "right_window", "mask_broadcast",
                       "mask_one_row", "short_mask", "input_rank_3", "softmax_precision"});
}

void claim_quantised_only(Capabilities& can, std::string_view kind) {
  can.features.insert({"cache_quantised_only", "cache_" + std::string(kind)});
}

}  // namespace kvcheck::kernels
