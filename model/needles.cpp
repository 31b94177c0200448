// Boundary positions of a query, with the generations that stand there.
#include "model/needles.h"

#include <algorithm>
#include <variant>

#include "model/visibility.h"

namespace kvcheck::model {
namespace {

constexpr double kMustInclude = 1.0;
constexpr double kMustExclude = 1.25;

}  // namespace

void NeedleSet::add(Token token, double weight) {
  const auto end = needles.begin() + static_cast<std::ptrdiff_t>(count);
  const bool known =
      std::any_of(needles.begin(), end, [&](const Needle& n) { return n.token == token; });
  if (!known && token.position.value >= 0) needles[count++] = {token, weight};
}

NeedleFinder::NeedleFinder(const Scenario& scenario, const Timeline& timeline)
    : scenario_(&scenario), timeline_(&timeline) {
  for (std::size_t step = 0; step < scenario.steps.size(); ++step) {
    if (std::holds_alternative<Rollback>(scenario.steps[step])) rollbacks_.push_back(step);
  }
}

NeedleSet NeedleFinder::find(std::size_t step, std::int64_t entry, std::int64_t query) const {
  const TimelineStep& state = timeline_->steps()[step];
  const EntryStep& around = state.entries[static_cast<std::size_t>(entry)];
  const std::int64_t generation = std::get<Append>(scenario_->steps[step]).generation;
  const auto token_at = [&](std::int64_t position) {
    const bool exists = position >= 0 && position < around.length;
    return Token{{position}, exists ? timeline_->generation(step, entry, {position}) : generation};
  };
  NeedleSet set;
  const auto [first, last] =
      visible_range(*scenario_, around.length, {around.origin.value + query});
  const std::int64_t sinks = sinks_before(scenario_->cache, first);
  const std::int64_t count = sinks + std::max<std::int64_t>(0, last - first + 1);
  const auto visible = [&](std::int64_t i) { return i < sinks ? i : first + i - sinks; };
  std::int64_t newest = std::max<std::int64_t>(around.origin.value + query, -1);
  if (state.defined && count > 0) {
    newest = visible(count - 1);
    const std::int64_t oldest = visible(0);
    set.add(token_at(newest), kMustInclude);
    set.add(token_at(oldest), kMustInclude);
    set.add(token_at(visible(count / 2)), kMustInclude);
    set.add(token_at(oldest - 1), kMustExclude);
  }
  const Token next = token_at(newest + 1);
  set.add(next, kMustExclude);
  add_rolled_back(set, step, entry, next);
  return set;
}

void NeedleFinder::add_rolled_back(NeedleSet& set, std::size_t step, std::int64_t entry,
                                   Token live) const {
  const std::int64_t position = live.position.value;
  for (auto it = rollbacks_.rbegin(); it != rollbacks_.rend(); ++it) {
    if (*it >= step) continue;
    const EntryStep& around = timeline_->steps()[*it].entries[static_cast<std::size_t>(entry)];
    if (position < around.length || position >= around.past) continue;
    const Token stale{live.position, timeline_->generation(*it - 1, entry, live.position)};
    if (stale == live) continue;
    set.add(stale, kMustExclude);
    return;
  }
}

}  // namespace kvcheck::model
