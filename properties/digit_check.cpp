// Choosing the launches, and what they say together.
#include "properties/digit_check.h"

#include <algorithm>
#include <utility>

#include "model/fill.h"
#include "properties/convert.h"
#include "properties/digit_launch.h"
#include "properties/query_walk.h"

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
  for (std::int64_t digits = 1; digits <= model::most_digits(scenario); ++digits) {
    if (digits_needed(count, scenario.value_head_size / digits) <= digits) return digits;
  }
  return 0;
}

/// The scenario with one digit a launch.
std::vector<Scenario> one_by_one(const Scenario& scenario, std::int64_t length) {
  std::vector<Scenario> coded;
  for (std::int64_t i = 0; i < digits_needed(length, scenario.value_head_size); ++i) {
    coded.push_back(with_position_fill(scenario, FillKind::position_code, i));
  }
  return coded;
}

/// The scenario in as few launches as show every digit.
std::vector<Scenario> in_few(const Scenario& scenario, std::int64_t length) {
  const std::int64_t digits = digits_at_once(scenario, length);
  if (digits == 0) return one_by_one(scenario, length);
  return {with_position_fill(scenario, FillKind::position_digits, digits)};
}

}  // namespace

DigitLaunches::DigitLaunches(kernels::Target& target, const Scenario& scenario,
                             const model::Timeline& timeline)
    : target_(target),
      scenario_(scenario),
      timeline_(timeline),
      length_(longest(timeline)),
      coded_(in_few(scenario, length_)),
      rows_(UniformRows::of({coded_[0], model::with_softmax_precision(
                                            arithmetic_profile(target.capabilities(), coded_[0]),
                                            scenario.softmax_precision)})) {}

const DigitCheck& DigitLaunches::check() {
  if (check_) return *check_;
  check_ = launch(coded_, drawn_);
  const bool several = coded_[0].fill.kind == FillKind::position_digits && coded_[0].fill.index > 1;
  if (check_->blind && several) {  // Alone a digit has more lanes, each lit by fewer keys.
    std::optional<DrawnRows> drawn;
    check_ = launch(one_by_one(scenario_, length_), drawn);
  }
  return *check_;
}

DigitCheck DigitLaunches::launch(const std::vector<Scenario>& coded,
                                 std::optional<DrawnRows>& drawn) {
  DigitCheck check;
  check.tells_heads = coded[0].fill.kind == FillKind::position_digits &&
                      coded[0].cache.quantisation.kind == model::QuantisationKind::none &&
                      scenario_.batch * scenario_.kv_heads <= model::kDigitValues;
  const bool one_lane = scenario_.value_head_size == 1;
  std::vector<char> hidden;  // Of every query, whether a key could hide in what it shows.
  for (std::size_t turn = 0; turn < coded.size(); ++turn) {
    DigitLaunch launch(target_, coded[turn], timeline_, length_, *rows_, drawn);
    if (!launch.execution().complete) {
      check.problem = launch.broke_off();
      return check;
    }
    std::size_t at = 0;
    for_each_query(scenario_, timeline_, [&](const MeasuredQuery& query) {
      if (at == hidden.size()) hidden.push_back(one_lane);
      char& hides = hidden[at++];
      if (!answered_with_output(launch.execution(), query.step)) {
        hides = one_lane ? 0 : hides;
        return true;
      }
      if (turn == 0) ++check.queries;
      const DigitLaunch::Reading reading = launch.read(query);
      if (!reading.right) check.mismatch = {query.step, query.entry, query.head, query.query};
      hides = one_lane ? hides && reading.hides : hides || reading.hides;
      check.tells_heads = check.tells_heads && (query.expected.empty() || reading.tells_head);
      return reading.right;
    });
    if (check.mismatch) return check;
  }
  check.blind = std::ranges::any_of(hidden, [](char could) { return could != 0; });
  return check;
}

bool DigitLaunches::clearly_right(const OtherMask& other) {
  MeasuredQuery seen;
  for (const Scenario& coded : coded_) {
    Scenario masked = coded;
    masked.mask = other.mask;
    if (!cannot_run(target_, masked).empty()) return false;
    DigitLaunch launch(target_, std::move(masked), timeline_, length_, *rows_, drawn_,
                       &other.interposer);
    if (!launch.execution().complete) return false;
    bool right = true;
    for_each_query(scenario_, timeline_, [&](const MeasuredQuery& query) {
      if (!answered_with_output(launch.execution(), query.step)) return true;
      seen = query;
      other.see(seen);
      right = launch.read_quickly(seen).right;
      return right;
    });
    if (!right) return false;
  }
  return true;
}

DigitCheck check_digits(kernels::Target& target, const Scenario& scenario) {
  const model::Timeline timeline(scenario);
  return DigitLaunches(target, scenario, timeline).check();
}

}  // namespace kvcheck::properties
