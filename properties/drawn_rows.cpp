// Making rows, and finding them again.
#include "properties/drawn_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/element_type.h"
#include "model/mask.h"

namespace kvcheck::properties {
namespace {

using model::Scenario;

/// From here on rows are made anew each time: a long context would fill the memory.
constexpr std::size_t kMostBytes = std::size_t{32} << 20;

/// Places of all lists; beyond them nothing is kept.
constexpr std::size_t kMostPlaces = std::size_t{4} << 20;

/// Memory that a thread keeps: of as many cases and launches as there are at the same time.
constexpr std::size_t kMostSpare = 4;
constexpr std::size_t kMostSpareBytes = std::size_t{1} << 20;

constexpr std::size_t kFirstBytes = std::size_t{8} << 10;

/// Rows of a mask are made this many columns at a time: the next step has a few more.
constexpr std::int64_t kColumnsAtOnce = 16;

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
  result.op = scenario.op;
  result.mask = scenario.mask;
  return result;
}

/// Heads whose masks differ; 0 where there is no mask, or one that depends on more than positions.
std::int64_t heads_of_mask(const Scenario& scenario) {
  const model::MaskSpec& mask = scenario.mask;
  if (mask.kind == model::MaskKind::none || mask.missing_columns > 0) return 0;
  return mask.rank >= 3 && !mask.one_head ? scenario.query_heads : 1;
}

/// No entry is longer, as far as this scenario goes.
std::int64_t most_tokens(const Scenario& scenario) {
  std::int64_t tokens = 0;
  for (const model::Step& step : scenario.steps) {
    if (const auto* append = std::get_if<model::Append>(&step)) {
      tokens += *std::ranges::max_element(append->tokens);
    } else if (const auto* past = std::get_if<model::Past>(&step)) {
      tokens += *std::ranges::max_element(past->tokens);
    }
  }
  return tokens;
}

/// Queries may stand in front of the first token.
std::size_t place_of(std::int64_t position) {
  return static_cast<std::size_t>(position >= 0 ? 2 * position : -2 * position - 1);
}

}  // namespace

std::vector<DrawnRows::Memory>& DrawnRows::spare_memory() {
  thread_local std::vector<Memory> spare;
  return spare;
}

DrawnRows::DrawnRows(const Scenario& scenario)
    : like_(without_steps(scenario)),
      entries_(scenario.batch),
      keeps_(scenario.fill.kind != model::FillKind::literal),
      mask_heads_(keeps_ ? heads_of_mask(scenario) : 0),
      lists_(static_cast<std::size_t>(entries_ * (kTensors + mask_heads_))) {
  auto& spare = spare_memory();
  if (!spare.empty()) {
    memory_ = std::move(spare.back());
    spare.pop_back();
  }
  widen(place_of(most_tokens(scenario)) + 1);
}

DrawnRows::~DrawnRows() {
  memory_.first.clear();
  memory_.slots.clear();
  memory_.needles.clear();
  auto& spare = spare_memory();
  const bool small = memory_.bytes.size() + memory_.passing.size() <= kMostSpareBytes &&
                     memory_.first.capacity() * sizeof(std::int32_t) <= kMostSpareBytes;
  if (small && spare.size() < kMostSpare) spare.push_back(std::move(memory_));
}

bool DrawnRows::fit(const Scenario& scenario) const {
  const std::int64_t first = scenario.fill.first_entry - like_.fill.first_entry;
  return keeps_ && first >= 0 && first + scenario.batch <= entries_ && same_rows(like_, scenario) &&
         like_.fill.index == scenario.fill.index;
}

void DrawnRows::turn_to(const Scenario& scenario) {
  if (scenario.fill.index == like_.fill.index) return;
  like_.fill.index = scenario.fill.index;
  const auto first =
      memory_.first.begin() + static_cast<std::ptrdiff_t>(list_of(kValue, 0) * places_);
  std::fill_n(first, static_cast<std::size_t>(entries_) * places_, kNone);
}

std::size_t DrawnRows::list_of(Tensor tensor, std::int64_t entry) const {
  return tensor * static_cast<std::size_t>(entries_) + static_cast<std::size_t>(entry);
}

std::size_t DrawnRows::list_of_mask(std::int64_t entry, std::int64_t head) const {
  return list_of(kTensors, entry * mask_heads_ + head);
}

std::int32_t* DrawnRows::first_slot(std::size_t list, std::int64_t position) {
  const std::size_t place = place_of(position);
  if (place >= places_) widen(place + 1);
  return place < places_ ? &memory_.first[list * places_ + place] : nullptr;
}

void DrawnRows::widen(std::size_t places) {
  const std::size_t wider = std::max({places, 2 * places_, std::size_t{32}});
  if (!keeps_ || wider > kMostPlaces / lists_) return;
  if (places_ == 0) {
    memory_.first.assign(lists_ * wider, kNone);
  } else {
    std::vector<std::int32_t> first(lists_ * wider, kNone);
    for (std::size_t list = 0; list < lists_; ++list) {
      std::copy_n(&memory_.first[list * places_], places_, &first[list * wider]);
    }
    memory_.first.swap(first);
  }
  places_ = wider;
}

const DrawnRows::Slot* DrawnRows::find(std::int32_t first, std::int64_t generation,
                                       const model::NeedleSet* needles) const {
  for (std::int32_t at = first; at != kNone;) {
    const Slot& slot = memory_.slots[static_cast<std::size_t>(at)];
    const bool same =
        slot.generation == generation &&
        (!needles ||
         same_needles(memory_.needles[static_cast<std::size_t>(slot.needles)], *needles));
    if (same) return &slot;
    at = slot.next;
  }
  return nullptr;
}

std::span<std::byte> DrawnRows::add(std::size_t size, std::int32_t* first, std::int64_t generation,
                                    const model::NeedleSet* needles) {
  if (first == nullptr || used_ + size > kMostBytes) {
    memory_.passing.resize(size);
    return memory_.passing;
  }
  auto& [lists, slots, sets, bytes, passing, lanes] = memory_;
  Slot slot{generation, *first, kNone, used_};
  if (needles) {
    slot.needles = static_cast<std::int32_t>(sets.size());
    sets.push_back(*needles);
  }
  *first = static_cast<std::int32_t>(slots.size());
  slots.push_back(slot);
  used_ += size;
  if (used_ > bytes.size()) bytes.resize(std::max({used_, 2 * bytes.size(), kFirstBytes}));
  return std::span(bytes).subspan(slot.at, size);
}

std::span<const std::byte> DrawnRows::bytes_of(const Slot& slot, std::size_t size) const {
  return std::span(memory_.bytes).subspan(slot.at, size);
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
  std::int32_t* const first = first_slot(list_of(tensor, own), token.position.value);
  if (const Slot* slot = first ? find(*first, token.generation, needles) : nullptr) {
    return bytes_of(*slot, size);
  }
  const std::span<std::byte> to = add(size, first, token.generation, needles);
  memory_.lanes.resize(lanes);
  for (std::int64_t head = 0; head < heads; ++head) {
    draw(head, std::span(memory_.lanes));
    model::store_elements(like_.element_type, memory_.lanes,
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

std::span<const std::byte> DrawnRows::mask_row(const Scenario& scenario,
                                               const model::Timeline& timeline, std::size_t step,
                                               std::int64_t entry, std::int64_t head,
                                               std::int64_t query, std::int64_t columns) {
  const bool boolean = scenario.mask.kind == model::MaskKind::boolean;
  const std::size_t width = boolean ? 1 : model::element_bytes(like_.element_type);
  const auto size_of = [&](std::int64_t count) { return static_cast<std::size_t>(count) * width; };
  std::int32_t* first = nullptr;
  if (mask_heads_ > 0 && scenario.mask == like_.mask && scenario.op == like_.op) {
    const auto& around = timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
    const std::int64_t own = entry + scenario.fill.first_entry - like_.fill.first_entry;
    first = first_slot(list_of_mask(own, head), around.origin.value + query);
  }
  for (std::int32_t at = first ? *first : kNone; at != kNone;) {
    const Slot& slot = memory_.slots[static_cast<std::size_t>(at)];
    if (slot.generation >= columns) return bytes_of(slot, size_of(columns));
    at = slot.next;
  }
  const std::int64_t made =
      first ? (columns + kColumnsAtOnce - 1) / kColumnsAtOnce * kColumnsAtOnce : columns;
  const std::span<std::byte> to = add(size_of(made), first, made, nullptr);
  const model::MaskRow row(scenario, timeline, step, entry, head, query);
  if (boolean) {
    for (std::int64_t j = 0; j < made; ++j) {
      to[static_cast<std::size_t>(j)] =
          std::byte{row.hides({j}) ? std::uint8_t{0} : std::uint8_t{1}};
    }
    return to.first(size_of(columns));
  }
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  memory_.lanes.resize(static_cast<std::size_t>(made));
  for (std::int64_t j = 0; j < made; ++j) {
    const model::MaskCell cell = row.at({j});
    memory_.lanes[static_cast<std::size_t>(j)] = cell.hides ? kHidden : cell.bias;
  }
  model::store_elements(like_.element_type, memory_.lanes, to.data());
  return to.first(size_of(columns));
}

}  // namespace kvcheck::properties
