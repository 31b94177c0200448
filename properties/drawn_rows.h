// Drawn rows: queries, keys and values of one fill in the bytes that a target gets, each made once,
// however many runs of a case ask for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/fill.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

/// Rows are named by what they depend on: entry, head, position and generation, and a query that
/// points at tokens by these too. So runs that split, cut off or drop other steps share them.
class DrawnRows {
 public:
  /// Rows of this scenario, and of every other one that they fit.
  explicit DrawnRows(const model::Scenario& scenario);

  /// Whether the rows of `scenario` are among these: the same fill, shapes and element type, and
  /// batch entries that the first scenario has.
  bool fit(const model::Scenario& scenario) const;

  /// Goes over to another launch of a position fill, which has the same queries and keys.
  /// \pre `scenario` fits but for fill.index
  void turn_to(const model::Scenario& scenario);

  /// Each is valid until the next call of any of them. \pre fit(the scenario of `fill`)
  /// [Nk, H] elements of one token of batch entry `entry`.
  std::span<const std::byte> keys(const model::Fill& fill, std::int64_t entry, model::Token token);
  /// [Nk, Hv] elements.
  std::span<const std::byte> values(const model::Fill& fill, std::int64_t entry,
                                    model::Token token);
  /// [Nq, H] elements of query `query` of a step, which stands at `place`: its position and the
  /// generation of the step.
  std::span<const std::byte> queries(const model::Fill& fill, std::size_t step, std::int64_t entry,
                                     std::int64_t query, model::Token place);

 private:
  enum Tensor : std::size_t { kQuery, kKey, kValue };
  static constexpr std::int32_t kNone = -1;

  /// The rows of all heads of one token or query.
  struct Slot {
    std::int64_t generation = 0;
    std::int32_t next = kNone;     // Of the same position.
    std::int32_t needles = kNone;  // Of a query that points at tokens.
    std::size_t at = 0;            // In bytes_.
  };

  std::int32_t* first_slot(Tensor tensor, std::int64_t entry, std::int64_t position);
  const Slot* find(std::int32_t first, std::int64_t generation,
                   const model::NeedleSet* needles) const;
  /// Bytes of a new slot, or of a passing one where nothing is kept.
  std::span<std::byte> add(std::size_t size, std::int32_t* first, std::int64_t generation,
                           const model::NeedleSet* needles);
  /// Finds or makes the rows of all heads; draw(head, row) fills one of them.
  template <class Draw>
  std::span<const std::byte> rows(Tensor tensor, const model::Fill& fill, std::int64_t entry,
                                  model::Token token, const model::NeedleSet* needles,
                                  const Draw& draw);

  model::Scenario like_;  // What rows depend on; without steps.
  std::int64_t entries_;
  bool keeps_;
  /// [tensor][entry][place of the position]: the slot that was added last.
  std::array<std::vector<std::vector<std::int32_t>>, 3> first_;
  std::vector<Slot> slots_;
  std::vector<model::NeedleSet> needles_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> passing_;
  std::vector<double> lanes_;
};

}  // namespace kvcheck::properties
