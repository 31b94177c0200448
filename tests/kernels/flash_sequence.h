// Sequences on a FlashEngine whose rows depend on entry, position, head and lane alone, and what
// attention over them is in double, with a bound for f32 arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "kernels/cpu/flash/flash_engine.h"

namespace kvcheck::kernels::flash {

using Counts = std::vector<std::int64_t>;
using Floats = std::vector<float>;

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Storages by name: "f32", "f16", "bf16", "int8", "int4".
inline constexpr const char* kStorageNames[] = {"f32", "f16", "bf16", "int8", "int4"};

/// gqa with a full cache of `capacity` rows. Quantised storages have a scale for every channel.
SessionConfig flash_config(std::int64_t query_heads, std::int64_t kv_heads, std::int64_t head_size,
                           std::int64_t capacity, std::string_view storage = "f32");
/// The same cache evicting rows by blocks.
SessionConfig windowed(SessionConfig config, std::int64_t window, std::int64_t capacity);

bool same_bits(const Floats& a, const Floats& b);

/// One output row and how far f32 arithmetic may be from it.
struct ExpectedRow {
  std::vector<double> output, bound;
};

class FlashSequence {
 public:
  /// What a mask adds for a query position, a head and a key position.
  using Bias = std::function<float(std::int64_t, std::int64_t, std::int64_t)>;

  /// \param kernels as FlashEngine's
  explicit FlashSequence(const SessionConfig& config, std::uint32_t seed = 1,
                         const Kernels* kernels = nullptr);

  Bias bias;                          ///< Of the steps that follow; empty = no mask.
  std::map<std::int64_t, float> key;  ///< Positions whose keys hold one number in every lane.
  std::map<std::int64_t, float> value;
  std::uint32_t seed;  ///< Of the rows that follow.

  /// Outputs [query][head][lane] of the real queries, entry after entry.
  Floats append(const Counts& tokens, const Counts& queries);
  Floats append(const Counts& tokens) { return append(tokens, tokens); }
  /// Appends to a single entry in steps of `size` tokens; all outputs in a row.
  Floats append_in_steps(std::int64_t tokens, std::int64_t size);
  void rollback(const Counts& tokens) { engine_.cache().rollback(tokens); }

  FlashEngine& engine() { return engine_; }
  /// Outputs of one query: query_heads * value_head_size.
  std::int64_t row_size() const { return config_.query_heads * config_.value_head_size; }

  /// What the query at `position` of a head should get; it sees [position - W + 1, position].
  ExpectedRow expected(std::int64_t entry, std::int64_t position, std::int64_t head) const;

 private:
  class PositionMask;
  struct Numbers {
    Floats query, key, value;  // By position; as they are stored, codes included.
  };

  void make_rows(std::int64_t entry, std::int64_t position);
  float number(int kind, std::int64_t entry, std::int64_t position, std::int64_t i) const;
  void store(const Floats& row, std::int64_t heads, std::int64_t lanes, ElementType type,
             std::vector<std::byte>& to) const;
  double logit(const Numbers& numbers, std::int64_t query, std::int64_t head, std::int64_t key,
               double& error) const;

  SessionConfig config_;
  FlashEngine engine_;
  std::vector<Numbers> numbers_;  // By entry.
};

}  // namespace kvcheck::kernels::flash
