// A source of rows: what a fill gives, drawn once for all who ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/fill.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// Rows of a fill as elements of the scenario's type, which hold each of its values exactly. Each
/// is valid until the next call of any of them.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// [Nk, H] elements of one token of batch entry `entry`.
  virtual std::span<const std::byte> keys(const Fill& fill, std::int64_t entry, Token token) = 0;
  /// [Nk, Hv] elements.
  virtual std::span<const std::byte> values(const Fill& fill, std::int64_t entry, Token token) = 0;
  /// [Nq, H] elements of query `query` of a step, which stands at `place`: its position and the
  /// generation of the step.
  virtual std::span<const std::byte> queries(const Fill& fill, std::size_t step, std::int64_t entry,
                                             std::int64_t query, Token place) = 0;
};

}  // namespace kvcheck::model
