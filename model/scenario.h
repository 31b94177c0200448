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
#include "model/launch.h"

namespace kvcheck::model {

/// gqa: com.microsoft GroupQueryAttention. attention: ai.onnx Attention (opset 23, 24 or 25).
enum class Operator { gqa, attention };

/// How rows of the cache buffer map to positions. `full` keeps every token from row 0; `block`
/// evicts whole blocks of G = capacity - window_size + 1 rows; the others are policies found
/// elsewhere (see layout.h).
enum class LayoutKind { full, block, min_overflow, ring, sinks, paged };

/// In what the cache stores keys and values; none = in the element type.
enum class QuantisationKind { none, int8, int4, fp8 };

/// Symmetric quantisation of the cache (see quantisation.h). The scales are part of the fill.
struct Quantisation {
  QuantisationKind kind = QuantisationKind::none;
  bool per_channel = false;  ///< A scale for each KV head and lane; false = one for the tensor.
  friend bool operator==(const Quantisation&, const Quantisation&) = default;
};

/// Size and layout of the KV cache.
struct CacheSpec {
  LayoutKind layout = LayoutKind::full;
  /// Rows of the buffer; 0 = as many as the steps need (full layout only).
  std::int64_t capacity = 0;
  /// Keys that a query sees, itself included; empty = no window. 0 = none at all (gqa with layout
  /// full). Attention has windows from opset 25 on, where left_window_size = window_size - 1.
  std::optional<std::int64_t> window_size;
  std::int64_t sink_tokens = 0;  ///< sinks: first positions that are never evicted.
  std::int64_t page_size = 0;    ///< paged: rows of one page.
  Quantisation quantisation{};   ///< gqa only.
  friend bool operator==(const CacheSpec&, const CacheSpec&) = default;
};

/// What the tensors hold; see fill.h for the exact values of each kind.
enum class FillKind {
  random,           ///< Seeded, roughly normal.
  needles,          ///< Keys are random codes, each query points at its own boundary positions.
  position_code,    ///< Q = 0, V one-hot in digit `index` of the position in base H;
                    ///< with one lane a binary digit of it plus one.
  position_block,   ///< Q = 0, V one-hot for positions in [index*H, (index+1)*H), else 0.
  position_digits,  ///< Q = 0, V is lit in a lane for each of the `index` lowest digits of the
                    ///< position in base floor(H / index), 0 in the others.
  extreme,          ///< Logits and values at the ends of what is finite.
  ties,             ///< All logits of a query are equal and not 0.
  cancelling,       ///< Values cancel in pairs: the output is far smaller than its terms.
  selection,        ///< One key wins by far: the output is its value.
  integers,         ///< Small integers and quarters.
  literal           ///< As the steps spell it out (StepTensors).
};

/// position_code, position_block or position_digits.
bool is_position_fill(FillKind kind);

struct FillSpec {
  FillKind kind = FillKind::random;
  std::uint64_t seed = 0;
  std::int64_t index = 0;  ///< Digit, block or digits of the position fills; 0 elsewhere.
  /// Data of batch entry b is that of entry b + first_entry, so that one entry of a batch can be
  /// run alone.
  std::int64_t first_entry = 0;
  /// Added to every head sink, so that it weighs against many keys: about log(keys). A number of
  /// its own, because no length may change the data.
  double sink_logit = 0;
  friend bool operator==(const FillSpec&, const FillSpec&) = default;
};

/// Content of rows that the contract leaves unspecified.
enum class Poison { zero, finite, huge, nan };

/// attn_mask of the attention operator, or attention_bias of gqa (additive, rank 4), as a function
/// of absolute positions (see mask.h).
enum class MaskKind { none, boolean, additive };

struct MaskSpec {
  MaskKind kind = MaskKind::none;
  int rank = 2;             ///< 1 = (T), 2 = (Sq,T), 3 = (Nq,Sq,T), 4 = (B,Nq,Sq,T).
  int hidden_percent = 30;  ///< Share of (query, key) pairs hidden, 0 to 100.
  std::uint64_t seed = 0;
  bool empty_rows = false;  ///< Some query rows are hidden whole.
  bool one_entry = false;   ///< The batch dimension is 1 (rank 4).
  bool one_head = false;    ///< The head dimension is 1 (rank 3 and 4).
  bool one_query = false;   ///< The query dimension is 1 (attention).
  /// Columns that the last dimension lacks; they count as hidden (attention from opset 24 on).
  std::int64_t missing_columns = 0;
  friend bool operator==(const MaskSpec&, const MaskSpec&) = default;
};

/// position_ids = shift + stride * (position of the token), in rows of `extra_columns` more than
/// the step has tokens. Which element counts is a matter of the operator, see rotary.h.
struct PositionIds {
  std::int64_t shift = 0;
  std::int64_t stride = 1;
  std::int64_t extra_columns = 0;
  friend bool operator==(const PositionIds&, const PositionIds&) = default;
};

/// Rotary embedding of queries and new keys inside the operator (gqa, do_rotary = 1).
struct RotarySpec {
  bool interleaved = false;  ///< Pairs (2i, 2i+1) instead of (i, i + dim/2).
  std::int64_t dim = 0;      ///< Lanes of each head that turn, even; 0 = the whole head.
  std::optional<PositionIds> position_ids;
  friend bool operator==(const RotarySpec&, const RotarySpec&) = default;
};

/// RMSNorm of queries and new keys per head, before the rotary embedding (gqa).
struct QkNormSpec {
  double epsilon = 1e-6;
  friend bool operator==(const QkNormSpec&, const QkNormSpec&) = default;
};

/// Which intermediate the operator hands out. gqa knows biased (qk_output 1) and probabilities
/// (2); attention all four (qk_matmul_output_mode 0 to 3).
enum class QkOutput { none, raw, softcapped, biased, probabilities };

/// A tensor spelled out. Boolean masks hold 0 and 1.
struct LiteralTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  ///< Row-major.
  friend bool operator==(const LiteralTensor&, const LiteralTensor&) = default;
};

/// What a step of a literal fill brings; empty tensors elsewhere. Rows past an entry's count are
/// padding. The mask may be absent under a mask of kind none alone.
struct StepTensors {
  LiteralTensor q;     ///< [batch][queries][query_heads][head_size]
  LiteralTensor k;     ///< [batch][tokens][kv_heads][head_size]
  LiteralTensor v;     ///< [batch][tokens][kv_heads][value_head_size]
  LiteralTensor mask;  ///< Shape by the rank and the flags of MaskSpec.
  friend bool operator==(const StepTensors&, const StepTensors&) = default;
};

/// Appends tokens[b] keys and values to entry b and asks queries[b] queries.
/// Tokens at one position differ in content between generations, so that a rejected draft and
/// its replacement can be told apart. In JSON an absent generation is the number of rollbacks
/// before the step.
struct Append {
  std::vector<std::int64_t> tokens;  ///< Per batch entry, each >= 0.
  /// Per batch entry. gqa: equals tokens unless all are 0; with no tokens at all the queries are
  /// asked of what the cache holds (shared KV).
  std::vector<std::int64_t> queries;
  std::int64_t generation = 0;
  StepTensors tensors{};
  friend bool operator==(const Append&, const Append&) = default;
};

/// What the cache holds before the first step: put in place by the harness, not by the target.
struct Past {
  std::vector<std::int64_t> tokens;  ///< Per batch entry, each >= 0.
  StepTensors tensors{};             ///< k and v as the cache holds them.
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
  int opset = 1;  ///< 1 for gqa, 23 to 25 for attention.
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
  /// Keys after its own position that a query may see; empty = no limit but causality (opset 25).
  std::optional<std::int64_t> right_window_size;
  int input_rank = 4;       ///< attention: 4 = (B,N,S,H), 3 = (B,S,N*H).
  bool packed_qkv = false;  ///< gqa: query, key and value come as one tensor.
  MaskSpec mask;
  std::optional<double> scale;  ///< Logit scale; empty = 1/sqrt(head_size).
  double softcap = 0;           ///< softcap * tanh(x / softcap) before the bias; 0 = off.
  bool smooth_softmax = false;  ///< gqa: one more logit of 0 in the denominator.
  bool head_sink = false;       ///< gqa: one more logit per query head, from the fill.
  std::optional<RotarySpec> rotary;
  std::optional<QkNormSpec> qk_norm;
  QkOutput qk_output = QkOutput::none;
  std::optional<ElementType> softmax_precision;  ///< attention; empty = the element type.
  /// The last step is made as a call of the operator itself, changed in this one way; empty = no
  /// such call. Names are those of properties/calls, for instance "seqlens_k[0]=rows+1".
  std::string call_change{};
  /// Of targets that run kernels on a device; empty = their own choice.
  std::optional<LaunchSpec> launch{};
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
std::string_view to_string(QuantisationKind kind);
std::string_view to_string(QkOutput output);

/// "append 3", "append 2 (1 query)", "rollback 2", "past 5"; lists where entries differ.
std::string describe(const Step& step);

}  // namespace kvcheck::model
