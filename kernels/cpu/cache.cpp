// The KV cache of cpu-naive.
#include "kernels/cpu/cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "kernels/cpu/mistakes.h"

namespace kvcheck::kernels {
namespace {

Eviction eviction_of(const SessionConfig& config, Fault fault) {
  if (config.layout != "block") return Eviction::never();
  // A period of one row is the smallest eviction that makes room: L(T) = min(T, C).
  const bool min_overflow = fault == Fault::min_overflow_eviction;
  return Eviction::blocks(config.capacity, min_overflow ? config.capacity : config.window_size);
}

}  // namespace

KvCache::KvCache(const SessionConfig& config, Fault fault)
    : config_(config),
      fault_(fault),
      eviction_(eviction_of(config, fault)),
      concatenates_(config.op == "attention" && !config.nonpad_kv_seqlen),
      fresh_present_(concatenates_ || (config.op == "gqa" && !config.share_buffers)),
      buffer_(new_rows(config.batch, concatenates_ ? 0 : config.capacity)),
      lengths_(static_cast<std::size_t>(config.batch), 0),
      staging_(lengths_.size()),
      astray_(lengths_.size(), 0) {
  poison({config.initial_poison, std::vector<std::int64_t>(lengths_.size(), 0)});
}

KeyValueRows KvCache::new_rows(std::int64_t entries, std::int64_t rows) const {
  return {RowStore(config_.element_type, entries, config_.kv_heads, rows, config_.head_size),
          RowStore(config_.element_type, entries, config_.kv_heads, rows, config_.value_head_size)};
}

std::vector<EntryPlan> KvCache::plan(std::span<const std::int64_t> tokens) const {
  std::vector<EntryPlan> plans(lengths_.size());
  for (std::size_t b = 0; b < plans.size(); ++b) {
    EntryPlan& plan = plans[b];
    plan.past = lengths_[b];
    plan.tokens = tokens[b];
    plan.resident_before = eviction_.resident(plan.past);
    plan.resident_after = eviction_.resident(plan.length());
    plan.dropped = plan.resident_before + plan.tokens - plan.resident_after;
    const std::int64_t kept = plan.resident_after - plan.tokens;  // Old rows that stay.
    plan.staged = kept < eviction_.required(plan.past);
    if (plan.staged) {
      plan.append_row = plan.resident_before;
      plan.write_back_from = plan.dropped;
    } else {
      plan.moved = plan.dropped > 0 || fresh_present_ ? kept : 0;
      plan.append_row = kept;
    }
  }
  distort_plans(fault_, config_, astray_, plans);
  return plans;
}

void KvCache::place(std::span<const EntryPlan> plans, const Tensor& key, const Tensor& value) {
  KeyValueRows present;
  if (fresh_present_) {
    present = new_rows(config_.batch, concatenates_ ? plans[0].length() : config_.capacity);
  }
  KeyValueRows& destination = fresh_present_ ? present : buffer_;
  for (std::size_t b = 0; b < plans.size(); ++b) {
    const EntryPlan& plan = plans[b];
    const auto entry = static_cast<std::int64_t>(b);
    if (plan.staged) {
      KeyValueRows staged = new_rows(1, plan.resident_before + plan.tokens);
      staged.key.copy_rows(buffer_.key, entry, 0, 0, 0, plan.resident_before);
      staged.value.copy_rows(buffer_.value, entry, 0, 0, 0, plan.resident_before);
      append(plan, entry, key, value, staged, 0);
      staging_[b] = std::move(staged);
    } else {
      compact(plan, entry, buffer_, destination);
      append(plan, entry, key, value, destination, entry);
    }
  }
  if (fresh_present_) buffer_ = std::move(present);
}

void KvCache::compact(const EntryPlan& plan, std::int64_t entry, const KeyValueRows& past,
                      KeyValueRows& present) const {
  if (fault_ == Fault::compaction_copied_backward && &past == &present) {
    for (std::int64_t row = plan.moved - 1; row >= 0; --row) {
      present.key.copy_rows(past.key, entry, plan.dropped + row, entry, row, 1);
      present.value.copy_rows(past.value, entry, plan.dropped + row, entry, row, 1);
    }
    return;
  }
  const bool stale = fault_ == Fault::value_stale_after_compaction && plan.dropped > 0;
  present.key.copy_rows(past.key, entry, plan.dropped, entry, 0, plan.moved);
  present.value.copy_rows(past.value, entry, plan.dropped - (stale ? 1 : 0), entry, 0, plan.moved);
}

void KvCache::append(const EntryPlan& plan, std::int64_t entry, const Tensor& key,
                     const Tensor& value, KeyValueRows& rows, std::int64_t rows_entry) const {
  const auto put = [&](const Tensor& from, RowStore& to, std::int64_t token, std::int64_t row) {
    const std::int64_t first = (entry * from.shape[1] + token) * to.heads();
    for (std::int64_t head = 0; head < to.heads(); ++head) {
      const auto offset = static_cast<std::size_t>(first + head) * to.row_bytes();
      std::memcpy(to.row(rows_entry, head, row), from.bytes.data() + offset, to.row_bytes());
    }
  };
  for (std::int64_t token = 0; token < plan.tokens; ++token) {
    const bool reversed = fault_ == Fault::chunk_reversed;
    const std::int64_t row = plan.append_row + (reversed ? plan.tokens - 1 - token : token);
    put(key, rows.key, token, row);
    put(value, rows.value, token, row);
  }
}

EntryRows KvCache::rows_of(std::int64_t entry, const EntryPlan& plan) const {
  const std::optional<KeyValueRows>& staged = staging_[static_cast<std::size_t>(entry)];
  if (staged) return {&*staged, 0, plan.past - plan.resident_before};
  return {&buffer_, entry, plan.length() - plan.resident_after};
}

void KvCache::settle(std::span<const EntryPlan> plans) {
  for (std::size_t b = 0; b < plans.size(); ++b) {
    const EntryPlan& plan = plans[b];
    const auto entry = static_cast<std::int64_t>(b);
    if (std::optional<KeyValueRows>& staged = staging_[b]) {
      buffer_.key.copy_rows(staged->key, 0, plan.write_back_from, entry, 0, plan.resident_after);
      buffer_.value.copy_rows(staged->value, 0, plan.write_back_from, entry, 0,
                              plan.resident_after);
      staged.reset();
    }
    lengths_[b] = settled_length(fault_, plans, b, rows());
    if (plan.tokens > 0) astray_[b] = 0;
  }
}

std::optional<std::string> KvCache::why_not_rollback(std::span<const std::int64_t> tokens) const {
  for (std::size_t b = 0; b < lengths_.size(); ++b) {
    const std::int64_t length = lengths_[b];
    if (tokens[b] < 0 || tokens[b] > length) {
      return fmt::format("rollback[{}] = {}: must be from 0 to the length ({}); drop fewer tokens",
                         b, tokens[b], length);
    }
    if (concatenates_ && tokens[b] != tokens[0]) {
      return fmt::format(
          "rollback[{}] = {}: attention has one past length for the whole batch; "
          "drop {} tokens of every entry",
          b, tokens[b], tokens[0]);
    }
    if (!eviction_.rollback_is_exact(length, tokens[b]) &&
        fault_ != Fault::rollback_always_accepted) {
      return fmt::format(
          "rollback[{}] = {}: rows that length {} needs are gone at length {}; "
          "drop at most {} tokens, or run the entry again from its start",
          b, tokens[b], length - tokens[b], length, eviction_.max_exact_rollback(length));
    }
  }
  return std::nullopt;
}

void KvCache::rollback(std::span<const std::int64_t> tokens) {
  if (fault_ == Fault::rollback_ignored) return;
  for (std::size_t b = 0; b < lengths_.size(); ++b) {
    const bool too_many = fault_ == Fault::rollback_one_too_many && tokens[b] > 0;
    lengths_[b] = std::max<std::int64_t>(0, lengths_[b] - tokens[b] - (too_many ? 1 : 0));
    if (fault_ == Fault::append_row_kept_by_rollback) astray_[b] += tokens[b];
  }
  if (concatenates_) {
    KeyValueRows shorter = new_rows(config_.batch, lengths_[0]);
    for (std::int64_t entry = 0; entry < config_.batch; ++entry) {
      shorter.key.copy_rows(buffer_.key, entry, 0, entry, 0, shorter.rows());
      shorter.value.copy_rows(buffer_.value, entry, 0, entry, 0, shorter.rows());
    }
    buffer_ = std::move(shorter);
  }
}

void KvCache::load(const LoadRequest& request) {
  const std::int64_t rows = concatenates_ ? request.lengths[0] : config_.capacity;
  const auto store = [&](const Tensor& from, std::int64_t width) {
    return RowStore(
        Tensor{config_.element_type, {config_.batch, config_.kv_heads, rows, width}, from.bytes});
  };
  buffer_ = {store(request.rows.key, config_.head_size),
             store(request.rows.value, config_.value_head_size)};
  lengths_ = request.lengths;
  std::fill(astray_.begin(), astray_.end(), 0);
}

void KvCache::poison(const PoisonRows& poison) {
  for (std::size_t b = 0; b < poison.first_row.size(); ++b) {
    buffer_.key.fill_rows(static_cast<std::int64_t>(b), poison.first_row[b], poison.value);
    buffer_.value.fill_rows(static_cast<std::int64_t>(b), poison.first_row[b], poison.value);
  }
}

}  // namespace kvcheck::kernels
