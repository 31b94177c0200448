// Progress on standard error: one line that is redrawn on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <ostream>
#include <string>

#include "properties/run_record.h"

namespace kvcheck::properties {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  Progress(std::ostream& err, bool terminal, bool quiet)
      : err_(err), terminal_(terminal), quiet_(quiet) {}

  /// The share of a run that one target gets.
  void start(const std::string& target, Clock::time_point deadline, const RunRecord& record);
  void phase(const std::string& name) { phase_ = name; }
  /// Shows the state when enough time has passed since the last showing.
  void tick();
  void finding(const FindingRecord& finding);
  void line(const std::string& text);

 private:
  void erase();

  std::ostream& err_;
  bool terminal_, quiet_;
  bool drawn_ = false;
  const RunRecord* record_ = nullptr;
  std::string target_, phase_;
  std::int64_t scenarios_before_ = 0;
  Clock::time_point started_, deadline_, shown_;
};

}  // namespace kvcheck::properties
