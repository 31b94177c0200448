// Making rows, and finding them again.
#include "properties/drawn_rows.h"

#include <algorithm>

#include "model/element_type.h"

namespace kvcheck::properties {
namespace {

using model::Scenario;

/// From here on rows are made anew each time: a long context would fill the memory.
constexpr std::size_t kMostBytes = std::size_t{32} << 20;

/// What the rows of a fill depend on, apart from the batch entry; steps and cache play no part.
bool same_rows(const Scenario& a, const Scenario& b) {
  const bool scaled = a.fill.kind != model::FillKind::random;
  return a.fill.kind == b.fill.kind && a.fill.seed == b.fill.seed &&
         a.element_type == b.element_type && a.query_heads == b.query_heads &&
         a.kv_heads == b.kv_heads && a.head_size == b.head_size &&
         a.value_head_size == b.value_head_size && (!scaled || a.scale == b.scale) &&
         a.cache.quantisation == b.cache.quantisation &&
         a.rotary.has_value() == b.rotary.has_value() &&
         a.qk_norm.has_value() == b.qk_norm.has_value();
}

bool same_needles(const model::NeedleSet& a, const model::NeedleSet& b) {
  return std::equal(a.needles.begin(), a.needles.begin() + static_cast<std::ptrdiff_t>(a.count),
                    b.needles.begin(), b.needles.begin() + static_cast<std::ptrdiff_t>(b.count),
                    [](const model::Needle& x, const model::Needle& y) {
                      return x.token == y.token && x.weight == y.weight;
                    });
}

Scenario without_steps(const Scenario& scenario) {
  Scenario result;
  result.fill = scenario.fill;
  result.element_type = scenario.element_type;
  result.query_heads = scenario.query_heads;
  result.kv_heads = scenario.kv_heads;
  result.head_size = scenario.head_size;
  result.value_head_size = scenario.value_head_size;
  result.scale = scenario.scale;
  result.cache.quantisation = scenario.cache.quantisation;
  result.rotary = scenario.rotary;
  result.qk_norm = scenario.qk_norm;
  return result;
}

/// Queries may stand in front of the first token.
std::size_t place_of(std::int64_t position) {
  return static_cast<std::size_t>(position >= 0 ? 2 * position : -2 * position - 1);
}

}  // namespace

DrawnRows::DrawnRows(const Scenario& scenario)
    : like_(without_steps(scenario)),
      entries_(scenario.batch),
      keeps_(scenario.fill.kind != model::FillKind::literal) {
  for (auto& entries : first_) entries.resize(static_cast<std::size_t>(entries_));
  slots_.reserve(64);
  bytes_.reserve(std::size_t{8} << 10);
}

bool DrawnRows::fit(const Scenario& scenario) const {
  const std::int64_t first = scenario.fill.first_entry - like_.fill.first_entry;
  return keeps_ && first >= 0 && first + scenario.batch <= entries_ && same_rows(like_, scenario) &&
         like_.fill.index == scenario.fill.index;
}

void DrawnRows::turn_to(const Scenario& scenario) {
  if (scenario.fill.index == like_.fill.index) return;
  like_.fill.index = scenario.fill.index;
  for (auto& places : first_[kValue]) places.clear();
}

std::int32_t* DrawnRows::first_slot(Tensor tensor, std::int64_t entry, std::int64_t position) {
  auto& places = first_[tensor][static_cast<std::size_t>(entry)];
  const std::size_t place = place_of(position);
  if (place >= places.size()) places.resize(std::max<std::size_t>(place + 1, 32), kNone);
  return &places[place];
}

const DrawnRows::Slot* DrawnRows::find(std::int32_t first, std::int64_t generation,
                                       const model::NeedleSet* needles) const {
  for (std::int32_t at = first; at != kNone;) {
    const Slot& slot = slots_[static_cast<std::size_t>(at)];
    const bool same =
        slot.generation == generation &&
        (!needles || same_needles(needles_[static_cast<std::size_t>(slot.needles)], *needles));
    if (same) return &slot;
    at = slot.next;
  }
  return nullptr;
}

std::span<std::byte> DrawnRows::add(std::size_t size, std::int32_t* first, std::int64_t generation,
                                    const model::NeedleSet* needles) {
  if (!keeps_ || bytes_.size() + size > kMostBytes) {
    passing_.resize(size);
    return passing_;
  }
  Slot slot{generation, *first, kNone, bytes_.size()};
  if (needles) {
    slot.needles = static_cast<std::int32_t>(needles_.size());
    needles_.push_back(*needles);
  }
  *first = static_cast<std::int32_t>(slots_.size());
  slots_.push_back(slot);
  bytes_.resize(bytes_.size() + size);
  return std::span(bytes_).subspan(slot.at, size);
}

template <class Draw>
std::span<const std::byte> DrawnRows::rows(Tensor tensor, const model::Fill& fill,
                                           std::int64_t entry, model::Token token,
                                           const model::NeedleSet* needles, const Draw& draw) {
  const auto lanes =
      static_cast<std::size_t>(tensor == kValue ? like_.value_head_size : like_.head_size);
  const std::int64_t heads = tensor == kQuery ? like_.query_heads : like_.kv_heads;
  const std::size_t width = lanes * model::element_bytes(like_.element_type);
  const std::size_t size = static_cast<std::size_t>(heads) * width;
  const std::int64_t own = entry + fill.first_entry() - like_.fill.first_entry;
  std::int32_t* const first = first_slot(tensor, own, token.position.value);
  if (const Slot* slot = find(*first, token.generation, needles)) {
    return std::span(bytes_).subspan(slot->at, size);
  }
  const std::span<std::byte> to = add(size, first, token.generation, needles);
  lanes_.resize(lanes);
  for (std::int64_t head = 0; head < heads; ++head) {
    draw(head, std::span(lanes_));
    model::store_elements(like_.element_type, lanes_,
                          to.data() + static_cast<std::size_t>(head) * width);
  }
  return to;
}

std::span<const std::byte> DrawnRows::keys(const model::Fill& fill, std::int64_t entry,
                                           model::Token token) {
  return rows(kKey, fill, entry, token, nullptr, [&](std::int64_t head, std::span<double> row) {
    fill.key_row(entry, head, token, row);
  });
}

std::span<const std::byte> DrawnRows::values(const model::Fill& fill, std::int64_t entry,
                                             model::Token token) {
  return rows(kValue, fill, entry, token, nullptr, [&](std::int64_t head, std::span<double> row) {
    fill.value_row(entry, head, token, row);
  });
}

std::span<const std::byte> DrawnRows::queries(const model::Fill& fill, std::size_t step,
                                              std::int64_t entry, std::int64_t query,
                                              model::Token place) {
  // All are zero.
  if (model::is_position_fill(like_.fill.kind)) place = {};
  return rows(kQuery, fill, entry, place, fill.needles(step, entry, query),
              [&](std::int64_t head, std::span<double> row) {
                fill.query_row(step, entry, head, query, row);
              });
}

}  // namespace kvcheck::properties
