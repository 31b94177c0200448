// Judge all, explain what diverges, group by cause, find the cell of each group.
#include "properties/sweep/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "properties/convert.h"
#include "properties/sweep/difference.h"
#include "properties/sweep/readings.h"

namespace kvcheck::properties {
namespace {

/// A configuration that diverges, errs or is refused.
struct Remark {
  std::int64_t index = 0;
  ConfigurationResult result;
  Breaker breaker = Breaker::target;
  bool against_only = false;  ///< `result` is of the other target.
  const KnownFinding* known = nullptr;
};

Breaker breaker_of(bool target, bool against) {
  return target ? (against ? Breaker::both : Breaker::target)
                : (against ? Breaker::against : Breaker::neither);
}

class Sweep {
 public:
  Sweep(const Grid& grid, Workers& workers, bool against,
        const std::function<void(const SweepProgress&)>& watch, std::span<const KnownFinding> known)
      : grid_(grid), workers_(workers), against_(against), watch_(watch), known_(known) {
    const auto count = static_cast<std::size_t>(grid.count);
    outcomes_.resize(count);
    ratios_.resize(count);
    places_.resize(count * grid.axes.size());
    remarks_.resize(count);
  }

  SweepResult run() {
    workers_.run(
        grid_.count, [&](WorkerTargets& targets, std::int64_t i) { judge(targets, i); },
        [&](std::int64_t done) { show("judging", done, grid_.count); });
    count();
    group();
    result_.interrupted = workers_.interrupted();
    return std::move(result_);
  }

 private:
  void show(const char* phase, std::int64_t done, std::int64_t of) {
    if (watch_) watch_({phase, done, of, diverging_so_far_});
  }

  void judge(WorkerTargets& targets, std::int64_t index) {
    const Configuration configuration = grid_.at(index);
    const auto at = static_cast<std::size_t>(index);
    std::ranges::copy(configuration.at, places_.begin() + std::ssize(grid_.axes) * index);
    Remark remark;
    remark.index = index;
    remark.result = judge_on(targets, configuration.scenario, remark);
    outcomes_[at] = remark.result.outcome;
    ratios_[at] = remark.result.ratio;
    if (remark.result.outcome == SweepOutcome::diverge) ++diverging_so_far_;
    if (remark.result.outcome != SweepOutcome::agree || remark.breaker != Breaker::target) {
      remarks_[at] = std::make_unique<Remark>(std::move(remark));
    }
  }

  ConfigurationResult judge_on(WorkerTargets& targets, const model::Scenario& scenario,
                               Remark& remark) {
    std::string reason = refused_reason(targets.target->capabilities(), scenario);
    if (reason.empty() && against_) {
      reason = refused_reason(targets.against->capabilities(), scenario);
      if (!reason.empty()) reason = targets.against->capabilities().name + " " + reason;
    } else if (!reason.empty() && against_) {
      reason = targets.target->capabilities().name + " " + reason;
    }
    if (!reason.empty()) return {SweepOutcome::refused, nullptr, Kind::over_bound, reason, 0};
    Case c(*targets.target, scenario);
    ConfigurationResult mine = judge_configuration(c, grid_.visible_sets);
    if (!against_ && mine.outcome == SweepOutcome::diverge) {
      remark.known =
          explaining_entry(known_, c, *mine.property, Judgement::failed(mine.kind, mine.text));
    }
    if (!against_ || mine.outcome == SweepOutcome::errored) return mine;
    Case other(*targets.against, scenario);
    ConfigurationResult theirs = judge_configuration(other, grid_.visible_sets);
    if (theirs.outcome == SweepOutcome::errored) return theirs;
    return compare(c, other, std::move(mine), std::move(theirs), remark);
  }

  /// Of two targets: agree where every bit is the same.
  static ConfigurationResult compare(Case& c, Case& other, ConfigurationResult mine,
                                     ConfigurationResult theirs, Remark& remark) {
    const bool breaks = mine.outcome == SweepOutcome::diverge;
    const bool they_break = theirs.outcome == SweepOutcome::diverge;
    remark.breaker = breaker_of(breaks, they_break);
    remark.against_only = they_break && !breaks;
    ConfigurationResult result = remark.against_only ? std::move(theirs) : std::move(mine);
    const TargetDifference difference = compare_targets(c, other.execution());
    result.outcome = difference.text.empty() ? SweepOutcome::agree : SweepOutcome::diverge;
    if (!difference.text.empty()) {
      result.text = difference.text + (result.text.empty() ? "" : "; " + result.text);
      result.ratio = difference.ratio;
    }
    return result;
  }

  void count() {
    result_.configurations = grid_.count;
    for (std::int64_t i = 0; i < grid_.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      count_one(outcomes_[at], ratios_[at], remarks_[at].get());
    }
    result_.done = result_.agree + result_.diverge + result_.refused + result_.errored;
  }

  void count_one(SweepOutcome outcome, double ratio, const Remark* remark) {
    switch (outcome) {
      case SweepOutcome::not_run:
        return;
      case SweepOutcome::agree:
        ++result_.agree;
        result_.max_ratio = std::max(result_.max_ratio, ratio);
        if (remark && remark->breaker == Breaker::both) ++result_.both_alike_break;
        return;
      case SweepOutcome::diverge:
        ++result_.diverge;
        break;
      case SweepOutcome::refused:
        ++result_.refused;
        ++result_.refusals[remark->result.text];
        return;
      case SweepOutcome::errored:
        if (result_.errored++ == 0) result_.first_error = remark->result.text;
        return;
    }
    if (remark->known) ++result_.known[remark->known];
    const Breaker breaker = remark->breaker;
    if (breaker == Breaker::target || breaker == Breaker::both) ++result_.target_breaks;
    if (breaker == Breaker::against || breaker == Breaker::both) ++result_.against_breaks;
  }

  std::vector<std::int64_t> indices(const auto& wanted) const {
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < grid_.count; ++i) {
      if (wanted(static_cast<std::size_t>(i))) found.push_back(i);
    }
    return found;
  }

  /// By reading or entry of the ledger; what neither explains by property, kind and by which target
  /// breaks the contract.
  using Cause =
      std::tuple<const model::WrongModel*, const KnownFinding*, std::string, Kind, Breaker>;

  /// Whether an entry explains it that no reading stands for.
  bool known_by_values(std::size_t at) const {
    return remarks_[at]->known && remarks_[at]->known->reading.empty();
  }

  void group() {
    const auto agreeing =
        indices([&](std::size_t i) { return outcomes_[i] == SweepOutcome::agree; });
    std::map<std::int64_t, ReadingFound> found;
    std::vector<ReadingElsewhere> elsewhere;
    for (const bool of_against : {false, true}) {
      const auto diverging = indices([&](std::size_t i) {
        return outcomes_[i] == SweepOutcome::diverge && remarks_[i]->breaker != Breaker::neither &&
               remarks_[i]->against_only == of_against && !known_by_values(i);
      });
      if (diverging.empty()) continue;
      const Explanations explained = explain_configurations(
          workers_, grid_, diverging, agreeing, of_against,
          [&](std::int64_t done) { show("explaining", done, std::ssize(diverging)); });
      for (std::size_t i = 0; i < diverging.size(); ++i) found[diverging[i]] = explained.found[i];
      elsewhere.insert(elsewhere.end(), explained.elsewhere.begin(), explained.elsewhere.end());
    }
    std::map<Cause, std::vector<std::int64_t>> causes;
    for (const std::int64_t i :
         indices([&](std::size_t at) { return outcomes_[at] == SweepOutcome::diverge; })) {
      const Remark& remark = *remarks_[static_cast<std::size_t>(i)];
      const ReadingFound reading = found[i];
      result_.explained += reading.model || remark.known ? 1 : 0;
      const bool named = reading.model || remark.known || !remark.result.property;
      causes[{reading.model, remark.known, named ? "" : remark.result.property->id,
              named ? Kind::over_bound : remark.result.kind, remark.breaker}]
          .push_back(i);
    }
    for (const auto& [cause, members] : causes) add_group(cause, members, found, elsewhere);
    const auto diverging =
        indices([&](std::size_t at) { return outcomes_[at] == SweepOutcome::diverge; });
    if (!diverging.empty()) result_.all = cell(diverging);
    std::ranges::stable_sort(result_.groups, [](const SweepGroup& a, const SweepGroup& b) {
      return std::tuple(-a.cell.members, a.first) < std::tuple(-b.cell.members, b.first);
    });
  }

  void add_group(const Cause& cause, const std::vector<std::int64_t>& members,
                 const std::map<std::int64_t, ReadingFound>& found,
                 const std::vector<ReadingElsewhere>& elsewhere) {
    const Remark& first = *remarks_[static_cast<std::size_t>(members.front())];
    SweepGroup group;
    group.model = std::get<const model::WrongModel*>(cause);
    group.known = first.known;
    group.property = first.result.property ? first.result.property->id : "";
    group.kind = first.result.kind;
    group.breaker = first.breaker;
    group.text = first.result.text;
    group.first = members.front();
    for (const std::int64_t i : members) {
      group.ratio = std::max(group.ratio, ratios_[static_cast<std::size_t>(i)]);
      if (group.model) group.explained_ratio = std::max(group.explained_ratio, found.at(i).ratio);
    }
    for (const ReadingElsewhere& item : elsewhere) {
      if (item.model != group.model) continue;
      group.asked_elsewhere = item.asked;
      group.differs_elsewhere = item.differs;
    }
    group.cell = cell(members);
    if (!group.model && !group.known && !group.property.empty()) {
      group.nearest = nearest_reading(workers_, grid_, group.first, first.against_only);
    }
    result_.groups.push_back(std::move(group));
  }

  Cell cell(const std::vector<std::int64_t>& members) const {
    const std::size_t width = grid_.axes.size();
    Places inside(width), agreeing(width), others(width);
    auto next = members.begin();
    for (std::int64_t i = 0; i < grid_.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto place = std::span(places_).subspan(at * width, width);
      if (next != members.end() && *next == i) {
        inside.add(place);
        ++next;
      } else if (outcomes_[at] == SweepOutcome::agree) {
        agreeing.add(place);
      } else if (outcomes_[at] == SweepOutcome::diverge) {
        others.add(place);
      }
    }
    return cell_of(grid_, inside, agreeing, others);
  }

  const Grid& grid_;
  Workers& workers_;
  bool against_;
  const std::function<void(const SweepProgress&)>& watch_;
  std::span<const KnownFinding> known_;
  std::atomic<std::int64_t> diverging_so_far_{0};
  std::vector<SweepOutcome> outcomes_;
  std::vector<double> ratios_;
  std::vector<std::int16_t> places_;
  std::vector<std::unique_ptr<Remark>> remarks_;
  SweepResult result_;
};

}  // namespace

std::string_view to_string(Breaker breaker) {
  constexpr std::array<std::string_view, 4> kNames = {"neither", "target", "against", "both"};
  return kNames[static_cast<std::size_t>(breaker)];
}

SweepResult sweep(const Grid& grid, Workers& workers, bool against,
                  const std::function<void(const SweepProgress&)>& watch,
                  std::span<const KnownFinding> known) {
  return Sweep(grid, workers, against, watch, known).run();
}

}  // namespace kvcheck::properties
