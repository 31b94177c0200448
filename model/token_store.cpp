// Evaluation of a fill into dense rows.
#include "model/token_store.h"

#include <span>

#include "model/counter_hash.h"

namespace kvcheck::model {

std::size_t TokenStore::NameHash::operator()(const Name& name) const {
  return static_cast<std::size_t>(counter_hash(static_cast<std::uint64_t>(name.entry),
                                               name.token.position.value, name.token.generation));
}

const TokenRows& TokenStore::rows(std::int64_t entry, Token token) {
  const auto [place, is_new] = rows_.try_emplace(Name{entry, token});
  TokenRows& rows = place->second;
  if (!is_new) return rows;
  const auto heads = static_cast<std::size_t>(scenario_->kv_heads);
  const auto lanes = static_cast<std::size_t>(scenario_->head_size);
  const auto value_lanes = static_cast<std::size_t>(scenario_->value_head_size);
  rows.keys.resize(heads * lanes);
  rows.values.resize(heads * value_lanes);
  for (std::size_t head = 0; head < heads; ++head) {
    const auto kv_head = static_cast<std::int64_t>(head);
    fill_->key_row(entry, kv_head, token, std::span(rows.keys).subspan(head * lanes, lanes));
    fill_->value_row(entry, kv_head, token,
                     std::span(rows.values).subspan(head * value_lanes, value_lanes));
  }
  return rows;
}

}  // namespace kvcheck::model
