// Reading lanes.
#include "properties/digit_launch.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/oracle.h"
#include "model/visibility.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using model::FillKind;
using model::Scenario;

constexpr std::int64_t kNoDigit = -1;

/// Whether lanes whose outputs and bounds have these sums, with values of 1, cannot be those of a
/// head with another value: those differ by o in sum, and both values together are below this.
bool tells_head(double outputs, double bounds) {
  return 2 * static_cast<double>(model::kDigitValues) * bounds < outputs;
}

/// Launches of several digits have the same keys.
Execution launched(kernels::Target& target, const Scenario& scenario,
                   const model::Timeline& timeline, const model::Fill& fill,
                   std::optional<DrawnRows>& drawn, const Interposer* interposer) {
  if (!drawn) drawn.emplace(scenario);
  drawn->turn_to(scenario);
  ExecuteOptions options;
  options.want_rows = false;
  options.interposer = interposer;
  options.rows = &*drawn;
  return execute(target, scenario, timeline, fill, options);
}

}  // namespace

DigitLaunch::DigitLaunch(kernels::Target& target, Scenario coded, const model::Timeline& timeline,
                         std::int64_t length, UniformRows& rows, std::optional<DrawnRows>& drawn,
                         const Interposer* interposer)
    : target_(target),
      scenario_(std::move(coded)),
      timeline_(timeline),
      fill_(scenario_, timeline),
      rows_(rows),
      quick_(is_quick()),
      execution_(launched(target, scenario_, timeline, fill_, drawn, interposer)),
      length_(length),
      lit_(static_cast<std::size_t>(scenario_.value_head_size)),
      observed_(lit_.size()) {
  find_lanes();
}

void DigitLaunch::find_lanes() {
  const bool digits = scenario_.fill.kind == FillKind::position_digits;
  if (digits) shown_ = scenario_.fill.index;
  const std::int64_t heads = scenario_.batch * scenario_.kv_heads;
  value_of_.reserve(static_cast<std::size_t>(heads));
  digit_of_.reserve(static_cast<std::size_t>(heads) * lit_.size());
  lanes_.reserve(static_cast<std::size_t>(heads * length_ * shown_));
  for (std::int64_t b = 0; b < scenario_.batch; ++b) {
    for (std::int64_t h = 0; h < scenario_.kv_heads; ++h) {
      value_of_.push_back(digits ? model::digit_value(scenario_, b, h) : 1);
      const std::size_t first = digit_of_.size();
      digit_of_.resize(first + lit_.size(), digits ? kNoDigit : 0);
      for (std::int64_t p = 0; p < length_; ++p) {
        for (std::int64_t d = 0; d < shown_; ++d) {
          lanes_.push_back(digits ? model::digit_lane(scenario_, b, h, {p}, d)
                                  : model::position_lane(scenario_, b, h, {p}));
        }
      }
      if (!digits) continue;
      // Of every value that a digit may have: a key that is none of the cache's may light any lane.
      const std::int64_t base = scenario_.value_head_size / shown_;
      std::int64_t place = 1;
      for (std::int64_t d = 0; d < shown_; ++d, place *= base) {
        for (std::int64_t value = 0; value < base; ++value) {
          const std::int64_t lane = model::digit_lane(scenario_, b, h, {value * place}, d);
          digit_of_[first + static_cast<std::size_t>(lane)] = d;
        }
      }
    }
  }
}

/// Whether uniform_rows.h answers for the launch, and double is far finer than its bounds.
bool DigitLaunch::is_quick() const {
  return scenario_.cache.quantisation.kind == model::QuantisationKind::none &&
         model::is_position_fill(scenario_.fill.kind) &&
         scenario_.element_type != model::ElementType::f64 &&
         arithmetic_profile(target_.capabilities(), scenario_).accumulator_roundoff > 0x1p-40;
}

/// Of the query's KV head among those of all entries.
std::int64_t DigitLaunch::kv_head_of(const MeasuredQuery& query) const {
  return query.entry * scenario_.kv_heads +
         query.head / (scenario_.query_heads / scenario_.kv_heads);
}

/// Counts in lit_ how many of the keys that the query should see light each lane.
void DigitLaunch::count(const MeasuredQuery& query) {
  const std::int64_t kv_head = kv_head_of(query);
  if (counted_step_ == query.step && counted_entry_ == query.entry &&
      counted_query_ == query.query && counted_head_ == kv_head &&
      model::heads_see_alike(scenario_)) {
    return;
  }
  counted_step_ = query.step, counted_entry_ = query.entry;
  counted_query_ = query.query, counted_head_ = kv_head;
  std::ranges::fill(lit_, 0);
  const std::int64_t* lanes = lanes_.data() + kv_head * length_ * shown_;
  for (const model::Position position : query.expected) {
    for (std::int64_t d = 0; d < shown_; ++d) {
      const std::int64_t lane = lanes[position.value * shown_ + d];
      if (lane >= 0) ++lit_[static_cast<std::size_t>(lane)];
    }
  }
}

/// Whether some digit has no lane in which `seen(lane)` would show one key more: two sets of keys
/// that differ in that digit alone could be taken for each other.
template <class Seen>
bool DigitLaunch::some_digit_hides(const MeasuredQuery& query, const Seen& seen) const {
  const std::int64_t* digit_of = digit_of_.data() + kv_head_of(query) * scenario_.value_head_size;
  std::uint64_t shows = 0;
  for (std::size_t l = 0; l < lit_.size(); ++l) {
    if (digit_of[l] != kNoDigit && seen(l)) shows |= std::uint64_t{1} << digit_of[l];
  }
  return shows != (std::uint64_t{1} << shown_) - 1;
}

DigitLaunch::Reading DigitLaunch::read(const MeasuredQuery& query) {
  const Reading quick = read_quickly(query);
  return quick.right ? quick : read_exactly(query);
}

DigitLaunch::Reading DigitLaunch::read_quickly(const MeasuredQuery& query) {
  if (!quick_) return {};
  constexpr double kClearly = 1 - 0x1p-10;
  count(query);
  output_row(*execution_.steps[query.step].result.output, query.entry, query.query, query.head,
             observed_);
  const auto keys = static_cast<std::int64_t>(query.expected.size());
  const double value = value_of_[static_cast<std::size_t>(kv_head_of(query))];
  double outputs = 0, bounds = 0;
  shows_.assign(observed_.size(), false);
  // Most lanes are lit by few keys.
  std::array<const UniformRows::Lane*, 2> few{};
  for (std::size_t l = 0; l < observed_.size(); ++l) {
    const auto lit = static_cast<std::size_t>(lit_[l]);
    const UniformRows::Lane* known = lit < few.size() ? few[lit] : nullptr;
    if (known == nullptr) known = &rows_.lane(query.head, keys, lit_[l]);
    if (lit < few.size()) few[lit] = known;
    const UniformRows::Lane& lane = *known;
    const double off = std::abs(observed_[l] - value * lane.output);
    if (!(off <= value * (value == 1 ? kClearly * lane.bound : lane.scaled_bound))) return {};
    shows_[l] = !lane.hides_a_key;
    outputs += lane.output;
    bounds += lane.bound;
  }
  Reading reading{true, false, tells_head(outputs, bounds)};
  reading.hides = keys > 0 && some_digit_hides(query, [&](std::size_t l) { return shows_[l]; });
  return reading;
}

/// By the exact model.
DigitLaunch::Reading DigitLaunch::read_exactly(const MeasuredQuery& query) {
  if (!exact_) exact_.emplace(target_, scenario_);
  const std::int64_t lanes = scenario_.value_head_size;
  const auto& output = *execution_.steps[query.step].result.output;
  for (std::int64_t l = 0; l < lanes; ++l) {
    const double observed = output_at(output, query.entry, query.query, query.head, l);
    const double ratio =
        exact_->oracle().bound_ratio(query.step, query.entry, query.query, query.head, l, observed);
    if (!(ratio <= 1)) return {};
  }
  Reading reading{true, false, false};
  if (query.expected.empty()) return reading;
  const auto& expected = exact_->oracle().expected(query.step);
  const std::size_t at =
      model::element_index(scenario_, expected, query.entry, query.query, query.head, 0);
  const auto keys = static_cast<std::int64_t>(query.expected.size());
  const double mass = static_cast<double>(keys) + sink_mass(scenario_, query.head);
  const double value = value_of_[static_cast<std::size_t>(kv_head_of(query))];
  reading.hides = some_digit_hides(query, [&](std::size_t l) {
    return !lane_hides_a_key(expected.output[at + l] / value, expected.bound[at + l] / value, lanes,
                             keys, mass);
  });
  double outputs = 0, bounds = 0;
  for (std::size_t l = at; l < at + static_cast<std::size_t>(lanes); ++l) {
    outputs += expected.output[l];
    bounds += expected.bound[l];
  }
  reading.tells_head = tells_head(outputs, bounds);
  return reading;
}

}  // namespace kvcheck::properties
