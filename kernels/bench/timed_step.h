// TimedStep: something whose runs are timed, with the outputs that the timed code computes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/bench/problem.h"
#include "kernels/target.h"

namespace kvcheck::kernels::bench {

/// Why something cannot be timed: a target refused, or has no such switch.
class NotTimed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TimedStep {
 public:
  virtual ~TimedStep() = default;
  /// Before each run, not timed: brings the state back to where the next run begins.
  virtual void prepare() {}
  /// What is timed. \throws NotTimed
  virtual void run() = 0;
  /// Steps that one run does.
  virtual std::int64_t steps() const { return 1; }
  /// Outputs of the first run's first step, [query heads][head size] of one of its queries.
  virtual std::vector<double> output(std::int64_t query) = 0;
  /// Memory of the cache and beside it, in bytes; 0 = unknown.
  virtual std::int64_t cache_bytes() const { return 0; }
  virtual std::int64_t scratch_bytes() const { return 0; }
};

/// How an own kernel is run.
struct OwnOptions {
  std::string target;  ///< "cpu-flash"; empty = the one that the command names.
  int threads = 1;
  bool huge_pages = true;
  bool share_group = true;  ///< All query heads of a group share each load of keys and values.
  friend bool operator==(const OwnOptions&, const OwnOptions&) = default;
};

/// The sibling of an own target that computes the problem: "cpu-flash-q8" for an int8 cache.
std::string own_target_name(const std::string& target, const Problem& problem);

/// A problem on an own target: cpu-flash and its siblings by their engine, others by a session.
/// \throws NotTimed when the target refuses the problem or lacks a switch that `options` turn
std::unique_ptr<TimedStep> make_own_step(Target& target, const Problem& problem,
                                         const OwnOptions& options);

/// By the engine of cpu-flash, which the capabilities are those of. \throws NotTimed
std::unique_ptr<TimedStep> make_flash_step(const Capabilities& can, const Problem& problem,
                                           const OwnOptions& options);

/// Through a session. What a session copies for its caller is timed too. \throws NotTimed
std::unique_ptr<TimedStep> make_session_step(Target& target, const Problem& problem,
                                             const OwnOptions& options);

/// Nanoseconds per step of one run, `step.prepare()` left out.
double time_once(TimedStep& step);

/// Times of paired runs, nanoseconds per step: a[i] and b[i] stand side by side.
struct Pairs {
  std::vector<double> a, b;
};

/// Runs A B B A ... in one process until `seconds` are over and at least `fewest` pairs are there.
/// Several instances of a side take turns, so that a run does not find in the caches what the run
/// before it has left there. A time is the median of as many runs in a row as take `burst` seconds.
/// \pre neither side is empty
Pairs time_pairs(std::span<TimedStep* const> a, std::span<TimedStep* const> b, double seconds,
                 std::size_t fewest = 31, double burst = 2e-4,
                 const std::function<bool()>& stop = {});

/// Times of single runs until `seconds` are over; at least one.
std::vector<double> time_alone(TimedStep& step, double seconds);

}  // namespace kvcheck::kernels::bench
