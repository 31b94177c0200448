// Launches whose values show digits of positions.
#include <algorithm>
#include <cmath>
#include <optional>

#include "model/fill.h"
#include "model/oracle.h"
#include "properties/case.h"
#include "properties/convert.h"
#include "properties/query_walk.h"
#include "properties/read_back.h"
#include "properties/uniform_rows.h"

namespace kvcheck::properties {
namespace {

using model::FillKind;
using model::Scenario;

/// Digits in base `base` that tell `count` positions apart.
std::int64_t digits_needed(std::int64_t count, std::int64_t base) {
  if (base == 1) {  // One lane shows the binary digits of the position plus one.
    base = 2;
    ++count;
  }
  std::int64_t digits = 1;
  for (std::int64_t reach = base; reach < count; reach *= base) ++digits;
  return digits;
}

/// The fewest digits that show all of `count` positions in one launch; 0 where they have not the
/// lanes.
std::int64_t digits_at_once(const Scenario& scenario, std::int64_t count) {
  const std::int64_t lanes = scenario.value_head_size;
  if (count <= lanes) return 0;  // One digit does.
  for (std::int64_t digits = 2; digits <= model::most_digits(scenario); ++digits) {
    if (digits_needed(count, lanes / digits) <= digits) return digits;
  }
  return 0;
}

/// One launch whose values show one digit of every position, or all.
class DigitLaunch {
 public:
  /// \param coded the scenario under the position fill of the launch
  /// `rows` are those of the scenario under this kind of fill, whatever the digit.
  DigitLaunch(kernels::Target& target, Scenario coded, const model::Timeline& timeline,
              std::int64_t length, UniformRows& rows, std::optional<DrawnRows>& drawn)
      : target_(target),
        scenario_(std::move(coded)),
        timeline_(timeline),
        fill_(scenario_, timeline),
        rows_(rows),
        quick_(is_quick()),
        execution_(launched(drawn)),
        length_(length),
        lit_(static_cast<std::size_t>(scenario_.value_head_size)),
        observed_(lit_.size()) {
    const bool digits = scenario_.fill.kind == FillKind::position_digits;
    if (digits) shown_ = scenario_.fill.index;
    for (std::int64_t b = 0; b < scenario_.batch; ++b) {
      for (std::int64_t h = 0; h < scenario_.kv_heads; ++h) {
        const auto first = static_cast<std::ptrdiff_t>(digit_of_.size());
        digit_of_.resize(digit_of_.size() + lit_.size(), digits ? kNoDigit : 0);
        for (std::int64_t p = 0; p < length; ++p) {
          for (std::int64_t d = 0; d < shown_; ++d) {
            lanes_.push_back(digits ? model::digit_lane(scenario_, b, h, {p}, d)
                                    : model::position_lane(scenario_, b, h, {p}));
            if (digits) digit_of_[static_cast<std::size_t>(first + lanes_.back())] = d;
          }
        }
      }
    }
  }

  const Execution& execution() const { return execution_; }
  std::string broke_off() const { return properties::broke_off(scenario_, execution_); }

  /// Judges one query; false where it contradicts the contract.
  /// `hides` = whether one key more could hide within the bounds of all lanes.
  bool check(const MeasuredQuery& query, bool first, DigitCheck& check, bool& hides) {
    if (!answered_with_output(execution_, query.step)) return true;
    if (first) ++check.queries;
    return passes_quickly(query, hides) || passes(query, check, hides);
  }

 private:
  static constexpr std::int64_t kNoDigit = -1;

  /// Launches of several digits have the same keys.
  Execution launched(std::optional<DrawnRows>& drawn) {
    if (!drawn) drawn.emplace(scenario_);
    drawn->turn_to(scenario_);
    return execute(target_, scenario_, timeline_, fill_, {.want_rows = false, .rows = &*drawn});
  }

  /// Whether uniform_rows.h answers for the launch, and double is far finer than its bounds.
  bool is_quick() const {
    return scenario_.cache.quantisation.kind == model::QuantisationKind::none &&
           model::is_position_fill(scenario_.fill.kind) &&
           scenario_.element_type != model::ElementType::f64 &&
           arithmetic_profile(target_.capabilities(), scenario_).accumulator_roundoff > 0x1p-40;
  }

  /// Counts in lit_ how many of the keys that the query should see light each lane.
  void count(const MeasuredQuery& query) {
    const std::int64_t kv_head = query.head / (scenario_.query_heads / scenario_.kv_heads);
    if (counted_step_ == query.step && counted_entry_ == query.entry &&
        counted_query_ == query.query && counted_head_ == kv_head &&
        model::heads_see_alike(scenario_)) {
      return;
    }
    counted_step_ = query.step, counted_entry_ = query.entry;
    counted_query_ = query.query, counted_head_ = kv_head;
    std::ranges::fill(lit_, 0);
    const std::int64_t* lanes =
        lanes_.data() + (query.entry * scenario_.kv_heads + kv_head) * length_ * shown_;
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
  bool some_digit_hides(const MeasuredQuery& query, const Seen& seen) const {
    const std::int64_t kv_head = query.head / (scenario_.query_heads / scenario_.kv_heads);
    const std::int64_t* digit_of =
        digit_of_.data() + (query.entry * scenario_.kv_heads + kv_head) * scenario_.value_head_size;
    std::uint64_t shows = 0;
    for (std::size_t l = 0; l < lit_.size(); ++l) {
      if (digit_of[l] != kNoDigit && seen(l)) shows |= std::uint64_t{1} << digit_of[l];
    }
    return shows != (std::uint64_t{1} << shown_) - 1;
  }

  /// True where every lane is clearly within its bound; false says nothing.
  bool passes_quickly(const MeasuredQuery& query, bool& hides) {
    if (!quick_) return false;
    constexpr double kClearly = 1 - 0x1p-10;
    count(query);
    output_row(*execution_.steps[query.step].result.output, query.entry, query.query, query.head,
               observed_);
    const auto keys = static_cast<std::int64_t>(query.expected.size());
    shows_.assign(observed_.size(), false);
    for (std::size_t l = 0; l < observed_.size(); ++l) {
      const auto& lane = rows_.lane(query.head, keys, lit_[l]);
      if (!(std::abs(observed_[l] - lane.output) <= kClearly * lane.bound)) return false;
      shows_[l] = !lane.hides_a_key;
    }
    hides = keys > 0 && some_digit_hides(query, [&](std::size_t l) { return shows_[l]; });
    return true;
  }

  /// The same by the exact model.
  bool passes(const MeasuredQuery& query, DigitCheck& check, bool& hides) {
    if (!exact_) exact_.emplace(target_, scenario_);
    const std::int64_t lanes = scenario_.value_head_size;
    const auto& output = *execution_.steps[query.step].result.output;
    for (std::int64_t l = 0; l < lanes; ++l) {
      const double observed = output_at(output, query.entry, query.query, query.head, l);
      const double ratio = exact_->oracle().bound_ratio(query.step, query.entry, query.query,
                                                        query.head, l, observed);
      if (!(ratio <= 1)) {
        check.mismatch = {query.step, query.entry, query.head, query.query};
        return false;
      }
    }
    if (query.expected.empty()) return true;
    const auto& expected = exact_->oracle().expected(query.step);
    const std::size_t at =
        model::element_index(scenario_, expected, query.entry, query.query, query.head, 0);
    const auto keys = static_cast<std::int64_t>(query.expected.size());
    const double mass = static_cast<double>(keys) + sink_mass(scenario_, query.head);
    hides = some_digit_hides(query, [&](std::size_t l) {
      return !lane_hides_a_key(expected.output[at + l], expected.bound[at + l], lanes, keys, mass);
    });
    return true;
  }

  kernels::Target& target_;
  Scenario scenario_;
  const model::Timeline& timeline_;
  model::Fill fill_;
  UniformRows& rows_;
  bool quick_;
  Execution execution_;
  std::int64_t length_;
  std::int64_t shown_ = 1;              // Digits that the launch shows.
  std::vector<std::int64_t> lanes_;     // Of every entry, KV head, position and digit.
  std::vector<std::int64_t> digit_of_;  // Of every entry, KV head and lane.
  std::vector<std::int64_t> lit_;       // Of the query that was counted last, by lane.
  std::vector<double> observed_;        // Lanes of the query at hand.
  std::vector<char> shows_;             // Of these, whether a key more would show.
  std::size_t counted_step_ = 0;
  std::int64_t counted_entry_ = -1, counted_query_ = -1, counted_head_ = -1;
  std::optional<Case> exact_;
};

/// Launches the scenario under each of the fills, which together show every digit.
DigitCheck launch_digits(kernels::Target& target, const Scenario& scenario,
                         const model::Timeline& timeline, const std::vector<Scenario>& coded) {
  DigitCheck check;
  const bool one_lane = scenario.value_head_size == 1;
  const std::int64_t length = longest(timeline);
  UniformRows rows(
      coded[0], model::with_softmax_precision(arithmetic_profile(target.capabilities(), coded[0]),
                                              scenario.softmax_precision));
  std::optional<DrawnRows> drawn;
  std::vector<char> hidden;  // Of every query, whether a key could hide in what it shows.
  for (std::size_t turn = 0; turn < coded.size(); ++turn) {
    DigitLaunch launch(target, coded[turn], timeline, length, rows, drawn);
    if (!launch.execution().complete) {
      check.problem = launch.broke_off();
      return check;
    }
    std::size_t at = 0;
    for_each_query(scenario, timeline, [&](const MeasuredQuery& query) {
      bool hides = false;
      const bool passes = launch.check(query, turn == 0, check, hides);
      if (at == hidden.size()) hidden.push_back(one_lane);
      hidden[at] = one_lane ? hidden[at] && hides : hidden[at] || hides;
      ++at;
      return passes;
    });
    if (check.mismatch) return check;
  }
  check.blind = std::ranges::any_of(hidden, [](char could) { return could != 0; });
  return check;
}

}  // namespace

DigitCheck check_digits(kernels::Target& target, const Scenario& scenario) {
  const model::Timeline timeline(scenario);
  const std::int64_t length = longest(timeline);
  if (const std::int64_t digits = digits_at_once(scenario, length); digits > 0) {
    const DigitCheck check =
        launch_digits(target, scenario, timeline,
                      {with_position_fill(scenario, FillKind::position_digits, digits)});
    // Alone a digit has more lanes, each lit by fewer keys.
    if (!check.blind) return check;
  }
  std::vector<Scenario> coded;
  for (std::int64_t i = 0; i < digits_needed(length, scenario.value_head_size); ++i) {
    coded.push_back(with_position_fill(scenario, FillKind::position_code, i));
  }
  return launch_digits(target, scenario, timeline, coded);
}

}  // namespace kvcheck::properties
