// Attention sinks: the first positions stay, the rest slides (Xiao et al., Efficient Streaming
// Language Models with Attention Sinks, 2023).
#pragma once

#include <cstdint>
#include <optional>

#include "model/layout.h"

namespace kvcheck::model {

/// Rows [0, N) hold the N sinks, positions 0 .. N-1, for ever; the other C - N rows hold the
/// newest positions in order: L(T) = min(T, C), first_position = T - (C - N) past C.
///
/// Of the known variants this is the buffer of the StreamingLLM code (sinks and recent rows
/// concatenated, shifted by every overflow), but with absolute positions: keys are not given
/// positions within the cache. Others keep the recent rows as a ring (keep of MLX's rotating
/// cache), or turn the keys again (SinkCache of Transformers). Learned sink logits are no rows at
/// all; see head_sink. W counts the window alone: a query sees the sinks besides.
///
/// Rollback: exact iff T <= C, or T-k <= N, where only sinks are left.
/// Staging: iff T > C and T - (C-N) > P - W + 1; never at any P iff C >= N + W + S - 1.
/// Drafts: none is exact once the cache has filled, at any capacity.
class SinksLayout final : public Layout {
 public:
  /// \pre sink_tokens >= 0, window_size >= 1, sink_tokens + window_size <= capacity <= kMaxLength
  SinksLayout(std::int64_t capacity, std::int64_t window_size, std::int64_t sink_tokens);
  std::int64_t resident(std::int64_t length) const override;
  Position first_position(std::int64_t length) const override;
  std::optional<Row> row_of(std::int64_t length, Position position) const override;
  std::optional<Position> position_in_row(std::int64_t length, Row row) const override;
  Position oldest_required(std::int64_t length) const override;
  std::int64_t max_exact_rollback(std::int64_t length) const override;
  bool stages(std::int64_t past, std::int64_t tokens) const override;
  LengthShare exact_drafts(std::int64_t tokens) const override;
  std::optional<std::int64_t> capacity_for_drafts(std::int64_t tokens) const override;
  std::optional<std::int64_t> capacity_without_staging(std::int64_t tokens) const override;

 private:
  /// Position in row sink_tokens.
  std::int64_t first_recent(std::int64_t length) const;

  std::int64_t capacity_;
  std::int64_t window_size_;
  std::int64_t sink_tokens_;
};

}  // namespace kvcheck::model
