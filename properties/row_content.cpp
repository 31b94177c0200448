// Bytes and ranges of tokens.
#include "properties/row_content.h"

#include <algorithm>
#include <cstring>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/parameters.h"
#include "model/quantisation.h"
#include "model/row_source.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using model::HeldToken;
using model::QuantisationKind;

model::Reading before_quantisation() {
  model::Reading reading;
  reading.without_quantisation = true;
  return reading;
}

/// The lanes of one KV head.
std::span<const double> lanes_of(std::span<const double> rows, std::int64_t kv_head,
                                 std::int64_t lanes) {
  if (rows.empty()) return {};
  return rows.subspan(static_cast<std::size_t>(kv_head * lanes), static_cast<std::size_t>(lanes));
}

}  // namespace

std::span<const std::byte> row_bytes(const kernels::Tensor& tensor, std::int64_t entry,
                                     std::int64_t kv_head, std::int64_t row) {
  const std::size_t width =
      static_cast<std::size_t>(tensor.shape[3]) * kernels::element_bytes(tensor.type);
  const auto at =
      static_cast<std::size_t>((entry * tensor.shape[1] + kv_head) * tensor.shape[2] + row);
  return {tensor.bytes.data() + at * width, width};
}

RowContent::RowContent(const model::Scenario& scenario, const model::Timeline& timeline,
                       const model::Fill& fill, double roundoff, model::Operands* operands)
    : scenario_(scenario),
      timeline_(timeline),
      fill_(fill),
      computed_keys_(scenario.rotary || scenario.qk_norm),
      quantised_(scenario.cache.quantisation.kind != QuantisationKind::none),
      unquantised_(before_quantisation()),
      operands_(quantised_ ? nullptr : operands),
      begins_(scenario.steps.size()) {
  if (operands_ == nullptr) {
    own_operands_.emplace(scenario, timeline, fill, roundoff, unquantised_);
    operands_ = &*own_operands_;
  }
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    if (std::holds_alternative<model::Rollback>(scenario.steps[i])) continue;
    const auto* append = std::get_if<model::Append>(&scenario.steps[i]);
    const std::int64_t generation = append != nullptr ? append->generation : 0;
    for (std::int64_t b = 0; b < scenario.batch; ++b) {
      const auto& entry = timeline.steps()[i].entries[static_cast<std::size_t>(b)];
      begins_[i].push_back(tokens_.size());
      for (std::int64_t p = entry.past; p < entry.length; ++p) {
        tokens_.push_back({b, {{p}, generation}, i});
      }
    }
  }
  const std::size_t element = kernels::element_bytes(storage_type(scenario));
  for (const Side side : {Side::key, Side::value}) {
    Stored& rows = stored_[static_cast<std::size_t>(side)];
    const std::int64_t lanes = side == Side::key ? scenario.head_size : scenario.value_head_size;
    rows.width = static_cast<std::size_t>(stored_lanes(scenario, lanes)) * element;
    rows.first.resize(tokens_.size(), -1);
  }
}

std::string RowContent::shape_problem(const kernels::CacheRows& rows) const {
  const auto type = storage_type(scenario_);
  const auto problem = [&](std::string_view name, const kernels::Tensor& tensor,
                           std::int64_t head_size) -> std::string {
    const std::int64_t lanes = stored_lanes(scenario_, head_size);
    const auto& shape = tensor.shape;
    if (tensor.type == type && shape.size() == 4 && shape[0] == scenario_.batch &&
        shape[1] == scenario_.kv_heads && shape[3] == lanes) {
      return "";
    }
    return fmt::format("the {} rows are {} [{}]; the cache stores {} [{},{},rows,{}]", name,
                       to_string(tensor.type), fmt::join(shape, ","), to_string(type),
                       scenario_.batch, scenario_.kv_heads, lanes);
  };
  std::string text = problem("key", rows.key, scenario_.head_size);
  if (text.empty()) text = problem("value", rows.value, scenario_.value_head_size);
  if (text.empty() && rows.key.shape[2] != rows.value.shape[2]) {
    text = fmt::format("the cache has {} rows of keys and {} of values", rows.key.shape[2],
                       rows.value.shape[2]);
  }
  return text;
}

HeldToken RowContent::held(std::size_t step, std::int64_t entry, model::Position position) const {
  const model::Written written = timeline_.written(step, entry, position);
  return {entry, {position, written.generation}, written.step};
}

std::size_t RowContent::index_of(const HeldToken& token) const {
  const auto entry = static_cast<std::size_t>(token.entry);
  const std::int64_t past = timeline_.steps()[token.step].entries[entry].past;
  return begins_[token.step][entry] + static_cast<std::size_t>(token.token.position.value - past);
}

void RowContent::encode(Side side, const HeldToken& token, std::int64_t kv_head,
                        std::span<std::byte> bytes) {
  const model::TokenRows& rows = operands_->stored(token);
  const bool key = side == Side::key;
  const std::int64_t lanes = key ? scenario_.head_size : scenario_.value_head_size;
  const auto exact = lanes_of(key ? rows.keys : rows.values, kv_head, lanes);
  if (!quantised_) {
    model::store_elements(scenario_.element_type, exact, bytes.data());
    return;
  }
  const auto kind = scenario_.cache.quantisation.kind;
  const auto cache_side = key ? model::CacheSide::key : model::CacheSide::value;
  std::vector<double> codes(exact.size());
  for (std::size_t c = 0; c < codes.size(); ++c) {
    const float scale =
        model::cache_scale(scenario_, cache_side, kv_head, static_cast<std::int64_t>(c));
    codes[c] = model::quantise(kind, scale, exact[c]);
  }
  model::store_row(kind, codes, bytes);
}

std::span<const std::byte> RowContent::given(Side side, const HeldToken& token) const {
  model::RowSource* const rows = operands_->shared_rows();
  if (rows == nullptr || quantised_) return {};
  if (side == Side::value) return rows->values(fill_, token.entry, token.token);
  return computed_keys_ ? std::span<const std::byte>{}
                        : rows->keys(fill_, token.entry, token.token);
}

std::span<const std::byte> RowContent::stored(Side side, const HeldToken& token,
                                              std::int64_t kv_head) {
  Stored& rows = stored_[static_cast<std::size_t>(side)];
  if (const auto all = given(side, token); !all.empty()) {
    return all.subspan(static_cast<std::size_t>(kv_head) * rows.width, rows.width);
  }
  std::int64_t& first = rows.first[index_of(token)];
  if (first < 0) {
    const std::size_t begin = rows.bytes.size();
    const auto heads = static_cast<std::size_t>(scenario_.kv_heads);
    rows.bytes.resize(begin + heads * rows.width);
    for (std::size_t head = 0; head < heads; ++head) {
      encode(side, token, static_cast<std::int64_t>(head),
             std::span(rows.bytes).subspan(begin + head * rows.width, rows.width));
    }
    first = static_cast<std::int64_t>(begin);
  }
  return std::span<const std::byte>(rows.bytes)
      .subspan(static_cast<std::size_t>(first) + static_cast<std::size_t>(kv_head) * rows.width,
               rows.width);
}

bool RowContent::within_range(std::span<const std::byte> row, Side side, const HeldToken& token,
                              std::int64_t kv_head) {
  // A past was quantised by the harness, so its codes are certain.
  const bool appended = std::holds_alternative<model::Append>(scenario_.steps[token.step]);
  const bool key = side == Side::key;
  if (!appended || !(quantised_ || (key && computed_keys_))) return false;
  const model::TokenRows& rows = operands_->stored(token);
  const std::int64_t lanes = key ? scenario_.head_size : scenario_.value_head_size;
  const auto exact = lanes_of(key ? rows.keys : rows.values, kv_head, lanes);
  const auto doubts = lanes_of(key ? rows.key_doubts : rows.value_doubts, kv_head, lanes);
  const auto kind = scenario_.cache.quantisation.kind;
  std::vector<double> found(exact.size());
  if (quantised_) {
    model::load_row(kind, row, found);
  } else {
    const std::size_t width = model::element_bytes(scenario_.element_type);
    for (std::size_t c = 0; c < found.size(); ++c) {
      found[c] = model::load_element(scenario_.element_type, row.data() + c * width);
    }
  }
  const auto cache_side = key ? model::CacheSide::key : model::CacheSide::value;
  for (std::size_t c = 0; c < found.size(); ++c) {
    const double doubt = doubts.empty() ? 0 : doubts[c];
    model::CodeRange range{exact[c] - doubt, exact[c] + doubt};
    if (quantised_) {
      const float scale =
          model::cache_scale(scenario_, cache_side, kv_head, static_cast<std::int64_t>(c));
      range = model::quantise_interval(kind, scale, range.lowest, range.highest);
    }
    if (!range.contains(found[c])) return false;
  }
  return true;
}

bool RowContent::side_matches(std::span<const std::byte> row, Side side, const HeldToken& token,
                              std::int64_t kv_head) {
  const auto nearest = stored(side, token, kv_head);
  const bool same =
      row.size() == nearest.size() && std::memcmp(row.data(), nearest.data(), nearest.size()) == 0;
  return same || within_range(row, side, token, kv_head);
}

RowContent::Match RowContent::match_in(const kernels::CacheRows& rows, std::int64_t entry,
                                       std::int64_t kv_head, std::int64_t row,
                                       const HeldToken& token) {
  return {side_matches(row_bytes(rows.key, entry, kv_head, row), Side::key, token, kv_head),
          side_matches(row_bytes(rows.value, entry, kv_head, row), Side::value, token, kv_head)};
}

RowContent::Match RowContent::match(const kernels::CacheRows& rows, std::int64_t kv_head,
                                    std::int64_t row, const HeldToken& token) {
  return match_in(rows, token.entry, kv_head, row, token);
}

std::int64_t RowContent::first_other_lane(const kernels::CacheRows& rows, std::int64_t kv_head,
                                          std::int64_t row, const HeldToken& token) {
  const bool key = !match(rows, kv_head, row, token).key;
  const kernels::Tensor& tensor = key ? rows.key : rows.value;
  const auto found = row_bytes(tensor, token.entry, kv_head, row);
  const auto nearest = stored(key ? Side::key : Side::value, token, kv_head);
  const auto at = std::ranges::mismatch(found, nearest).in1 - found.begin();
  const auto byte = static_cast<std::size_t>(at);
  return byte == found.size()
             ? 0
             : static_cast<std::int64_t>(byte / kernels::element_bytes(tensor.type));
}

std::optional<HeldToken> RowContent::identify(const kernels::CacheRows& rows, std::int64_t entry,
                                              std::int64_t kv_head, std::int64_t row) {
  const auto key = row_bytes(rows.key, entry, kv_head, row);
  for (auto token = tokens_.rbegin(); token != tokens_.rend(); ++token) {
    if (token->entry == entry && side_matches(key, Side::key, *token, kv_head)) return *token;
  }
  return std::nullopt;
}

}  // namespace kvcheck::properties
