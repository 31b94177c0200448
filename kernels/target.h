// Target: anything under test that answers cache steps. Own kernel, SIMT run or foreign process.
//
// A target answers with what it has and says so in its capabilities: `outputs` (an attention
// kernel), `rows` (its cache can be read), `visible` (it hands out a mask). Nothing here assumes
// that it computes attention. A refusal is an answer; after it the state is what it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kvcheck::kernels {

/// i8, u8 and f8e4m3 are what a quantised cache stores, i64 is for position_ids, i32 for the
/// lengths of operator calls.
enum class ElementType { f32, f16, bf16, f64, boolean, i8, u8, f8e4m3, i64, i32 };

/// \throws std::invalid_argument naming the types that there are
[[noreturn]] void refuse_element_type(ElementType type);

inline std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::f64:
    case ElementType::i64:
      return 8;
    case ElementType::f32:
    case ElementType::i32:
      return 4;
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::boolean:
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::f8e4m3:
      return 1;
  }
  refuse_element_type(type);
}
std::string_view to_string(ElementType type);
std::optional<ElementType> element_type_from(std::string_view name);

/// Dense row-major tensor, little-endian elements.
struct Tensor {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::int64_t elements() const;
  /// Zero-filled. \throws std::length_error when the byte count does not fit 2 GiB
  static Tensor zeros(ElementType type, std::vector<std::int64_t> shape);
};

/// Arithmetic that a target declares, in unit roundoffs; see model/arithmetic_profile.h for the
/// meaning of each field.
struct Arithmetic {
  double accumulator_roundoff = 0x1p-24;
  bool truncates = false;
  double operand_roundoff = 0;
  double product_roundoff = 0;
  double logit_roundoff = 0;
  double probability_roundoff = 0;
  bool sums_stored_weights = false;
  double exp_error = 0x1p-23;
  double tanh_error = 0x1p-21;
  bool exp_flushes = false;
  bool base_two = false;
  bool fused_shift = false;
  bool scale_on_operands = false;
  bool exact_products = false;
  std::int64_t dequantise_roundings = 0;
  std::int64_t dot_ways = 0;
  std::int64_t dot_block = 0;
  std::int64_t value_block = 0;
  std::int64_t max_rescales = 0;
  std::int64_t rescale_block = 1;
  std::int64_t splits = 1;
  bool merges_by_lse = false;
};

/// Short before long: names are asked for a hundred times in a scenario, and most differ in length.
struct ByLength {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

/// What a target can do. The generator draws only what the target claims to take; what it claims
/// and then refuses is a finding.
struct Capabilities {
  std::string name;
  std::string version;
  bool outputs = true;
  bool rows = true;
  bool visible = false;
  std::set<std::string> operators;      ///< "gqa", "attention".
  std::set<int> opsets;                 ///< Of attention: 23 to 25.
  std::set<std::string> element_types;  ///< "f32", "f16", ...
  /// Where they are fewer, by operator: "gqa".
  std::map<std::string, std::set<std::string>> element_types_where;
  std::set<std::string> layouts;        ///< "full", "block", "min_overflow".
  std::int64_t head_size_multiple = 1;  ///< gqa: head_size is a multiple of this.
  /// gqa: and of these, with what they name: "rotary" (the lanes that turn as well), "block
  /// cache_int8", "block cache_int4".
  std::map<std::string, std::int64_t> head_size_multiple_with;
  /// Optional abilities and promises, by name; those of attention may also be claimed from an opset
  /// on or for an element type: "short_mask from 25", "short_mask f64".
  ///   mask_boolean mask_additive   attn_mask of the attention operator
  ///   nonpad_kv_seqlen             opset 24
  ///   queries_differ               attention: queries and new tokens of a step may differ
  ///   separate_buffers             gqa: past and present in different buffers
  ///   batched_chunks               gqa: steps of several tokens with a past and batch > 1
  ///   bidirectional_chunks         the same, and idle entries, with causal false
  ///   batched_questions            gqa: several queries without new tokens with batch > 1
  ///   ragged_prompt                gqa: first step with different lengths, full cache
  ///   ragged_prompt_block          the same with a block cache
  ///   idle_entries                 a step may leave an entry without a token
  ///   shared_kv                    gqa: a step may ask queries without new tokens
  ///   empty_append                 attention: the same with a past
  ///   bidirectional                gqa: causal false
  ///   empty_window                 gqa: window_size 0, which sees nothing
  ///   attention_bias               gqa: an additive mask [B|1,Nq|1,Sq,T]
  ///   attention_window             attention: window_size, from opset 25 on
  ///   mask_broadcast               masks with a dimension of 1 for entries or heads
  ///   mask_one_row                 attention: masks with one row for all queries, or of rank 1
  ///   short_mask                   attention: masks with fewer columns
  ///   right_window                 attention: right_window_size, from opset 25 on
  ///   softcap smooth_softmax head_sink rotary qk_norm qk_output softmax_precision
  ///                                the input or attribute of that name (SessionConfig)
  ///   packed_qkv                   gqa: query, key and value as one tensor
  ///   input_rank_3                 attention: (B,S,N*H)
  ///   cache_int8 cache_int4 cache_fp8
  ///                                gqa: quantised caches, per tensor and per channel
  ///   cache_quantised_only         no other caches are taken
  ///   load                         the harness may put a past into the cache
  ///   queryless_append             tokens may be appended without asking a query
  ///   launches                     SessionConfig::launch is obeyed
  ///   operator_calls               Target::call takes the operator's own calls
  ///   last_store                   Session::last_store answers
  ///   rollback                     newest tokens can be dropped
  ///   checks_rollback              promise: an inexact rollback is refused
  ///   Promises of the same output bits whatever ...
  ///   split_bits                   ... the split of tokens into steps
  ///   window_bits                  ... the cache: windowed, or full with the same window
  ///   capacity_bits                ... the capacity (C >= W)
  ///   threads_bits                 ... SessionConfig::threads
  ///   isa_bits                     ... SessionConfig::isa, of those in `isas`
  ///   schedule_bits                ... the order in which a device runs its threads
  ///   company_bits                 ... the other entries of the batch
  ///   rollback_bits                ... was appended and rolled back before
  ///   repeat_bits                  ... happened before: two runs are alike
  ///   order_bits                   ... the order of the entries, of the KV heads, and of the query
  ///                                heads of a KV head
  ///   format_bits                  ... the form of inputs and buffers: packed or not, rank 3 or 4,
  ///                                shared or separate; and whether an intermediate is asked for
  ///   scaling_bits                 ... the power of two that values, or queries against the scale,
  ///                                are multiplied with, but for that power
  ///   nan_safe                     promise: NaN in unspecified rows has no influence
  ///   nan_safe_gqa                 the same, of gqa alone
  ///   Limits, which take something away:
  ///   huge_has_influence           attention: so may the largest finite value there, since its
  ///                                products overflow before they are masked
  ///   no_softmax_precision_bf16 no_empty_append_rank_3   not in bf16; not with input_rank 3
  std::set<std::string, ByLength> features;
  /// Instruction sets that can run here and give the same bits, widest first: "avx512", "avx2".
  std::vector<std::string> isas;
  Arithmetic arithmetic;
  /// Where the arithmetic differs, by operator and element type, and by opset where that decides:
  /// "attention f16", "attention f16 25".
  std::map<std::string, Arithmetic> arithmetic_where;
  /// What is declared for one operator, element type and opset.
  const Arithmetic& arithmetic_of(std::string_view op, std::string_view element_type,
                                  int opset = 0) const;
  bool has(std::string_view feature) const { return features.contains(feature); }
  /// The same at an opset and for an element type.
  bool has_at(std::string_view feature, int opset, std::string_view element_type) const;
};

/// Rotary embedding of queries and new keys (gqa, do_rotary = 1). Pairs are (i, i + lanes/2), or
/// (2i, 2i+1) when interleaved.
struct RotaryConfig {
  bool interleaved = false;
  bool position_ids = false;  ///< Steps bring StepRequest::position_ids.
  Tensor cos, sin;            ///< [rows, lanes/2] in the element type.
};

/// RMSNorm of queries and new keys per head, before the rotary embedding (gqa).
struct QkNormConfig {
  double epsilon = 1e-6;
  Tensor query_weight, key_weight;  ///< [H] in the element type.
};

/// Symmetric quantisation of the cache (gqa): code = round(x / scale), clamped. Rows are stored as
/// i8, as u8 with two codes of int4 in a byte ((even + 8) | (odd + 8) << 4, H/2 rounded up), or as
/// f8e4m3.
struct QuantisationConfig {
  std::string kind = "none";      ///< "none", "int8", "int4", "fp8".
  bool per_channel = false;       ///< A scale for each KV head and lane.
  Tensor key_scale, value_scale;  ///< f32 [1], or [Nk, H] per channel.
  bool quantised() const { return kind != "none"; }
};

/// One call of the operator itself, sound or not, outside any session: what a caller of the library
/// would hand in, under the names of the operator.
struct OperatorCall {
  struct Input {
    std::string name;  ///< "seqlens_k", "attn_mask", ...; inputs that are absent are left out.
    Tensor tensor;
  };
  std::string op = "gqa";  ///< "gqa" or "attention".
  int opset = 1;
  std::map<std::string, std::variant<std::int64_t, double, std::string>> attributes;
  std::vector<Input> inputs;
  std::vector<std::string> outputs;  ///< Names of those asked for.

  Input* find(std::string_view name);
  const Input* find(std::string_view name) const;
};

/// The outputs of an operator call, in the order in which it asked for them.
struct CallResult {
  std::vector<OperatorCall::Input> outputs;
};

/// How kernels are launched on a device (feature launches).
struct LaunchConfig {
  std::string order = "lockstep";  ///< Of simulated threads: names of simt::Order.
  std::uint64_t seed = 0;
  /// "any", "unfused", "decode", "decode_matrix", "prefill"; the target chooses where the kernel
  /// does not take a step.
  std::string kernel = "any";
  std::int64_t threads = 0;          ///< Of a block; 0 = the target's choice.
  std::int64_t split_positions = 0;  ///< Keys that one block reads; 0 = the target's choice.
};

/// What stays fixed over one sequence of steps.
struct SessionConfig {
  std::string op = "gqa";  ///< "gqa" or "attention".
  int opset = 1;
  std::int64_t batch = 1, query_heads = 1, kv_heads = 1, head_size = 8, value_head_size = 8;
  ElementType element_type = ElementType::f32;
  std::string layout = "full";
  /// Rows of the buffer. attention without nonpad_kv_seqlen concatenates, so there it is only
  /// the largest length that will occur.
  std::int64_t capacity = 0;
  std::int64_t window_size = -1;  ///< Keys seen, the query's own included; -1 = no window.
  /// Keys after its own position that a query may see; -1 = no limit but causality (attention 25).
  std::int64_t right_window_size = -1;
  bool causal = true;
  bool nonpad_kv_seqlen = false;
  bool share_buffers = true;
  std::string mask = "none";        ///< "none", "boolean", "additive".
  double scale = 0;                 ///< 0 = 1/sqrt(head_size).
  double softcap = 0;               ///< softcap * tanh(x / softcap) before the bias; 0 = off.
  bool smooth_softmax = false;      ///< One more logit of 0 in the denominator (gqa).
  std::optional<Tensor> head_sink;  ///< [Nq] in the element type: one more logit per head (gqa).
  std::optional<RotaryConfig> rotary;
  std::optional<QkNormConfig> qk_norm;
  QuantisationConfig quantisation;
  int input_rank = 4;       ///< attention: how the operator takes its inputs, 4 or 3.
  bool packed_qkv = false;  ///< gqa: the operator takes query, key and value as one tensor.
  /// Intermediate that is handed out: "none", "raw", "softcapped", "biased", "probabilities". gqa
  /// knows biased and probabilities.
  std::string qk_output = "none";
  std::optional<ElementType> softmax_precision;  ///< attention; empty = the element type.
  double initial_poison = 0;                     ///< Fills the whole buffer before the first step.
  /// 0 = as many as pay for the size of each step; n = up to n whatever the size (feature
  /// threads_bits).
  int threads = 0;
  std::optional<LaunchConfig> launch;
  /// Session::last_store will be asked, so that stores are recorded (feature last_store).
  bool record_stores = false;
  std::string isa;  ///< One of Capabilities::isas; empty = the widest (isa_bits).
};

/// Overwrites rows [first_row[b], capacity) of every entry before a step.
struct PoisonRows {
  double value = 0;
  std::vector<std::int64_t> first_row;
};

/// One step. Shapes, with N = max tokens, S = max queries: query [B,S,Nq,H], key [B,N,Nk,H],
/// value [B,N,Nk,Hv]; rows past an entry's count are padding. mask, where the session has one:
/// [Sq,T], [Nq,Sq,T] or [B,Nq,Sq,T] with T = the present length (the buffer's with nonpad).
struct StepRequest {
  std::vector<std::int64_t> tokens;   ///< [B] new tokens.
  std::vector<std::int64_t> queries;  ///< [B] queries.
  Tensor query, key, value;
  std::optional<Tensor> mask;
  std::optional<Tensor> position_ids;  ///< i64 [B, columns], where the session has them.
  std::optional<PoisonRows> poison;
  bool want_rows = false;  ///< Answer with the present rows as well.
};

/// The cache as the target holds it: key [B,Nk,R,H], value [B,Nk,R,Hv], R = buffer rows; int4 has
/// H/2 bytes (rounded up) in place of H.
struct CacheRows {
  Tensor key, value;
};

struct StepResult {
  std::optional<Tensor> output;   ///< [B,S,Nq,Hv]; rows past an entry's queries are padding.
  std::optional<Tensor> visible;  ///< boolean [B,S,R]: buffer rows that a query may see.
  std::optional<CacheRows> rows;
  /// [B,Nq,S,T], T = the longest present length (attention: columns as the mask has them): what
  /// SessionConfig::qk_output asks for; gqa writes 0 for keys that a query may not see.
  std::optional<Tensor> qk;
};

/// Content that the harness puts into the cache: rows [0, R) of every entry, and its length.
struct LoadRequest {
  std::vector<std::int64_t> lengths;  ///< [B] absolute lengths.
  CacheRows rows;
};

/// The target understood and declines; nothing has changed.
struct Refusal {
  std::string reason;
};

/// The target broke: it died, hung, or answered nonsense.
struct Failure {
  /// defect: what executes the kernel saw it do what no kernel may, whatever its outputs are: a
  /// data race, an access outside memory, a barrier that not all threads reach.
  enum class Kind { crash, hang, nonsense, defect } kind = Kind::crash;
  std::string detail;
};

template <class T>
using Answer = std::variant<T, Refusal, Failure>;

/// One element that a session holds: of the output of its last step, or of its cache.
struct ElementPlace {
  enum class Of { output, key, value };
  Of of = Of::output;
  std::int64_t entry = 0;
  std::int64_t head = 0;  ///< Query head of an output, KV head of a row.
  std::int64_t row = 0;   ///< Query of an output, row of the cache.
  std::int64_t lane = 0;
};

/// One batch of sequences and its cache.
class Session {
 public:
  virtual ~Session() = default;
  virtual Answer<StepResult> step(const StepRequest& request) = 0;
  /// Drops the newest tokens[b] tokens of every entry.
  virtual Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) = 0;
  virtual Answer<std::monostate> load(const LoadRequest& request) = 0;
  virtual Answer<CacheRows> present() = 0;
  /// What left an element as it is, in words that follow "was": "stored at
  /// kernels/cuda/append.cuh:36 by thread 3 of block (0,0,0) of append_kernel ...", "stored by no
  /// kernel". Empty where nobody knows: without SessionConfig::record_stores, or where there is no
  /// such element.
  virtual std::string last_store(const ElementPlace& place) const;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// A target that broke starts afresh here; earlier sessions of it are dead.
  virtual Answer<std::unique_ptr<Session>> open(const SessionConfig& config) = 0;
  /// Runs one call of the operator (feature operator_calls). A call that breaks a rule of the
  /// operator is refused; nothing else may come of it.
  virtual Answer<CallResult> call(const OperatorCall& call);
};

}  // namespace kvcheck::kernels
