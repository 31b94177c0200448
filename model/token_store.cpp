// Evaluation of a fill into dense rows.
#include "model/token_store.h"

#include <algorithm>
#include <span>

namespace kvcheck::model {
namespace {

std::span<double> row_of(std::vector<double>& data, std::int64_t row, std::int64_t lanes) {
  return {data.data() + row * lanes, static_cast<std::size_t>(lanes)};
}

}  // namespace

TokenStore::TokenStore(const Scenario& scenario, const Timeline& timeline, const Fill& fill)
    : timeline_(&timeline),
      head_size_(scenario.head_size),
      value_head_size_(scenario.value_head_size),
      rows_(static_cast<std::size_t>(scenario.batch)) {
  for (std::int64_t entry = 0; entry < scenario.batch; ++entry) {
    const auto b = static_cast<std::size_t>(entry);
    std::vector<Token> tokens;
    for (std::size_t step = 0; step < timeline.steps().size(); ++step) {
      const EntryStep& around = timeline.steps()[step].entries[b];
      for (std::int64_t p = around.past; p < around.length; ++p) {
        tokens.push_back({{p}, timeline.generation(step, entry, {p})});
      }
    }
    Rows& rows = rows_[b];
    rows.slots = static_cast<std::int64_t>(tokens.size());
    const std::int64_t count = rows.slots * scenario.kv_heads;
    rows.keys.resize(static_cast<std::size_t>(count * head_size_));
    rows.values.resize(static_cast<std::size_t>(count * value_head_size_));
    std::int64_t row = 0;
    for (std::int64_t head = 0; head < scenario.kv_heads; ++head) {
      for (const Token& token : tokens) {
        fill.key_row(entry, head, token, row_of(rows.keys, row, head_size_));
        fill.value_row(entry, head, token, row_of(rows.values, row, value_head_size_));
        ++row;
      }
    }
  }
}

std::vector<std::int64_t> TokenStore::slots(std::size_t step, std::int64_t entry) const {
  std::vector<std::int64_t> live;
  std::int64_t next = 0;
  for (std::size_t i = 0; i <= step; ++i) {
    const EntryStep& around = timeline_->steps()[i].entries[static_cast<std::size_t>(entry)];
    live.resize(static_cast<std::size_t>(std::min(around.past, around.length)));
    for (std::int64_t p = around.past; p < around.length; ++p) live.push_back(next++);
  }
  return live;
}

const double* TokenStore::key(std::int64_t entry, std::int64_t kv_head, std::int64_t slot) const {
  const Rows& rows = rows_[static_cast<std::size_t>(entry)];
  return rows.keys.data() + (kv_head * rows.slots + slot) * head_size_;
}

const double* TokenStore::value(std::int64_t entry, std::int64_t kv_head, std::int64_t slot) const {
  const Rows& rows = rows_[static_cast<std::size_t>(entry)];
  return rows.values.data() + (kv_head * rows.slots + slot) * value_head_size_;
}

}  // namespace kvcheck::model
