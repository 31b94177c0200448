// Bytes of tokens.
#include "properties/row_content.h"

#include <algorithm>

namespace kvcheck::properties {

std::span<const std::byte> row_bytes(const kernels::Tensor& tensor, std::int64_t entry,
                                     std::int64_t kv_head, std::int64_t row) {
  const std::size_t width =
      static_cast<std::size_t>(tensor.shape[3]) * kernels::element_bytes(tensor.type);
  const auto at =
      static_cast<std::size_t>((entry * tensor.shape[1] + kv_head) * tensor.shape[2] + row);
  return {tensor.bytes.data() + at * width, width};
}

RowContent::RowContent(const model::Scenario& scenario, const model::Timeline& timeline,
                       const model::Fill& fill)
    : scenario_(scenario), fill_(fill), generations_{0} {
  for (const auto& step : timeline.steps()) {
    for (const auto& entry : step.entries) longest_ = std::max(longest_, entry.length);
  }
  for (const auto& step : scenario.steps) {
    if (const auto* append = std::get_if<model::Append>(&step)) {
      generations_.push_back(append->generation);
    }
  }
  std::sort(generations_.begin(), generations_.end());
  generations_.erase(std::unique(generations_.begin(), generations_.end()), generations_.end());
  key_cache_.resize(static_cast<std::size_t>(scenario.batch * scenario.kv_heads * longest_) *
                    generations_.size());
}

const std::vector<std::byte>& RowContent::key_bytes(std::int64_t entry, std::int64_t kv_head,
                                                    model::Token token) {
  const auto generation = static_cast<std::size_t>(
      std::lower_bound(generations_.begin(), generations_.end(), token.generation) -
      generations_.begin());
  const auto place = static_cast<std::size_t>((entry * scenario_.kv_heads + kv_head) * longest_ +
                                              token.position.value);
  auto& bytes = key_cache_[place * generations_.size() + generation];
  if (bytes.empty()) {
    const std::size_t width = model::element_bytes(scenario_.element_type);
    bytes.resize(static_cast<std::size_t>(scenario_.head_size) * width);
    for (std::int64_t c = 0; c < scenario_.head_size; ++c) {
      model::store_element(scenario_.element_type, fill_.key(entry, kv_head, token, c),
                           bytes.data() + static_cast<std::size_t>(c) * width);
    }
  }
  return bytes;
}

std::vector<std::byte> RowContent::value_bytes(std::int64_t entry, std::int64_t kv_head,
                                               model::Token token) {
  const std::size_t width = model::element_bytes(scenario_.element_type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(scenario_.value_head_size) * width);
  for (std::int64_t c = 0; c < scenario_.value_head_size; ++c) {
    model::store_element(scenario_.element_type, fill_.value(entry, kv_head, token, c),
                         bytes.data() + static_cast<std::size_t>(c) * width);
  }
  return bytes;
}

RowContent::Match RowContent::match(const kernels::CacheRows& rows, std::int64_t entry,
                                    std::int64_t kv_head, std::int64_t row, model::Token token) {
  const auto key = row_bytes(rows.key, entry, kv_head, row);
  const auto value = row_bytes(rows.value, entry, kv_head, row);
  return {std::ranges::equal(key, key_bytes(entry, kv_head, token)),
          std::ranges::equal(value, value_bytes(entry, kv_head, token))};
}

std::optional<model::Token> RowContent::identify(const kernels::CacheRows& rows, std::int64_t entry,
                                                 std::int64_t kv_head, std::int64_t row) {
  const auto key = row_bytes(rows.key, entry, kv_head, row);
  for (auto generation = generations_.rbegin(); generation != generations_.rend(); ++generation) {
    for (std::int64_t position = longest_ - 1; position >= 0; --position) {
      const model::Token token{{position}, *generation};
      if (std::ranges::equal(key, key_bytes(entry, kv_head, token))) return token;
    }
  }
  return std::nullopt;
}

}  // namespace kvcheck::properties
