// The data fills.
#include "model/fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <variant>

#include "model/counter_hash.h"
#include "model/fill_shapes.h"
#include "model/hash_lanes.h"

namespace kvcheck::model {
namespace {

enum Tensor : std::uint64_t { kQuery = 1, kKey = 2, kValue = 3 };

constexpr double kQueryNoise = 0.25;

/// Logit of a hit, for codes of magnitude 1.
constexpr double kHitLogit = 6.0;

/// The same where one key is to win.
constexpr double kSelectLogit = 64.0;

/// Keeps queries finite in every element type when a scenario's scale is tiny.
constexpr double kLargestGain = 2048.0;

constexpr double kModeratePoison = 2.5;

/// What the rows of all tokens of one head begin their hashes with.
std::uint64_t head_hash(const Scenario& scenario, std::uint64_t tensor, std::int64_t entry,
                        std::int64_t head) {
  return counter_hash(scenario.fill.seed, tensor, scenario.fill.first_entry + entry, head);
}

/// Heads whose beginnings are kept.
constexpr std::int64_t kMostHeads = 1024;

/// Of the keys that a query must see, the one that it selects.
void keep_one(NeedleSet& set, std::uint64_t hash) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < set.count; ++i) {
    if (set.needles[i].weight == 1.0) set.needles[seen++] = set.needles[i];
  }
  if (seen > 0) set.needles[0] = set.needles[hash % seen];
  set.count = std::min<std::size_t>(seen, 1);
}

/// Of position_digits: six digits of base 2 reach 64 positions, and wider lanes need fewer.
constexpr std::int64_t kMostDigits = 6;

/// The place of a position in the one-hot code, before rotation; -1 for a dark position.
std::int64_t code_digit(const FillSpec& fill, std::int64_t lanes, std::int64_t position) {
  if (fill.kind == FillKind::position_block) {
    const std::int64_t digit = position - fill.index * lanes;
    return digit >= 0 && digit < lanes ? digit : -1;
  }
  if (lanes == 1) {  // A binary digit, lit or dark; no position is dark in all of them.
    return fill.index < 63 && ((position + 1) >> fill.index & 1) != 0 ? 0 : -1;
  }
  for (std::int64_t i = 0; i < fill.index && position > 0; ++i) position /= lanes;
  return position % lanes;
}

/// A stride near 3/8 of the lanes and prime to them: heads and entries differ as long as there
/// are lanes, and a swapped head does not look like a neighbouring position.
std::int64_t find_stride(std::int64_t lanes) {
  std::int64_t stride = std::max<std::int64_t>(1, lanes * 3 / 8);
  while (std::gcd(stride, lanes) != 1) ++stride;
  return stride;
}

/// The same, looked up where lanes are few.
std::int64_t rotation_stride(std::int64_t lanes) {
  static const auto known = [] {
    std::array<std::int64_t, 257> strides{};
    for (std::size_t i = 1; i < strides.size(); ++i) {
      strides[i] = find_stride(static_cast<std::int64_t>(i));
    }
    return strides;
  }();
  const auto at = static_cast<std::size_t>(lanes);
  return at < known.size() ? known[at] : find_stride(lanes);
}

/// Number of a KV head, counted through all entries.
std::int64_t head_number(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head) {
  return (scenario.fill.first_entry + entry) * scenario.kv_heads + kv_head;
}

/// Where a lane goes for a KV head of an entry.
std::int64_t rotated(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head,
                     std::int64_t lane) {
  const std::int64_t lanes = scenario.value_head_size;
  const std::int64_t turns = head_number(scenario, entry, kv_head) % lanes;
  return (lane + turns * rotation_stride(lanes)) % lanes;
}

}  // namespace

std::int64_t position_lane(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head,
                           Position position) {
  const std::int64_t lanes = scenario.value_head_size;
  const std::int64_t digit = code_digit(scenario.fill, lanes, position.value);
  return digit < 0 ? -1 : rotated(scenario, entry, kv_head, digit);
}

std::int64_t most_digits(const Scenario& scenario) {
  return std::min(kMostDigits, scenario.value_head_size / 2);
}

std::int64_t digit_lane(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head,
                        Position position, std::int64_t digit) {
  const std::int64_t base = scenario.value_head_size / scenario.fill.index;
  std::int64_t rest = position.value;
  for (std::int64_t i = 0; i < digit; ++i) rest /= base;
  return rotated(scenario, entry, kv_head, digit * base + rest % base);
}

double digit_value(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head) {
  if (scenario.cache.quantisation.kind != QuantisationKind::none) return 1;
  return static_cast<double>(1 + head_number(scenario, entry, kv_head) % kDigitValues);
}

Fill::Fill(const Scenario& scenario, const Timeline& timeline)
    : scenario_(&scenario), timeline_(&timeline) {
  if (scenario.fill.kind == FillKind::literal) literal_.emplace(scenario, timeline);
  shaped_ = is_shaped_fill(scenario.fill.kind);
  const bool selects = scenario.fill.kind == FillKind::selection;
  pointed_ = scenario.fill.kind == FillKind::needles || selects;
  if (!literal_ && scenario.batch * scenario.query_heads <= kMostHeads) {
    heads_.reserve(static_cast<std::size_t>(3 * scenario.batch * scenario.query_heads));
    for (const Tensor tensor : {kQuery, kKey, kValue}) {
      for (std::int64_t entry = 0; entry < scenario.batch; ++entry) {
        for (std::int64_t head = 0; head < scenario.query_heads; ++head) {
          heads_.push_back(head_hash(scenario, tensor, entry, head));
        }
      }
    }
  }
  if (!pointed_) return;
  const auto lanes = static_cast<double>(scenario.head_size);
  const double scale = std::abs(scenario.scale.value_or(1.0 / std::sqrt(lanes)));
  needle_gain_ = std::min((selects ? kSelectLogit : kHitLogit) / (lanes * scale), kLargestGain);

  const NeedleFinder finder(scenario, timeline);
  needles_.reserve(timeline.steps().size() * static_cast<std::size_t>(scenario.batch));
  for (std::size_t step = 0; step < timeline.steps().size(); ++step) {
    for (std::int64_t entry = 0; entry < scenario.batch; ++entry) {
      const EntryStep& around = timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
      std::vector<NeedleSet>& sets = needles_.emplace_back();
      sets.reserve(static_cast<std::size_t>(around.queries));
      for (std::int64_t q = 0; q < around.queries; ++q) {
        sets.push_back(finder.find(step, entry, q));
        if (!selects) continue;
        keep_one(sets.back(), counter_hash(scenario.fill.seed, around.origin.value + q));
      }
    }
  }
}

/// Most of the hash is that of the head.
std::uint64_t Fill::row_hash(std::uint64_t tensor, std::int64_t entry, std::int64_t head,
                             Token token) const {
  const bool known = !heads_.empty() && entry >= 0 && entry < scenario_->batch && head >= 0 &&
                     head < scenario_->query_heads;
  const std::int64_t at =
      ((static_cast<std::int64_t>(tensor) - kQuery) * scenario_->batch + entry) *
          scenario_->query_heads +
      head;
  const std::uint64_t hash =
      known ? heads_[static_cast<std::size_t>(at)] : head_hash(*scenario_, tensor, entry, head);
  return continue_hash(hash, token.position.value, token.generation);
}

ShapedRow Fill::shaped_row(std::uint64_t tensor, std::int64_t entry, std::int64_t head,
                           Token token) const {
  const std::int64_t kv_head =
      tensor == kQuery ? head / (scenario_->query_heads / scenario_->kv_heads) : head;
  return {row_hash(tensor, entry, head, token),
          counter_hash(scenario_->fill.seed, scenario_->fill.first_entry + entry, kv_head),
          token.position.value};
}

struct Fill::QueryRow {
  std::uint64_t own = 0;
  std::array<std::uint64_t, std::tuple_size_v<decltype(NeedleSet::needles)>> codes{};
  const NeedleSet* set = nullptr;
};

double Fill::key_lane(std::uint64_t row, std::int64_t lane) const {
  const std::uint64_t hash = nth_of(row, lane);
  if (scenario_->fill.kind != FillKind::random) return code(hash);
  return round_to(scenario_->element_type, roughly_normal(hash));
}

double Fill::value_lane(std::uint64_t row, std::int64_t lane) const {
  return round_to(scenario_->element_type, roughly_normal(nth_of(row, lane)));
}

double Fill::key(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const {
  if (literal_) return literal_->key(entry, kv_head, token, lane);
  if (shaped_) {
    return shaped_key(*scenario_, shaped_row(kKey, entry, kv_head, token), lane);
  }
  return key_lane(row_hash(kKey, entry, kv_head, token), lane);
}

double Fill::value(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const {
  if (literal_) return literal_->value(entry, kv_head, token, lane);
  if (shaped_) {
    return shaped_value(*scenario_, shaped_row(kValue, entry, kv_head, token), lane);
  }
  if (scenario_->fill.kind == FillKind::position_digits) {
    for (std::int64_t digit = 0; digit < scenario_->fill.index; ++digit) {
      if (lane == digit_lane(*scenario_, entry, kv_head, token.position, digit)) {
        return digit_value(*scenario_, entry, kv_head);
      }
    }
    return 0;
  }
  if (is_position_fill(scenario_->fill.kind)) {
    return lane == position_lane(*scenario_, entry, kv_head, token.position) ? 1.0 : 0.0;
  }
  return value_lane(row_hash(kValue, entry, kv_head, token), lane);
}

Fill::QueryRow Fill::query_source(std::size_t step, std::int64_t entry, std::int64_t query_head,
                                  std::int64_t query) const {
  const auto b = static_cast<std::size_t>(entry);
  const EntryStep& around = timeline_->steps()[step].entries[b];
  const std::int64_t generation = std::get<Append>(scenario_->steps[step]).generation;
  QueryRow row;
  row.own = row_hash(kQuery, entry, query_head, {{around.origin.value + query}, generation});
  if (!pointed_) return row;
  const std::int64_t kv_head = query_head / (scenario_->query_heads / scenario_->kv_heads);
  row.set = &needles_of(step, entry)[static_cast<std::size_t>(query)];
  for (std::size_t i = 0; i < row.set->count; ++i) {
    row.codes[i] = row_hash(kKey, entry, kv_head, row.set->needles[i].token);
  }
  return row;
}

double Fill::query_lane(const QueryRow& row, std::int64_t lane) const {
  if (is_position_fill(scenario_->fill.kind)) return 0;
  const double normal = roughly_normal(nth_of(row.own, lane));
  if (row.set == nullptr) return round_to(scenario_->element_type, normal);
  double sum = kQueryNoise * normal;
  for (std::size_t i = 0; i < row.set->count; ++i) {
    sum += signed_code(row.set->needles[i].weight, nth_of(row.codes[i], lane));
  }
  return round_to(scenario_->element_type, needle_gain_ * sum);
}

ShapedRow Fill::shaped_query_row(std::size_t step, std::int64_t entry, std::int64_t query_head,
                                 std::int64_t query) const {
  const EntryStep& around = timeline_->steps()[step].entries[static_cast<std::size_t>(entry)];
  const std::int64_t generation = std::get<Append>(scenario_->steps[step]).generation;
  return shaped_row(kQuery, entry, query_head, {{around.origin.value + query}, generation});
}

double Fill::query(std::size_t step, std::int64_t entry, std::int64_t query_head,
                   std::int64_t query, std::int64_t lane) const {
  if (literal_) return literal_->query(step, entry, query_head, query, lane);
  if (shaped_) {
    return shaped_query(*scenario_, shaped_query_row(step, entry, query_head, query), lane);
  }
  return query_lane(query_source(step, entry, query_head, query), lane);
}

void Fill::key_row(std::int64_t entry, std::int64_t kv_head, Token token,
                   std::span<double> row) const {
  if (literal_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = literal_->key(entry, kv_head, token, static_cast<std::int64_t>(c));
    }
    return;
  }
  std::int64_t lane = 0;
  if (shaped_) {
    const ShapedRow shape = shaped_row(kKey, entry, kv_head, token);
    for (double& element : row) element = shaped_key(*scenario_, shape, lane++);
    return;
  }
  const std::uint64_t hash = row_hash(kKey, entry, kv_head, token);
  if (scenario_->fill.kind == FillKind::random) return normal_row(hash, row);
  code_lanes(hash, row);
}

void Fill::normal_row(std::uint64_t hash, std::span<double> row) const {
  normal_lanes(hash, row);
  round_row(scenario_->element_type, row);
}

void Fill::value_row(std::int64_t entry, std::int64_t kv_head, Token token,
                     std::span<double> row) const {
  if (literal_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = literal_->value(entry, kv_head, token, static_cast<std::int64_t>(c));
    }
    return;
  }
  std::int64_t lane = 0;
  if (shaped_) {
    const ShapedRow shape = shaped_row(kValue, entry, kv_head, token);
    for (double& element : row) element = shaped_value(*scenario_, shape, lane++);
    return;
  }
  if (scenario_->fill.kind == FillKind::position_digits) {
    std::ranges::fill(row, 0.0);
    const double shown = digit_value(*scenario_, entry, kv_head);
    for (std::int64_t digit = 0; digit < scenario_->fill.index; ++digit) {
      const std::int64_t lit = digit_lane(*scenario_, entry, kv_head, token.position, digit);
      if (static_cast<std::size_t>(lit) < row.size()) row[static_cast<std::size_t>(lit)] = shown;
    }
    return;
  }
  if (is_position_fill(scenario_->fill.kind)) {
    const std::int64_t lit = position_lane(*scenario_, entry, kv_head, token.position);
    for (double& element : row) element = lane++ == lit ? 1.0 : 0.0;
    return;
  }
  normal_row(row_hash(kValue, entry, kv_head, token), row);
}

void Fill::query_row(std::size_t step, std::int64_t entry, std::int64_t query_head,
                     std::int64_t query, std::span<double> row) const {
  if (literal_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = literal_->query(step, entry, query_head, query, static_cast<std::int64_t>(c));
    }
    return;
  }
  if (is_position_fill(scenario_->fill.kind)) {
    std::ranges::fill(row, 0.0);
    return;
  }
  std::int64_t lane = 0;
  if (shaped_) {
    const ShapedRow shape = shaped_query_row(step, entry, query_head, query);
    for (double& element : row) element = shaped_query(*scenario_, shape, lane++);
    return;
  }
  const QueryRow source = query_source(step, entry, query_head, query);
  if (source.set == nullptr) return normal_row(source.own, row);
  // Each lane adds up in the order of query_lane().
  normal_lanes(source.own, row);
  for (double& element : row) element *= kQueryNoise;
  for (std::size_t i = 0; i < source.set->count; ++i) {
    add_signs(source.set->needles[i].weight, source.codes[i], row);
  }
  for (double& element : row) element *= needle_gain_;
  round_row(scenario_->element_type, row);
}

double Fill::poison(Poison poison) const {
  switch (poison) {
    case Poison::zero:
      return 0;
    case Poison::finite:
      return kModeratePoison;
    case Poison::huge:
      return largest_finite(scenario_->element_type);
    case Poison::nan:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace kvcheck::model
