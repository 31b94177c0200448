// Plans of steps and the limits of rollbacks.
#include "kernels/cpu/entry_plan.h"

#include <string_view>

#include <fmt/format.h>

namespace kvcheck::kernels {

using namespace std::string_view_literals;

CacheKind cache_kind(const SessionConfig& config) {
  CacheKind kind;
  if (config.layout == "min_overflow"sv) {
    kind.eviction = Eviction::min_overflow(config.capacity, config.window_size);
  } else if (config.layout == "block"sv) {
    kind.eviction = Eviction::blocks(config.capacity, config.window_size);
  }
  kind.concatenates = config.op == "attention"sv && !config.nonpad_kv_seqlen;
  kind.fresh_present = kind.concatenates || (config.op == "gqa"sv && !config.share_buffers);
  return kind;
}

EntryPlan plan_entry(const CacheKind& kind, std::int64_t past, std::int64_t tokens) {
  EntryPlan plan;
  plan.past = past;
  plan.tokens = tokens;
  plan.resident_before = kind.eviction.resident(plan.past);
  plan.resident_after = kind.eviction.resident(plan.length());
  plan.dropped = plan.resident_before + plan.tokens - plan.resident_after;
  const std::int64_t kept = plan.resident_after - plan.tokens;  // Old rows that stay.
  plan.staged = kept < kind.eviction.required(plan.past);
  if (plan.staged) {
    plan.append_row = plan.resident_before;
    plan.write_back_from = plan.dropped;
  } else {
    plan.moved = plan.dropped > 0 || kind.fresh_present ? kept : 0;
    plan.append_row = kept;
  }
  return plan;
}

std::optional<std::string> why_not_rollback(const CacheKind& kind,
                                            std::span<const std::int64_t> lengths,
                                            std::span<const std::int64_t> tokens, bool checks) {
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::int64_t length = lengths[b];
    if (tokens[b] < 0 || tokens[b] > length) {
      return fmt::format("rollback[{}] = {}: must be from 0 to the length ({}); drop fewer tokens",
                         b, tokens[b], length);
    }
    if (kind.concatenates && tokens[b] != tokens[0]) {
      return fmt::format(
          "rollback[{}] = {}: attention has one past length for the whole batch; "
          "drop {} tokens of every entry",
          b, tokens[b], tokens[0]);
    }
    if (checks && !kind.eviction.rollback_is_exact(length, tokens[b])) {
      return fmt::format(
          "rollback[{}] = {}: rows that length {} needs are gone at length {}; "
          "drop at most {} tokens, or run the entry again from its start",
          b, tokens[b], length - tokens[b], length, kind.eviction.max_exact_rollback(length));
    }
  }
  return std::nullopt;
}

}  // namespace kvcheck::kernels
