// Keys and values of every token that a scenario ever appends, evaluated once.
#pragma once

#include <cstdint>
#include <vector>

#include "model/fill.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// A slot names one append of one token to one entry; rolled-back tokens keep theirs.
class TokenStore {
 public:
  TokenStore(const Scenario& scenario, const Timeline& timeline, const Fill& fill);

  /// Slot of every position that `entry` holds after `step`, by position.
  std::vector<std::int64_t> slots(std::size_t step, std::int64_t entry) const;

  /// [head_size] and [value_head_size]; valid as long as the store.
  const double* key(std::int64_t entry, std::int64_t kv_head, std::int64_t slot) const;
  const double* value(std::int64_t entry, std::int64_t kv_head, std::int64_t slot) const;

 private:
  /// Data of one entry, [kv_head][slot][lane].
  struct Rows {
    std::int64_t slots = 0;
    std::vector<double> keys, values;
  };
  const Timeline* timeline_;
  std::int64_t head_size_;
  std::int64_t value_head_size_;
  std::vector<Rows> rows_;  // [entry]
};

}  // namespace kvcheck::model
