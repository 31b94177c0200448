// Digit launch: a scenario run with zero logits and values that show digits of positions.
//
// A query that sees n keys beside a sink of mass e shows in each lane v * c / (n + e), c the keys
// that light the lane and v the digit_value() of its KV head. So the lanes tell which keys took
// part, of which head, and what the sink weighs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/fill.h"
#include "properties/case.h"
#include "properties/read_back.h"
#include "properties/uniform_rows.h"

namespace kvcheck::properties {

class DigitLaunch {
 public:
  /// Runs `coded`, the scenario under a position fill whose positions are below `length`.
  /// `rows` are those of the scenario under this kind of fill, whatever the digit; `drawn` is made
  /// where it is empty. All but `coded` and `interposer` outlive the launch.
  DigitLaunch(kernels::Target& target, model::Scenario coded, const model::Timeline& timeline,
              std::int64_t length, UniformRows& rows, std::optional<DrawnRows>& drawn,
              const Interposer* interposer = nullptr);

  const Execution& execution() const { return execution_; }
  std::string broke_off() const { return properties::broke_off(scenario_, execution_); }

  /// What the lanes of one query say.
  struct Reading {
    bool right = false;       ///< All are within their bounds.
    bool hides = false;       ///< One key more could hide within the bounds of all lanes.
    bool tells_head = false;  ///< Some lane would show another head's value.
  };

  /// Reads a query that was answered. `query.expected` are the keys that it should see.
  Reading read(const MeasuredQuery& query);

  /// The same where every lane is clearly within its bound, by uniform_rows.h alone; else nothing
  /// is known, and the lanes may be right.
  Reading read_quickly(const MeasuredQuery& query);

 private:
  void find_lanes();
  bool is_quick() const;
  std::int64_t kv_head_of(const MeasuredQuery& query) const;
  void count(const MeasuredQuery& query);
  template <class Seen>
  bool some_digit_hides(const MeasuredQuery& query, const Seen& seen) const;
  Reading read_exactly(const MeasuredQuery& query);

  kernels::Target& target_;
  model::Scenario scenario_;
  const model::Timeline& timeline_;
  model::Fill fill_;
  UniformRows& rows_;
  bool quick_;
  Execution execution_;
  std::int64_t length_;
  std::int64_t shown_ = 1;              // Digits that the launch shows.
  std::vector<std::int64_t> lanes_;     // Of every entry, KV head, position and digit.
  std::vector<std::int64_t> digit_of_;  // Of every entry, KV head and lane.
  std::vector<double> value_of_;        // Of every entry and KV head.
  std::vector<std::int64_t> lit_;       // Of the query that was counted last, by lane.
  std::vector<double> observed_;        // Lanes of the query at hand.
  std::vector<char> shows_;             // Of these, whether a key more would show.
  std::size_t counted_step_ = 0;
  std::int64_t counted_entry_ = -1, counted_query_ = -1, counted_head_ = -1;
  std::optional<Case> exact_;
};

}  // namespace kvcheck::properties
