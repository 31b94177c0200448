// The benchmarks as lines of text.
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "reports/bench_report.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::BenchGrowth;
using properties::BenchRecord;
using properties::BenchRow;
using properties::GoalStatus;

constexpr std::size_t kColumns = 100, kNames = 50, kPeers = 34, kTimes = 11;

std::string coloured(std::string text, GoalStatus status, bool colour) {
  if (!colour || status == GoalStatus::none) return text;
  const char* code = "\x1b[33m";  // Not measured.
  if (status == GoalStatus::missed) code = "\x1b[31m";
  if (status == GoalStatus::reached || status == GoalStatus::aim) code = "\x1b[32m";
  return code + text + "\x1b[0m";
}

std::string milliseconds(double ms) {
  return std::isnan(ms) ? "not timed" : fmt::format("{} ms", brief(ms));
}

/// "  reached (4/5.5)"
std::string goal_words(double at_least, double aim, GoalStatus status, bool colour) {
  if (status == GoalStatus::none) return "";
  return coloured(fmt::format("  {} ({}/{})", to_string(status), brief(at_least), brief(aim)),
                  status, colour);
}

/// What all rows of one id share.
std::string head_line(const BenchRow& row, bool colour) {
  std::string line =
      fmt::format("{:<{}}{:>{}}", clean_text(row.id), kNames, milliseconds(row.ours_ms), kTimes);
  if (!std::isnan(row.roof)) {
    line += fmt::format("  roof {:.2f}", row.roof);
    line += goal_words(row.roof_at_least, row.roof_aim, row.roof_status, colour);
  }
  return line + "\n";
}

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string& line : wrapped(text, kColumns - 4)) out += "    " + line + "\n";
  return out;
}

std::string peer_line(const BenchRow& row, bool colour) {
  if (std::isnan(row.ratio)) {
    if (row.peer.empty() && row.why.empty()) return "";
    const std::string why = row.why.empty() ? "not measured" : row.why;
    return indented(row.peer.empty() ? why : clean_text(row.peer + ": " + why));
  }
  std::string line = fmt::format("    {:<{}}{:>{}}{:>8.2f}x", clean_text(row.peer), kPeers,
                                 milliseconds(row.peer_ms), kTimes, row.ratio);
  if (row.quartiles.size() == 3) {
    line += fmt::format(" {}-{}", brief(row.quartiles[0]), brief(row.quartiles[2]));
  }
  if (row.noisy) line += " noisy";
  return line + goal_words(row.at_least, row.aim, row.status, colour) + "\n";
}

std::string growth_line(const BenchGrowth& growth, bool colour) {
  return fmt::format("{:<{}} slope {:.3f}, expected {} +- {}", clean_text(growth.id), kNames,
                     growth.slope, brief(growth.expected), brief(growth.tolerance)) +
         coloured(fmt::format("  {}", to_string(growth.status)), growth.status, colour) + "\n";
}

}  // namespace

std::string bench_text(const BenchRecord& record, bool colour) {
  std::string out = fmt::format(
      "{}, one thread unless said, on {}\nRatio: the peer's time over ours, with its quartiles; "
      "in brackets (goal/aim)\n\n",
      clean_text(record.target), clean_text(record.machine));
  std::string id;
  for (const BenchRow& row : record.rows) {
    if (row.id != id) out += head_line(row, colour);
    id = row.id;
    out += peer_line(row, colour);
    if (row.scratch_bytes > 0 && row.peer_scratch_bytes > 0) {
      out += indented(fmt::format("scratch memory {} KiB, of the other {} KiB",
                                  grouped((row.scratch_bytes + 1023) / 1024),
                                  grouped((row.peer_scratch_bytes + 1023) / 1024)));
    }
    if (row.bound_ratio > 1) {
      out += indented(coloured("the timed output is wrong", GoalStatus::missed, colour));
    }
  }
  if (!record.growth.empty()) out += "\n";
  for (const BenchGrowth& growth : record.growth) out += growth_line(growth, colour);
  std::int64_t goals = 0, reached = 0, noisy = 0;
  for (const BenchRow& row : record.rows) {
    goals += row.status != GoalStatus::none;
    reached += row.status == GoalStatus::reached || row.status == GoalStatus::aim;
    noisy += row.noisy;
  }
  out += fmt::format("\n{} compared, {} of {} ratio goals reached, {} noisy, {:.0f} s\n",
                     counted(record.compared(), "row"), reached, goals, noisy, record.seconds);
  for (const std::string& note : record.notes) out += fmt::format("Note: {}\n", clean_text(note));
  return out;
}

}  // namespace kvcheck::reports
