// What every CPU kernel claims, since the shared parts do it: shapes, caches, masks, refusals.
//
// Promises that hang on the arithmetic (bits, instruction sets) and the arithmetic itself are each
// kernel's own.
#pragma once

#include "kernels/target.h"

namespace kvcheck::kernels {

/// GroupQueryAttention, f32, f16 and bf16, caches that are not quantised. Name, version and
/// arithmetic are left open.
Capabilities gqa_claims();

/// Adds Attention of opsets 23 to 25.
void add_attention_claims(Capabilities& can);

/// Makes the claims those of a cache of `kind` codes alone: "int8" or "int4".
void claim_quantised_only(Capabilities& can, std::string_view kind);

}  // namespace kvcheck::kernels
