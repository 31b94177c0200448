// The loops that time runs.
#include "kernels/bench/timed_step.h"

#include <algorithm>
#include <chrono>

#include "kernels/bench/statistics.h"

namespace kvcheck::kernels::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostRuns = 20000;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Median of the runs that fit into `burst` seconds, at least one.
double burst_time(TimedStep& step, double burst) {
  const auto begin = Clock::now();
  std::vector<double> times;
  do {
    times.push_back(time_once(step));
  } while (seconds_since(begin) < burst);
  return quartiles(std::move(times)).median;
}

}  // namespace

double time_once(TimedStep& step) {
  step.prepare();
  const auto begin = Clock::now();
  step.run();
  const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
  return taken.count() / static_cast<double>(step.steps());
}

Pairs time_pairs(std::span<TimedStep* const> a, std::span<TimedStep* const> b, double seconds,
                 std::size_t fewest, double burst, const std::function<bool()>& stop) {
  const auto begin = Clock::now();
  Pairs pairs;
  while (pairs.a.size() < fewest ||
         (seconds_since(begin) < seconds && pairs.a.size() < kMostRuns)) {
    if (stop && stop()) break;
    TimedStep& one = *a[pairs.a.size() % a.size()];
    TimedStep& other = *b[pairs.b.size() % b.size()];
    const bool a_first = pairs.a.size() % 2 == 0;
    const double first = burst_time(a_first ? one : other, burst);
    const double second = burst_time(a_first ? other : one, burst);
    pairs.a.push_back(a_first ? first : second);
    pairs.b.push_back(a_first ? second : first);
  }
  return pairs;
}

std::vector<double> time_alone(TimedStep& step, double seconds) {
  const auto begin = Clock::now();
  std::vector<double> times;
  do {
    times.push_back(time_once(step));
  } while (seconds_since(begin) < seconds && times.size() < kMostRuns);
  return times;
}

}  // namespace kvcheck::kernels::bench
