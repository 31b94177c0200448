// Progress lines.
#include "properties/progress.h"

#include <algorithm>

#include <fmt/format.h>

namespace kvcheck::properties {

void Progress::start(const std::string& target, Clock::time_point deadline,
                     const RunRecord& record) {
  target_ = target;
  deadline_ = deadline;
  record_ = &record;
  scenarios_before_ = record.scenarios;
  started_ = shown_ = Clock::now();
}

void Progress::erase() {
  if (drawn_) err_ << "\r\033[K";
  drawn_ = false;
}

void Progress::line(const std::string& text) {
  if (quiet_) return;
  erase();
  err_ << text << "\n" << std::flush;
}

void Progress::tick() {
  const auto now = Clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10000);
  if (quiet_ || !record_ || now - shown_ < pause) return;
  shown_ = now;
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - started_).count());
  const auto done = record_->scenarios - scenarios_before_;
  const double left = std::max(0.0, std::chrono::duration<double>(deadline_ - now).count());
  const std::string text =
      fmt::format("{}: {} scenarios, {:.0f}/s, {} finding{}, {:.0f} s left ({})", target_, done,
                  static_cast<double>(done) / seconds, record_->findings.size(),
                  record_->findings.size() == 1 ? "" : "s", left, phase_);
  if (terminal_) {
    err_ << "\r\033[K" << text << std::flush;
    drawn_ = true;
  } else {
    err_ << text << "\n" << std::flush;
  }
}

void Progress::finding(const FindingRecord& finding) {
  line(fmt::format("found: {} on {}: {} ({} shrink evaluations, {})", finding.property,
                   finding.target, to_string(finding.kind), finding.evaluations, finding.hash));
}

}  // namespace kvcheck::properties
