// The minimal scenario of a finding as reports show it: what the contract says of every step,
// beside what the target answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/timeline.h"
#include "properties/run_record.h"

namespace kvcheck::reports {

/// One batch entry around one step, by the contract.
struct EntryView {
  std::int64_t length = 0, resident = 0, first_position = 0;
  std::int64_t appended = 0, queries = 0, evicted = 0, rolled_back = 0;
  bool staged = false;
  friend bool operator==(const EntryView&, const EntryView&) = default;
};

struct StepView {
  enum class Event { append, past, rollback } event = Event::append;
  std::string what;                ///< "append 2 (1 query)".
  std::vector<EntryView> entries;  ///< Empty where the record knows no lengths.
  bool defined = true;             ///< False: the contract does not say what the rows hold.
  std::string undefined_reason;
  const properties::StepEvidence* evidence = nullptr;  ///< Null where none was recorded.
};

struct CaseView {
  std::vector<StepView> steps;
  std::int64_t failing = -1;  ///< -1: no single step fails.
  std::int64_t batch = 0;     ///< Entries of every step; 0 where lengths are unknown.
  std::int64_t capacity = 0;  ///< 0: the buffer grows as the steps need.
  std::int64_t window = 0;    ///< 0: no window.
  std::int64_t buffer_rows = 0;
  std::string no_timeline;  ///< Why lengths are unknown; empty when they are known.
  std::optional<model::Timeline> timeline;

  bool is_failing(std::size_t step) const { return static_cast<std::int64_t>(step) == failing; }
  const StepView* failing_step() const;
};

/// \pre finding outlives the view
CaseView make_case_view(const properties::FindingRecord& finding);

/// A half-open range of things shown, and how many there are.
struct Shown {
  std::size_t begin = 0, end = 0, total = 0;
  bool all() const { return begin == 0 && end == total; }
  /// "steps 180-240 of 4,096, around the first divergence; all are in run.json"; "" when all().
  std::string note(std::string_view what) const;
};

/// At most `limit` of `total`, around `center` where that is not negative, else the first ones.
Shown window_around(std::size_t total, std::int64_t center, std::size_t limit);

/// `head_size 8, f32, ...`: the shape of a scenario as name and value.
std::vector<std::pair<std::string, std::string>> shape_facts(const model::Scenario& scenario);

/// "./kvcheck replay HASH".
std::string replay_command(const properties::FindingRecord& finding);

}  // namespace kvcheck::reports
