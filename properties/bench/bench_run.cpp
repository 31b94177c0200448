// Measuring one row: ours beside a peer's process, beside other code of our own, or alone.
#include "properties/bench/bench_run.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "kernels/bench/canary.h"
#include "kernels/bench/statistics.h"
#include "properties/bench/output_check.h"

namespace kvcheck::properties {
namespace {

using namespace kernels::bench;

constexpr int kAlternations = 5;         // Of a peer in another process.
constexpr std::size_t kPairs = 31;       // Of own code, at least.
constexpr double kBurst = 2e-4;          // Seconds of one look at own code.
constexpr double kCanarySeconds = .003;  // One look at a canary.
constexpr double kNsPerMs = 1e6;
/// Largest difference between a peer's output and ours, over the largest output, that rounding
/// explains: a difference of another key, head or scale is far larger.
double difference_allowed(const Row& row, const std::string& peer) {
  const std::string& type =
      row.peer_element_type.empty() ? row.problem.element_type : row.peer_element_type;
  if (type == "bf16") return .05;
  if (type == "f16") return .01;
  // OpenVINO quantises in steps of its own.
  return type == "int8" && peer == "openvino" ? .05 : 1e-4;
}

/// The canaries of one row, looked at as often as it is timed.
class Canaries {
 public:
  explicit Canaries(double bytes) : read_(static_cast<std::size_t>(bytes)) {}

  void look() {
    fma_.push_back(fma_rate(kCanarySeconds));
    reads_.push_back(read_.rate(kCanarySeconds));
  }

  /// The roof from the medians, against the time that is in the row.
  void judge(const Row& row, BenchRow& found) {
    found.fma_gflops = quartiles(fma_).median;
    found.read_gb_per_s = quartiles(reads_).median;
    const double cores = row.ours.threads;
    const double roof_ns =
        std::max(found.bytes / found.read_gb_per_s, found.flops / found.fma_gflops);
    found.roof = roof_ns / cores / (found.ours_ms * kNsPerMs);
    found.roof_status = goal_status(found.roof, row.roof.at_least, row.roof.aim);
  }

 private:
  ReadCanary read_;
  std::vector<double> fma_, reads_;
};

void set_times(BenchRow& found, const std::vector<double>& ours, const std::vector<double>& peer) {
  const Quartiles a = quartiles(ours), b = quartiles(peer);
  found.ours_ms = a.median / kNsPerMs;
  found.ours_p10_ms = a.p10 / kNsPerMs;
  found.peer_ms = b.median / kNsPerMs;
  found.peer_p10_ms = b.p10 / kNsPerMs;
  found.ratio_p10 = b.p10 / a.p10;
}

void set_ratio(BenchRow& found, const std::vector<double>& pair_ratios, const Goal& goal) {
  const Quartiles sample = quartiles(pair_ratios);
  found.pairs = static_cast<std::int64_t>(sample.count);
  found.ratio = sample.median;
  found.quartiles = {sample.lower, sample.median, sample.upper};
  found.noisy = is_noisy(sample);
  found.status = goal_status(found.ratio, goal.at_least, goal.aim);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    // A NaN on either side must not pass as no difference.
    const double apart = std::abs(a[i] - b[i]);
    difference = std::isnan(apart) ? INFINITY : std::max(difference, apart);
  }
  return largest > 0 ? difference / largest : difference;
}

BenchRow blank(const Row& row) {
  BenchRow found;
  found.id = row.id;
  found.what = row.what;
  found.shape = row.problem.shape();
  found.element_type = row.problem.element_type;
  found.T = row.problem.length;
  found.window = row.problem.window;
  found.capacity = row.problem.capacity;
  found.flops = flops(row.problem);
  found.bytes = bytes_read(row.problem);
  found.roof_at_least = row.roof.at_least;
  found.roof_aim = row.roof.aim;
  return found;
}

void set_goal(BenchRow& found, const Goal& goal) {
  found.at_least = goal.at_least;
  found.aim = goal.aim;
  if (goal.set()) found.status = GoalStatus::not_measured;
}

}  // namespace

BenchRun::BenchRun(BenchSettings settings, kernels::RegistryOptions options)
    : settings_(std::move(settings)), options_(std::move(options)) {}

BenchRun::~BenchRun() = default;

kernels::Target& BenchRun::target(const std::string& name) {
  auto& held = targets_[name];
  if (!held) {
    auto made = kernels::make_target(name, options_);
    if (auto* problem = std::get_if<kernels::Unavailable>(&made)) {
      throw std::runtime_error(problem->reason);
    }
    held = std::get<std::unique_ptr<kernels::Target>>(std::move(made));
  }
  return *held;
}

std::string BenchRun::target_text() {
  const auto& capabilities = target(settings_.target).capabilities();
  return fmt::format("{} {}", capabilities.name, capabilities.version);
}

kernels::Target& BenchRun::own_target(const Problem& problem, const OwnOptions& options) {
  const std::string& name = options.target.empty() ? settings_.target : options.target;
  return target(own_target_name(name, problem));
}

std::unique_ptr<TimedStep> BenchRun::own_step(const Problem& problem, const OwnOptions& options) {
  return make_own_step(own_target(problem, options), problem, options);
}

BenchRun::PeerSlot& BenchRun::slot(const std::string& name) {
  PeerSlot& slot = peers_[name];
  if (slot.peer || !slot.problem.empty()) return slot;
  try {
    slot.peer = start_peer(name, options_);
  } catch (const std::runtime_error& error) {
    slot.problem = error.what();
  }
  return slot;
}

void BenchRun::alone(const Row& row, TimedStep& ours, BenchRow& found) {
  Canaries canaries(found.bytes);
  std::vector<double> times;
  for (int i = 0; i < kAlternations && !(i > 0 && stopped()); ++i) {
    canaries.look();
    const auto block = time_alone(ours, settings_.row_seconds / kAlternations);
    times.insert(times.end(), block.begin(), block.end());
  }
  const Quartiles sample = quartiles(times);
  found.ours_ms = sample.median / kNsPerMs;
  found.ours_p10_ms = sample.p10 / kNsPerMs;
  canaries.judge(row, found);
}

void BenchRun::against_peer(const Row& row, const std::string& name, TimedStep& ours,
                            BenchRow& found) {
  PeerSlot& at = slot(name);
  found.peer = at.peer ? fmt::format("{} {}", at.peer->name(), at.peer->version()) : name;
  if (!at.peer) {
    found.why = at.problem;
    return alone(row, ours, found);
  }
  Problem problem = row.problem;
  if (!row.peer_element_type.empty()) problem.element_type = row.peer_element_type;
  const double share = settings_.row_seconds / (2 * kAlternations);
  Canaries canaries(found.bytes);
  std::vector<double> all_ours, all_theirs, pair_ratios;
  try {
    // The first answer brings the output, and gets the peer's caches warm.
    const PeerAnswer first = at.peer->time(problem, 0, true);
    if (!first.refused.empty()) {
      found.why = first.refused;
      return alone(row, ours, found);
    }
    found.peer_difference = largest_difference(ours.output(row.problem.tokens() - 1), first.output);
    if (const double allowed = difference_allowed(row, at.peer->name());
        !(found.peer_difference <= allowed)) {
      found.why = fmt::format("the outputs differ by {:.2g} of the largest one, above {:.2g}",
                              found.peer_difference, allowed);
      return alone(row, ours, found);
    }
    for (int i = 0; i < kAlternations && !(i > 0 && stopped()); ++i) {
      canaries.look();
      std::vector<double> mine, theirs;
      if (i % 2 == 0) mine = time_alone(ours, share);
      theirs = at.peer->time(problem, share, false).times;
      if (i % 2 == 1) mine = time_alone(ours, share);
      pair_ratios.push_back(quartiles(theirs).median / quartiles(mine).median);
      all_ours.insert(all_ours.end(), mine.begin(), mine.end());
      all_theirs.insert(all_theirs.end(), theirs.begin(), theirs.end());
    }
  } catch (const NotTimed&) {
    throw;
  } catch (const std::runtime_error& error) {
    found.why = error.what();
    at = {};  // Started afresh for the next row.
    return alone(row, ours, found);
  }
  set_times(found, all_ours, all_theirs);
  set_ratio(found, pair_ratios, {found.at_least, found.aim});
  canaries.judge(row, found);
}

void BenchRun::against_own(const Row& row, TimedStep& ours, BenchRow& found) {
  // A second instance with other data on each side, so that no run finds its own rows in the cache.
  const auto second = [](Problem problem) {
    ++problem.seed;
    return problem;
  };
  const auto ours_too = own_step(second(row.problem), row.ours);
  const auto other = own_step(row.other->problem, row.other->options);
  const auto other_too = own_step(second(row.other->problem), row.other->options);
  const double bound_ratio =
      worst_bound_ratio(row.other->problem, *other,
                        own_target(row.other->problem, row.other->options).capabilities());
  found.bound_ratio = std::max(found.bound_ratio, bound_ratio);
  Canaries canaries(found.bytes);
  canaries.look();
  TimedStep* const a[] = {&ours, ours_too.get()};
  TimedStep* const b[] = {other.get(), other_too.get()};
  const Pairs pairs = time_pairs(a, b, settings_.row_seconds, kPairs, kBurst, settings_.stop);
  canaries.look();
  found.peer_scratch_bytes = other->scratch_bytes();
  set_times(found, pairs.a, pairs.b);
  set_ratio(found, ratios(pairs.b, pairs.a), row.other->goal);
  canaries.judge(row, found);
}

std::vector<BenchRow> BenchRun::measure(const Row& row) {
  std::vector<BenchRow> found;
  const auto add = [&](const std::string& peer, const Goal& goal) -> BenchRow& {
    BenchRow& added = found.emplace_back(blank(row));
    added.peer = peer;
    set_goal(added, goal);
    return added;
  };
  for (const std::string& name : settings_.peers) {
    const auto goal = std::find_if(row.peers.begin(), row.peers.end(),
                                   [&](const PeerGoal& peer) { return peer.peer == name; });
    if (goal != row.peers.end()) {
      add(name, goal->goal);
    } else if (!row.peers.empty() && name.starts_with("exec:")) {
      add(name, {});
    }
  }
  if (row.other) add(row.other->name, row.other->goal);
  if (found.empty()) {
    BenchRow& added = add("", {});
    if (!row.peers.empty()) added.why = "none of its peers was asked for";
  }
  std::unique_ptr<TimedStep> ours;
  try {
    ours = own_step(row.problem, row.ours);
    const double bound_ratio =
        worst_bound_ratio(row.problem, *ours, own_target(row.problem, row.ours).capabilities());
    for (BenchRow& each : found) {
      each.bound_ratio = bound_ratio;
      if (bound_ratio > 1) {
        each.why = fmt::format("the output is {:.3g} times its bound away from the exact one",
                               bound_ratio);
      } else if (row.other) {
        against_own(row, *ours, each);
      } else if (each.peer.empty()) {
        alone(row, *ours, each);
      } else {
        const std::string name = each.peer;
        against_peer(row, name, *ours, each);
      }
      each.cache_bytes = ours->cache_bytes();
      each.scratch_bytes = ours->scratch_bytes();
    }
  } catch (const NotTimed& error) {
    for (BenchRow& each : found) {
      if (std::isnan(each.ours_ms)) each.why = error.what();
    }
  }
  return found;
}

}  // namespace kvcheck::properties
