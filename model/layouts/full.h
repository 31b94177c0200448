// No eviction: row i holds position i.
#pragma once

#include <cstdint>
#include <optional>

#include "model/layout.h"

namespace kvcheck::model {

/// Keeps every token; the rows of one sequence never move.
class FullLayout final : public Layout {
 public:
  std::int64_t resident(std::int64_t length) const override { return length; }
  std::int64_t max_exact_rollback(std::int64_t length) const override { return length; }
  bool stages(std::int64_t, std::int64_t) const override { return false; }
  LengthShare exact_drafts(std::int64_t) const override { return {1, 1}; }
  std::optional<std::int64_t> capacity_for_drafts(std::int64_t) const override { return 0; }
  std::optional<std::int64_t> capacity_without_staging(std::int64_t) const override { return 0; }
};

}  // namespace kvcheck::model
