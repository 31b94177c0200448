// The command `expect`: the exact model's answer to one scenario file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>

namespace kvcheck::properties {

struct ExpectOptions {
  std::filesystem::path file;  ///< A scenario as JSON.
  std::int64_t step = -1;      ///< Only this step, from 0; -1 = all.
  bool inputs = false;         ///< Also what a target is given.
  bool readings = false;       ///< Also what the scenario can tell apart.
  bool json = false;
};

/// Prints what a target must hold and answer after every step of the scenario in `file`.
///
/// JSON: {scenario, hash, steps [{step, does, defined, why (if not),
///   T [batch],
///   resident [{batch, first_position, rows}]: row i holds position first_position + i; under the
///          layouts ring, sinks and paged positions [row] says instead what each row holds, or
///          null,
///   visible [{batch, head (only under a mask of rank 3 or 4), query_position, keys [positions]}],
///   outputs [batch][query][head][lane], decimal strings of up to 30 significant digits,
///   bound, the same shape, numbers: the allowed error of plain arithmetic in f32 (f64 for f64)
///          with the output stored in the scenario's element type}]}.
/// With scenario.qk_output also qk_output and qk_bound [batch][head][query][key], key = 0 .. the
/// largest T - 1 or 0 .. capacity-1; where the operator leaves an element open its bound is "inf".
/// A file that ends in .jsonl holds a scenario by the line and is answered by the line; a line that
/// cannot be answered gives {"error"}.
/// From an inexact rollback on a step says defined = false and why; its lists are empty.
/// Entries with fewer queries have shorter lists. Steps that ask nothing have empty outputs.
///
/// With `inputs` each step that is defined also has
///   q [batch][query][query head][lane]    queries of the step,
///   k, v [batch][token][KV head][lane]    tokens that the step adds; of a past the resident ones,
///   seqlens_k [batch], total_sequence_length   gqa: T - 1, and the largest T,
///   nonpad_kv_seqlen [batch]              attention with nonpad_kv_seqlen: T,
///   mask                                  [key], [query][key], [head][query][key] or
///          [batch][head][query][key] by its rank, with dimensions of 1 and without the columns
///          that it lacks; key = 0 .. T-1, or 0 .. capacity-1 with nonpad_kv_seqlen; true keeps a
///          key of a boolean mask, an additive mask (of gqa: attention_bias) holds numbers and
///          "-inf",
///   head_sink [query head], q_norm_weight and k_norm_weight [lane], k_scale and v_scale [1] or
///          [KV head * head_size + lane], cos_cache and sin_cache [position][pair],
///          position_ids [batch][column]   gqa, where the scenario has them.
/// q, k and v are what the operator is given: before norm and rotary embedding, and before the
/// cache quantises; rows of a past are what the cache holds (dequantised).
/// Numbers are those that the element type stores, written so that they read back bit-exactly.
///
/// With `readings` the document also has readings [{name, statement, separation, at}], the least
/// visible first: for every wrong reading of the contract that concerns the scenario
/// (wrong_models.h) the largest distance of its outputs from the right ones, in bounds. Up to 1 the
/// scenario is blind to it.
///
/// Returns 0, or 254 with one message on `err`.
int expect_command(const ExpectOptions& options, std::ostream& out, std::ostream& err);

}  // namespace kvcheck::properties
