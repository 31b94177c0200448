// Bench record: what one run of the benchmarks measured, as plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace kvcheck::properties {

/// What was not measured is NaN in memory and null in JSON.
inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

/// How a figure stands to its goal; aim is the farther one.
enum class GoalStatus { none, not_measured, missed, reached, aim };
std::string_view to_string(GoalStatus status);

/// The status of a value of which more is better. \pre at_least <= aim, or at_least is 0: no goal
GoalStatus goal_status(double value, double at_least, double aim);

/// Time per step of the own kernel and of one peer, side by side. Times are in milliseconds.
struct BenchRow {
  std::string id;     ///< "decode.f32.64/8/64.T8192"
  std::string what;   ///< "decode", "prefill", "windowed", ...
  std::string shape;  ///< "query heads/KV heads/head size"
  std::string element_type;
  std::int64_t T = 0, window = 0, capacity = 0;  ///< 0 = no window; a full cache.
  double ours_ms = kNotMeasured;
  std::string peer;  ///< "onnxruntime 1.32.0", "own full cache"; empty = measured alone.
  double peer_ms = kNotMeasured;
  double ratio = kNotMeasured;    ///< Median over the pairs of peer time over ours.
  std::vector<double> quartiles;  ///< Of these ratios: 25 %, 50 %, 75 %; empty = none.
  bool noisy = false;             ///< Their range is wider than 15 % of the median.
  std::int64_t pairs = 0;
  double ours_p10_ms = kNotMeasured, peer_p10_ms = kNotMeasured, ratio_p10 = kNotMeasured;
  double at_least = 0, aim = 0;  ///< Of the ratio; 0 = no goal.
  GoalStatus status = GoalStatus::none;
  std::string why;  ///< Why something of the row was not measured.

  double flops = 0, bytes = 0;                                     ///< Of one step.
  double fma_gflops = kNotMeasured, read_gb_per_s = kNotMeasured;  ///< Canaries beside the row.
  /// max(bytes / bandwidth, flops / peak) over the time measured.
  double roof = kNotMeasured;
  double roof_at_least = 0, roof_aim = 0;
  GoalStatus roof_status = GoalStatus::none;

  double bound_ratio = kNotMeasured;      ///< Largest error over its bound of the timed output.
  double peer_difference = kNotMeasured;  ///< Largest difference of outputs over the largest one.
  std::int64_t cache_bytes = 0, scratch_bytes = 0, peer_scratch_bytes = 0;  ///< 0 = not known.
};

/// How a time grows along T: slope on logarithmic axes.
struct BenchGrowth {
  std::string id;  ///< "growth.full.64/8/64"
  std::string what;
  double slope = kNotMeasured, expected = 0, tolerance = 0;
  std::vector<std::int64_t> T;
  GoalStatus status = GoalStatus::none;
};

struct BenchRecord {
  int schema = 1;
  std::string tool, started, machine, compiler, flags;
  std::vector<std::string> arguments;
  std::string target;  ///< "cpu-flash 0.1.0"
  double seconds = 0;
  std::vector<double> load;  ///< Load average at the beginning and at the end.
  std::vector<BenchRow> rows;
  std::vector<BenchGrowth> growth;
  std::vector<std::string> notes;

  /// Whether a timed output was wrong.
  bool wrong_output() const;
  /// Rows that have a ratio.
  std::int64_t compared() const;
};

/// Slopes of the rows that stand: full caches from T = 2048 on, windowed ones past their capacity.
std::vector<BenchGrowth> growth_of(const std::vector<BenchRow>& rows);

std::string to_json(const BenchRecord& record);
/// \throws model::ScenarioError that names the field that cannot be read
BenchRecord bench_record_from_json(std::string_view text);

}  // namespace kvcheck::properties
