// The KV cache of the CPU kernels.
#include "kernels/cpu/cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/cpu/cache_format.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/planted/mistakes.h"

namespace kvcheck::kernels {

using namespace std::string_view_literals;

namespace {

CacheKind kind_of(const SessionConfig& config, Fault fault) {
  CacheKind kind = cache_kind(config);
  if (config.layout == "full"sv) return kind;
  if (config.layout == "min_overflow"sv) return kind;
  const bool early = fault == Fault::evicts_one_row_early && config.capacity > config.window_size;
  const bool inside = fault == Fault::evicts_inside_window && config.window_size > 1;
  kind.eviction = fault == Fault::min_overflow_eviction
                      ? Eviction::min_overflow(config.capacity, config.window_size)
                      : Eviction::blocks(config.capacity - (early ? 1 : 0),
                                         config.window_size - (inside ? 1 : 0));
  return kind;
}

}  // namespace

KvCache::KvCache(const SessionConfig& config, Fault fault)
    : config_(config),
      fault_(fault),
      kind_(kind_of(config, fault)),
      type_(cache_type(config)),
      key_width_(cache_width(config, config.head_size)),
      value_width_(cache_width(config, config.value_head_size)),
      lengths_(static_cast<std::size_t>(config.batch), 0),
      plans_(lengths_.size()),
      staging_offset_(lengths_.size(), 0),
      astray_(lengths_.size(), 0) {
  shape(buffer_, kind_.concatenates ? 0 : config.capacity);
  // Fresh memory is zero already.
  if (config.initial_poison != 0) poison(config.initial_poison, lengths_);
}

void KvCache::shape(KeyValueRows& rows, std::int64_t count) const {
  const auto bytes = static_cast<std::int64_t>(element_bytes(type_));
  rows.key.reshape(config_.batch, config_.kv_heads, count, key_width_ * bytes);
  rows.value.reshape(config_.batch, config_.kv_heads, count, value_width_ * bytes);
}

std::span<const EntryPlan> KvCache::plan(std::span<const std::int64_t> tokens) {
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    plans_[b] = plan_entry(kind_, lengths_[b], tokens[b]);
  }
  distort_plans(fault_, config_, astray_, plans_);
  return plans_;
}

void KvCache::reserve_staging() {
  const std::int64_t row_bytes = buffer_.key.row_bytes() + buffer_.value.row_bytes();
  std::int64_t bytes = 0;
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    if (!plans_[b].staged) continue;
    staging_offset_[b] = fault_ == Fault::staging_shared_by_entries ? 0 : bytes;
    bytes += (plans_[b].resident_before + plans_[b].tokens) * config_.kv_heads * row_bytes;
  }
  if (static_cast<std::size_t>(bytes) > staging_.size()) {
    staging_ = Arena(static_cast<std::size_t>(bytes));
  }
}

RowView KvCache::staged_key(std::int64_t entry) {
  const auto b = static_cast<std::size_t>(entry);
  const std::int64_t rows = plans_[b].resident_before + plans_[b].tokens;
  const std::int64_t row_bytes = buffer_.key.row_bytes();
  return {staging_.data() + staging_offset_[b], rows * row_bytes, row_bytes};
}

RowView KvCache::staged_value(std::int64_t entry) {
  const RowView key = staged_key(entry);
  const bool same = buffer_.key.row_bytes() == buffer_.value.row_bytes();
  if (fault_ == Fault::staged_values_over_keys && same) return key;
  const auto b = static_cast<std::size_t>(entry);
  const std::int64_t rows = plans_[b].resident_before + plans_[b].tokens;
  const std::int64_t row_bytes = buffer_.value.row_bytes();
  return {key.base + config_.kv_heads * key.head_stride, rows * row_bytes, row_bytes};
}

void KvCache::add_move(const RowView& from, std::int64_t from_row, const RowView& to,
                       std::int64_t to_row, std::int64_t count) {
  if (count > 0) moves_.push_back({from, to, from_row, to_row, count});
}

void KvCache::run_moves() {
  if (moves_.empty()) return;
  const std::int64_t heads = config_.kv_heads;
  std::int64_t bytes = 0;
  for (const Move& move : moves_) bytes += heads * move.count * move.to.row_stride;
  const int threads = bytes >= kParallelBytes ? config_.threads : 1;
  run_tasks(threads, static_cast<std::int64_t>(moves_.size()) * heads, [&](std::int64_t task) {
    const Move& move = moves_[static_cast<std::size_t>(task / heads)];
    const bool in_place = move.from.base == move.to.base;
    if (fault_ == Fault::compaction_first_head_only && in_place && task % heads > 0) return;
    move.to.copy_rows(move.from, task % heads, move.from_row, move.to_row, move.count);
  });
  moves_.clear();
}

void KvCache::clear_beyond(KeyValueRows& present, std::int64_t entry, std::int64_t first) {
  present.key.clear_rows(entry, first);
  present.value.clear_rows(entry, first);
}

void KvCache::place(const NewRows& rows) {
  settled_ = false;
  if (kind_.fresh_present) {
    shape(other_, kind_.concatenates ? plans_[0].length() : config_.capacity);
  }
  reserve_staging();
  KeyValueRows& present = kind_.fresh_present ? other_ : buffer_;
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    const EntryPlan& plan = plans_[b];
    const auto entry = static_cast<std::int64_t>(b);
    const RowView key = buffer_.key.entry(entry);
    const RowView value = buffer_.value.entry(entry);
    if (kind_.fresh_present) {
      // Rows without a position are zero. A fault may leave others out, too.
      const bool all = plan.staged || fault_ != Fault::none;
      clear_beyond(present, entry, all ? 0 : plan.append_row + plan.tokens);
    }
    if (plan.staged) {
      add_move(key, 0, staged_key(entry), 0, plan.resident_before);
      add_move(value, 0, staged_value(entry), 0, plan.resident_before);
    } else if (fault_ == Fault::compaction_copied_backward && !kind_.fresh_present) {
      for (std::int64_t row = plan.moved - 1; row >= 0; --row) {
        add_move(key, plan.dropped + row, key, row, 1);
        add_move(value, plan.dropped + row, value, row, 1);
        run_moves();
      }
    } else {
      const bool stale = fault_ == Fault::value_stale_after_compaction && plan.dropped > 0;
      const bool left = fault_ == Fault::values_not_compacted && plan.dropped > 0;
      add_move(key, plan.dropped, present.key.entry(entry), 0, plan.moved);
      add_move(value, plan.dropped - (stale ? 1 : 0), present.value.entry(entry), 0,
               left ? 0 : plan.moved);
    }
  }
  run_moves();
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    const auto entry = static_cast<std::int64_t>(b);
    const bool staged = plans_[b].staged;
    const std::int64_t bytes = present.key.bytes() / config_.batch;
    const std::int64_t to = distort_entry(fault_, entry, bytes);
    append(rows.key, plans_[b], entry, staged ? staged_key(entry) : present.key.entry(to));
    append(rows.value, plans_[b], entry, staged ? staged_value(entry) : present.value.entry(to));
  }
  if (kind_.fresh_present) std::swap(buffer_, other_);
}

void KvCache::append(const RowSource& source, const EntryPlan& plan, std::int64_t entry,
                     const RowView& to) const {
  const auto bytes = static_cast<std::size_t>(to.row_stride);
  const bool reversed = fault_ == Fault::chunk_reversed;
  for (std::int64_t head = 0; head < config_.kv_heads; ++head) {
    for (std::int64_t token = 0; token < plan.tokens; ++token) {
      const std::int64_t at = plan.append_row + (reversed ? plan.tokens - 1 - token : token);
      const std::int64_t row = distort_row(fault_, at, to.row_stride);
      std::memcpy(to.row(head, row), source.row(entry, token, head), bytes);
    }
  }
}

EntryRows KvCache::rows_of(std::int64_t entry) {
  const EntryPlan& plan = plans_[static_cast<std::size_t>(entry)];
  if (plan.staged && !settled_) {
    const std::int64_t rows = plan.resident_before + plan.tokens;
    return {staged_key(entry), staged_value(entry), rows, rows, plan.past - plan.resident_before};
  }
  return {buffer_.key.entry(entry), buffer_.value.entry(entry), rows(), plan.resident_after,
          plan.length() - plan.resident_after};
}

void KvCache::settle() {
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    const EntryPlan& plan = plans_[b];
    if (!plan.staged) continue;
    const auto entry = static_cast<std::int64_t>(b);
    add_move(staged_key(entry), plan.write_back_from, buffer_.key.entry(entry), 0,
             plan.resident_after);
    add_move(staged_value(entry), plan.write_back_from, buffer_.value.entry(entry), 0,
             plan.resident_after);
  }
  run_moves();
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    lengths_[b] = settled_length(fault_, plans_, b, rows());
    if (plans_[b].tokens > 0) astray_[b] = 0;
  }
  settled_ = true;
}

std::optional<std::string> KvCache::why_not_rollback(std::span<const std::int64_t> tokens) const {
  return kernels::why_not_rollback(kind_, lengths_, tokens,
                                   fault_ != Fault::rollback_always_accepted);
}

void KvCache::rollback(std::span<const std::int64_t> tokens) {
  if (fault_ == Fault::rollback_ignored) return;
  for (std::size_t b = 0; b < lengths_.size(); ++b) {
    const bool too_many = fault_ == Fault::rollback_one_too_many && tokens[b] > 0;
    lengths_[b] = std::max<std::int64_t>(0, lengths_[b] - tokens[b] - (too_many ? 1 : 0));
    if (fault_ == Fault::append_row_kept_by_rollback) astray_[b] += tokens[b];
  }
  if (!kind_.concatenates) return;
  shape(other_, lengths_[0]);
  for (std::int64_t entry = 0; entry < config_.batch; ++entry) {
    add_move(buffer_.key.entry(entry), 0, other_.key.entry(entry), 0, lengths_[0]);
    add_move(buffer_.value.entry(entry), 0, other_.value.entry(entry), 0, lengths_[0]);
  }
  run_moves();
  std::swap(buffer_, other_);
}

void KvCache::load(const LoadRequest& request) {
  shape(buffer_, kind_.concatenates ? request.lengths[0] : config_.capacity);
  buffer_.key.assign(request.rows.key.bytes);
  buffer_.value.assign(request.rows.value.bytes);
  lengths_ = request.lengths;
  std::fill(astray_.begin(), astray_.end(), 0);
}

void KvCache::poison(double value, std::span<const std::int64_t> first_row) {
  std::array<std::byte, 8> element{};
  encode_element(type_, value, element.data());
  const std::span<const std::byte> bytes = std::span(element).first(element_bytes(type_));
  for (std::size_t b = 0; b < first_row.size(); ++b) {
    buffer_.key.fill_rows(static_cast<std::int64_t>(b), first_row[b], bytes);
    buffer_.value.fill_rows(static_cast<std::int64_t>(b), first_row[b], bytes);
  }
}

CacheRows KvCache::present() const {
  return {buffer_.key.tensor(type_, key_width_), buffer_.value.tensor(type_, value_width_)};
}

std::int64_t KvCache::scratch_bytes() const {
  return static_cast<std::int64_t>(staging_.size() + other_.key.reserved() +
                                   other_.value.reserved());
}

}  // namespace kvcheck::kernels
