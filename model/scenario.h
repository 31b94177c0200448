// A scenario: one complete case as a plain value.
//
// Everything that a run needs is in it; nothing is drawn while it executes. Its text form is
// scenario_json.h. Shapes follow the operator: B = batch, Nq/Nk = query/KV heads, H = head size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/element_type.h"

namespace kvcheck::model {

/// gqa: com.microsoft GroupQueryAttention. attention: ai.onnx Attention (opset 23 or 24).
enum class Operator { gqa, attention };

/// How rows of the cache buffer map to positions. `full` keeps every token from row 0; `block`
/// evicts whole blocks of G = capacity - window_size + 1 rows (see layout.h).
enum class LayoutKind { full, block };

/// Size and layout of the KV cache.
struct CacheSpec {
  LayoutKind layout = LayoutKind::full;
  /// Rows of the buffer; 0 = as many as the steps need (full layout only).
  std::int64_t capacity = 0;
  /// Keys that a query sees, itself included; empty = no window. gqa only.
  std::optional<std::int64_t> window_size;
  friend bool operator==(const CacheSpec&, const CacheSpec&) = default;
};

/// What the tensors hold; see fill.h for the exact values of each kind.
enum class FillKind {
  random,         ///< Seeded, roughly normal.
  needles,        ///< Keys are random codes, each query points at its own boundary positions.
  position_code,  ///< Q = 0, V one-hot in digit `index` of the position in base H.
  position_block  ///< Q = 0, V one-hot for positions in [index*H, (index+1)*H), else 0.
};

struct FillSpec {
  FillKind kind = FillKind::random;
  std::uint64_t seed = 0;
  std::int64_t index = 0;  ///< Digit or block of the position fills; 0 elsewhere.
  /// Data of batch entry b is that of entry b + first_entry, so that one entry of a batch can be
  /// run alone.
  std::int64_t first_entry = 0;
  friend bool operator==(const FillSpec&, const FillSpec&) = default;
};

/// Content of rows that the contract leaves unspecified.
enum class Poison { zero, finite, huge, nan };

/// attn_mask of the attention operator, as a function of absolute positions (see mask.h).
enum class MaskKind { none, boolean, additive };

struct MaskSpec {
  MaskKind kind = MaskKind::none;
  int rank = 2;             ///< 2 = (Sq,T), 3 = (Nq,Sq,T), 4 = (B,Nq,Sq,T).
  int hidden_percent = 30;  ///< Share of (query, key) pairs hidden, 0 to 100.
  std::uint64_t seed = 0;
  bool empty_rows = false;  ///< Some query rows are hidden whole.
  friend bool operator==(const MaskSpec&, const MaskSpec&) = default;
};

/// Appends tokens[b] keys and values to entry b and asks queries[b] queries.
/// Tokens at one position differ in content between generations, so that a rejected draft and
/// its replacement can be told apart. In JSON an absent generation is the number of rollbacks
/// before the step.
struct Append {
  std::vector<std::int64_t> tokens;   ///< Per batch entry, each >= 0.
  std::vector<std::int64_t> queries;  ///< Per batch entry; equals tokens for gqa unless all 0.
  std::int64_t generation = 0;
  friend bool operator==(const Append&, const Append&) = default;
};

/// What the cache holds before the first step: put in place by the harness, not by the target.
struct Past {
  std::vector<std::int64_t> tokens;  ///< Per batch entry, each >= 0.
  friend bool operator==(const Past&, const Past&) = default;
};

/// Drops the newest tokens[b] tokens of entry b.
struct Rollback {
  std::vector<std::int64_t> tokens;  ///< Per batch entry, each >= 0.
  friend bool operator==(const Rollback&, const Rollback&) = default;
};

using Step = std::variant<Append, Past, Rollback>;

struct Scenario {
  Operator op = Operator::gqa;
  int opset = 1;  ///< 1 for gqa, 23 or 24 for attention.
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 8;
  std::int64_t value_head_size = 8;  ///< Equals head_size for gqa.
  ElementType element_type = ElementType::f32;
  CacheSpec cache;
  bool share_buffers = true;  ///< Past and present are one buffer (gqa).
  bool causal = true;
  /// attention: K and V are the whole buffer and nonpad_kv_seqlen gives the lengths (opset 24).
  bool nonpad_kv_seqlen = false;
  MaskSpec mask;
  std::optional<double> scale;  ///< Logit scale; empty = 1/sqrt(head_size).
  FillSpec fill;
  Poison poison = Poison::finite;
  std::vector<Step> steps;
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// Limits that keep a scenario within what one process can hold.
inline constexpr std::int64_t kMaxLength = 2147483647;   ///< Tokens of one sequence.
inline constexpr std::int64_t kMaxElements = 1LL << 28;  ///< Elements of one tensor.
inline constexpr std::int64_t kMaxShape = 4096;          ///< Batch, heads of each kind, head sizes.
inline constexpr std::int64_t kMaxStepEntries = 1LL << 20;  ///< Steps times batch.

/// One reason why a scenario is not valid: field, value, and what would be.
struct Refusal {
  std::string field;   ///< As spelled in the JSON form, for example "cache.capacity".
  std::string value;   ///< As found.
  std::string remedy;  ///< What to write instead.
  /// "cache.capacity = 3: must be at least window_size (4); raise it or lower the window".
  std::string message() const;
};

/// Every reason why `scenario` breaks the contract of its operator; empty = valid.
/// Source of the rules: contract of GroupQueryAttention (1.5, 3.8) and Attention (2.3, 2.4).
std::vector<Refusal> validate(const Scenario& scenario);

/// The nearest valid scenario: clips rollbacks to the live length and shapes to the limits, raises
/// capacity to the window, repairs divisibility, broadcasts per-entry lists, drops what has no
/// effect. Idempotent; leaves valid scenarios unchanged.
Scenario normalise(Scenario scenario);

/// Longest buffer or step that keeps every tensor within kMaxElements; 0 when one row exceeds it.
/// \pre batch, heads and head sizes are between 1 and kMaxShape
std::int64_t max_rows(const Scenario& scenario);

/// Whether the mask tensor of the longest step stays within kMaxElements.
/// \pre the scenario is valid in every other respect
bool mask_fits(const Scenario& scenario);

std::string_view to_string(Operator op);
std::string_view to_string(LayoutKind layout);
std::string_view to_string(FillKind kind);
std::string_view to_string(Poison poison);
std::string_view to_string(MaskKind kind);

/// "append 3", "append 2 (1 query)", "rollback 2", "past 5"; lists where entries differ.
std::string describe(const Step& step);

}  // namespace kvcheck::model
