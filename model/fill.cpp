// The data fills.
#include "model/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/counter_hash.h"
#include "model/visibility.h"

namespace kvcheck::model {
namespace {

enum Tensor : std::uint64_t { kQuery = 1, kKey = 2, kValue = 3 };

constexpr double kMustInclude = 1.0;
constexpr double kMustExclude = 1.25;
constexpr double kQueryNoise = 0.25;

/// Logit of a hit, for codes of magnitude 1.
constexpr double kHitLogit = 6.0;

/// Keeps queries finite in every element type when a scenario's scale is tiny.
constexpr double kLargestGain = 2048.0;

constexpr double kModeratePoison = 2.5;

std::uint64_t row_hash(const Scenario& scenario, Tensor tensor, std::int64_t entry,
                       std::int64_t head, Token token) {
  return counter_hash(scenario.fill.seed, tensor, entry, head, token.position.value,
                      token.generation);
}

std::uint64_t lane_hash(std::uint64_t row, std::int64_t lane) { return counter_hash(row, lane); }

double code_sign(std::uint64_t hash) { return (hash & 1) != 0 ? -1.0 : 1.0; }

/// +-(1 + r/128) with r < 32: exact in every element type. The magnitude makes rows of few lanes
/// distinct, which signs alone would not.
double code(std::uint64_t hash) {
  return code_sign(hash) * (1.0 + static_cast<double>((hash >> 1) & 31) / 128.0);
}

std::int64_t step_generation(const Scenario& scenario, std::size_t step) {
  const auto* append = std::get_if<Append>(&scenario.steps[step]);
  return append != nullptr ? append->generation : 0;
}

/// The place of a position in the one-hot code, before rotation; -1 for a dark position.
std::int64_t code_digit(const FillSpec& fill, std::int64_t lanes, std::int64_t position) {
  if (fill.kind == FillKind::position_block) {
    const std::int64_t digit = position - fill.index * lanes;
    return digit >= 0 && digit < lanes ? digit : -1;
  }
  if (lanes == 1) return 0;
  for (std::int64_t i = 0; i < fill.index && position > 0; ++i) position /= lanes;
  return position % lanes;
}

/// A stride near 3/8 of the lanes and prime to them: heads and entries differ as long as there
/// are lanes, and a swapped head does not look like a neighbouring position.
std::int64_t rotation_stride(std::int64_t lanes) {
  std::int64_t stride = std::max<std::int64_t>(1, lanes * 3 / 8);
  while (std::gcd(stride, lanes) != 1) ++stride;
  return stride;
}

}  // namespace

std::int64_t position_lane(const Scenario& scenario, std::int64_t entry, std::int64_t kv_head,
                           Position position) {
  const std::int64_t lanes = scenario.value_head_size;
  const std::int64_t digit = code_digit(scenario.fill, lanes, position.value);
  if (digit < 0) return -1;
  const std::int64_t turns = (entry * scenario.kv_heads + kv_head) % lanes;
  return (digit + turns * rotation_stride(lanes)) % lanes;
}

void Fill::NeedleSet::add(Token token, double weight) {
  const auto end = needles.begin() + static_cast<std::ptrdiff_t>(count);
  const bool known =
      std::any_of(needles.begin(), end, [&](const Needle& n) { return n.token == token; });
  if (!known && token.position.value >= 0) needles[count++] = {token, weight};
}

Fill::Fill(const Scenario& scenario, const Timeline& timeline)
    : scenario_(&scenario), timeline_(&timeline) {
  if (scenario.fill.kind != FillKind::needles) return;
  const auto lanes = static_cast<double>(scenario.head_size);
  const double scale = scenario.scale.value_or(1.0 / std::sqrt(lanes));
  needle_gain_ = std::min(kHitLogit / (lanes * scale), kLargestGain);

  Scenario unmasked = scenario;
  unmasked.mask.kind = MaskKind::none;
  for (std::size_t step = 0; step < timeline.steps().size(); ++step) {
    auto& sets = needles_.emplace_back(static_cast<std::size_t>(scenario.batch));
    for (std::int64_t entry = 0; entry < scenario.batch; ++entry) {
      const auto b = static_cast<std::size_t>(entry);
      for (std::int64_t q = 0; q < timeline.steps()[step].entries[b].queries; ++q) {
        sets[b].push_back(find_needles(unmasked, step, entry, q));
      }
    }
  }
}

bool Fill::position_fill() const {
  return scenario_->fill.kind == FillKind::position_code ||
         scenario_->fill.kind == FillKind::position_block;
}

Fill::NeedleSet Fill::find_needles(const Scenario& unmasked, std::size_t step, std::int64_t entry,
                                   std::int64_t query) const {
  const TimelineStep& state = timeline_->steps()[step];
  const EntryStep& around = state.entries[static_cast<std::size_t>(entry)];
  const std::int64_t generation = step_generation(*scenario_, step);
  // A position that does not exist yet will be written by this step's generation, in whichever
  // way the step is split.
  const auto token_at = [&](std::int64_t position) {
    const bool exists = position >= 0 && position < around.length;
    return Token{{position}, exists ? timeline_->generation(step, entry, {position}) : generation};
  };
  NeedleSet set;
  std::vector<Position> visible;
  if (state.defined) visible = visible_positions(unmasked, *timeline_, step, entry, 0, query);
  const std::int64_t own = around.origin.value + query;
  const std::int64_t newest =
      visible.empty() ? std::max<std::int64_t>(own, -1) : visible.back().value;
  if (!visible.empty()) {
    set.add(token_at(newest), kMustInclude);
    set.add(token_at(visible.front().value), kMustInclude);
    set.add(token_at(visible[visible.size() / 2].value), kMustInclude);
    set.add(token_at(visible.front().value - 1), kMustExclude);
  }
  const Token next = token_at(newest + 1);
  set.add(next, kMustExclude);
  add_rolled_back(set, step, entry, next);
  return set;
}

void Fill::add_rolled_back(NeedleSet& set, std::size_t step, std::int64_t entry, Token live) const {
  const auto b = static_cast<std::size_t>(entry);
  for (std::size_t i = step; i-- > 1;) {
    const EntryStep& around = timeline_->steps()[i].entries[b];
    const bool dropped = live.position.value >= around.length && live.position.value < around.past;
    if (!dropped) continue;
    const Token stale{live.position, timeline_->generation(i - 1, entry, live.position)};
    if (stale == live) continue;
    set.add(stale, kMustExclude);
    return;
  }
}

double Fill::key(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const {
  const std::uint64_t hash = lane_hash(row_hash(*scenario_, kKey, entry, kv_head, token), lane);
  if (scenario_->fill.kind != FillKind::random) return code(hash);
  return round_to(scenario_->element_type, roughly_normal(hash));
}

double Fill::value(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const {
  if (position_fill()) {
    return lane == position_lane(*scenario_, entry, kv_head, token.position) ? 1.0 : 0.0;
  }
  const std::uint64_t hash = lane_hash(row_hash(*scenario_, kValue, entry, kv_head, token), lane);
  return round_to(scenario_->element_type, roughly_normal(hash));
}

double Fill::query(std::size_t step, std::int64_t entry, std::int64_t query_head,
                   std::int64_t query, std::int64_t lane) const {
  if (position_fill()) return 0;
  const EntryStep& around = timeline_->steps()[step].entries[static_cast<std::size_t>(entry)];
  const Token own{{around.origin.value + query}, step_generation(*scenario_, step)};
  const double normal =
      roughly_normal(lane_hash(row_hash(*scenario_, kQuery, entry, query_head, own), lane));
  if (scenario_->fill.kind == FillKind::random) return round_to(scenario_->element_type, normal);

  const std::int64_t kv_head = query_head / (scenario_->query_heads / scenario_->kv_heads);
  const NeedleSet& set =
      needles_[step][static_cast<std::size_t>(entry)][static_cast<std::size_t>(query)];
  double sum = kQueryNoise * normal;
  for (std::size_t i = 0; i < set.count; ++i) {
    const Needle& needle = set.needles[i];
    sum += needle.weight *
           code_sign(lane_hash(row_hash(*scenario_, kKey, entry, kv_head, needle.token), lane));
  }
  return round_to(scenario_->element_type, needle_gain_ * sum);
}

void Fill::key_row(std::int64_t entry, std::int64_t kv_head, Token token,
                   std::span<double> row) const {
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = key(entry, kv_head, token, static_cast<std::int64_t>(i));
  }
}

void Fill::value_row(std::int64_t entry, std::int64_t kv_head, Token token,
                     std::span<double> row) const {
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = value(entry, kv_head, token, static_cast<std::int64_t>(i));
  }
}

void Fill::query_row(std::size_t step, std::int64_t entry, std::int64_t query_head,
                     std::int64_t query_index, std::span<double> row) const {
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = query(step, entry, query_head, query_index, static_cast<std::int64_t>(i));
  }
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
