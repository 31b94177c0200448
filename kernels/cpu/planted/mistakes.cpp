// What each planted fault does to the values that the healthy code computed.
#include "kernels/cpu/planted/mistakes.h"

#include <algorithm>

namespace kvcheck::kernels {
namespace {

/// Shifts the append without leaving the buffer.
void append_at(EntryPlan& plan, std::int64_t row, std::int64_t rows) {
  plan.append_row = std::clamp<std::int64_t>(row, 0, std::max<std::int64_t>(0, rows - plan.tokens));
}

/// Rows of the buffer that the new tokens of `plan` go to.
std::int64_t rows_of_append(const SessionConfig& config, const EntryPlan& plan) {
  if (plan.staged) return plan.resident_before + plan.tokens;
  return config.op == "attention" && !config.nonpad_kv_seqlen ? plan.length() : config.capacity;
}

void distort_plan(Fault fault, const SessionConfig& config, std::int64_t astray, EntryPlan& plan) {
  const bool evicts_in_place = !plan.staged && plan.dropped > 0;
  switch (fault) {
    case Fault::compaction_one_row_short:
      if (evicts_in_place) plan.moved = std::max<std::int64_t>(0, plan.moved - 1);
      break;
    case Fault::compaction_skipped:
      if (evicts_in_place) plan.moved = 0;
      break;
    case Fault::separate_past_not_copied:
      if (config.op == "gqa" && !config.share_buffers) plan.moved = 0;
      break;
    case Fault::past_copied_one_row_short:
      if (config.op == "gqa" && !config.share_buffers && plan.dropped == 0) {
        plan.moved = std::max<std::int64_t>(0, plan.moved - 1);
      }
      break;
    case Fault::ring_append:
      if (config.layout == "block" && !plan.staged && plan.past >= config.capacity) {
        plan.moved = 0;
        append_at(plan, plan.past % config.capacity, config.capacity);
      }
      break;
    case Fault::write_back_oldest:
      plan.write_back_from = 0;
      break;
    case Fault::write_back_one_row_early:
      plan.write_back_from = std::max<std::int64_t>(0, plan.write_back_from - 1);
      break;
    case Fault::append_row_kept_by_rollback:
      append_at(plan, plan.append_row + astray, rows_of_append(config, plan));
      break;
    default:
      break;
  }
}

bool ragged(std::span<const EntryPlan> plans) {
  return std::any_of(plans.begin(), plans.end(),
                     [&](const EntryPlan& plan) { return plan.length() != plans[0].length(); });
}

void distort_origin(Fault fault, bool attention, QueryCase& at) {
  const bool has_past = !at.from_end && at.past > 0;
  switch (fault) {
    case Fault::causal_skipped_single_query:
      if (attention && has_past && at.queries == 1 && at.tokens > 1) at.causal = false;
      break;
    case Fault::causal_top_left_with_past:
      if (has_past) at.past = 0;
      break;
    case Fault::causal_bottom_right_by_total:
      if (attention && has_past) at.past = at.length - at.queries;
      break;
    case Fault::causal_bottom_right_without_past:
      if (attention && !at.from_end && at.past == 0) at.past = at.length - at.queries;
      break;
    case Fault::nonpad_top_left:
      if (at.from_end) at.anchor = at.queries;
      break;
    case Fault::nonpad_offset_clamped:
      if (at.from_end) at.anchor = std::max(at.anchor, at.queries);
      break;
    case Fault::chunk_first_position:
      at.query = 0;
      break;
    case Fault::causal_always:
      at.causal = true;
      break;
    default:
      break;
  }
}

void distort_window(Fault fault, QueryCase& at) {
  switch (fault) {
    case Fault::window_one_wide:
      if (at.window >= 0) ++at.window;
      break;
    case Fault::window_one_narrow:
      if (at.window > 0) --at.window;
      break;
    case Fault::window_ignored_single_token:
      if (at.tokens == 1 && at.past > 0) at.window = -1;
      break;
    case Fault::self_excluded:
      --at.query;
      break;
    case Fault::right_window_ignored:
      at.right = -1;
      break;
    case Fault::window_one_wide_many_tokens:
      if (at.window >= 0 && at.tokens > 1) ++at.window;
      break;
    default:
      break;
  }
}

}  // namespace

void distort_plans(Fault fault, const SessionConfig& config, std::span<const std::int64_t> astray,
                   std::span<EntryPlan> plans) {
  if (fault == Fault::none) return;
  for (std::size_t b = 0; b < plans.size(); ++b) distort_plan(fault, config, astray[b], plans[b]);
  if (fault == Fault::append_at_longest) {
    std::int64_t longest = 0;
    for (const EntryPlan& plan : plans) longest = std::max(longest, plan.append_row);
    for (EntryPlan& plan : plans) append_at(plan, longest, rows_of_append(config, plan));
  }
}

std::int64_t settled_length(Fault fault, std::span<const EntryPlan> plans, std::size_t entry,
                            std::int64_t rows) {
  const EntryPlan& plan = plans[entry];
  const bool idle =
      plan.tokens == 0 &&
      std::any_of(plans.begin(), plans.end(), [](const EntryPlan& p) { return p.tokens > 0; });
  const bool advances = fault == Fault::idle_entry_advances && idle && plan.length() < rows;
  return plan.length() + (advances ? 1 : 0);
}

QueryCase mistaken_case(Fault fault, const SessionConfig& config, std::span<const EntryPlan> plans,
                        QueryCase right) {
  QueryCase at = right;
  distort_origin(fault, config.op == "attention", at);
  distort_window(fault, at);
  if (at.from_end && fault == Fault::capacity_for_length) at.anchor = config.capacity;
  if (at.from_end && fault == Fault::nonpad_limit_ignored) at.length = config.capacity;
  if (fault == Fault::length_one_too_many) ++at.length;
  if (fault == Fault::position_in_four_bits) {
    at.past &= 15;
    at.anchor &= 15;
  }
  if (fault == Fault::batch_maximum_for_length) {
    for (const EntryPlan& plan : plans) {
      at.past = std::max(at.past, plan.past);
      at.length = std::max(at.length, plan.length());
    }
    at.anchor = at.length;
  }
  return at;
}

EntryRows distort_rows(Fault fault, std::span<const EntryPlan> plans,
                       std::span<const EntryRows> rows, std::size_t entry) {
  EntryRows at = rows[entry];
  if (fault == Fault::batch_entry_zero_rows && ragged(plans)) {
    at.key = rows[0].key;
    at.value = rows[0].value;
    at.rows = rows[0].rows;
  }
  if (fault == Fault::first_position_of_entry_zero) at.first_position = rows[0].first_position;
  return at;
}

std::int64_t distort_row(Fault fault, std::int64_t row, std::int64_t row_bytes) {
  if (fault == Fault::row_in_four_bits) return row & 15;
  if (fault == Fault::offset_in_nine_bits) return ((row * row_bytes) & 511) / row_bytes;
  return row;
}

std::int64_t distort_entry(Fault fault, std::int64_t entry, std::int64_t bytes) {
  return fault == Fault::entry_offset_in_ten_bits && entry * bytes > 1023 ? 0 : entry;
}

std::int64_t distort_key_head(Fault fault, std::int64_t kv_heads, std::int64_t head,
                              std::int64_t right) {
  if (fault == Fault::key_head_zero) return 0;
  return fault == Fault::head_modulo ? head % kv_heads : right;
}

std::int64_t distort_value_head(Fault fault, std::int64_t kv_heads, std::int64_t head,
                                std::int64_t right) {
  return fault == Fault::head_modulo ? head % kv_heads : right;
}

}  // namespace kvcheck::kernels
