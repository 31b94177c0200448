// Drawn rows: queries, keys, values and rows of the mask of one fill in the bytes that a target
// gets, each made once, however many runs of a case ask for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/fill.h"
#include "model/row_source.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

/// Rows are named by what they depend on: entry, head, position and generation, and a query that
/// points at tokens by these too. So runs that split, cut off or drop other steps share them.
/// Their memory is that of rows which the thread has no longer.
class DrawnRows final : public model::RowSource {
 public:
  /// Rows of this scenario, and of every other one that they fit.
  explicit DrawnRows(const model::Scenario& scenario);
  DrawnRows(const DrawnRows&) = delete;
  DrawnRows& operator=(const DrawnRows&) = delete;
  ~DrawnRows() override;

  /// Whether the rows of `scenario` are among these: the same fill, shapes and element type, and
  /// batch entries that the first scenario has.
  bool fit(const model::Scenario& scenario) const;

  /// Goes over to another launch of a position fill, which has the same queries and keys.
  /// \pre `scenario` fits but for fill.index
  void turn_to(const model::Scenario& scenario);

  /// \pre fit(the scenario of `fill`)
  std::span<const std::byte> keys(const model::Fill& fill, std::int64_t entry,
                                  model::Token token) override;
  std::span<const std::byte> values(const model::Fill& fill, std::int64_t entry,
                                    model::Token token) override;
  std::span<const std::byte> queries(const model::Fill& fill, std::size_t step, std::int64_t entry,
                                     std::int64_t query, model::Token place) override;

  /// Elements [columns] of the mask's row for a query, boolean or of the element type; -infinity
  /// hides. Shared where the mask is that of the first scenario and depends on positions alone.
  /// \pre as model::MaskRow; fit(scenario)
  std::span<const std::byte> mask_row(const model::Scenario& scenario,
                                      const model::Timeline& timeline, std::size_t step,
                                      std::int64_t entry, std::int64_t head, std::int64_t query,
                                      std::int64_t columns);

 private:
  enum Tensor : std::size_t { kQuery, kKey, kValue, kTensors };
  static constexpr std::int32_t kNone = -1;

  /// The rows of all heads of one token or query, or a row of the mask.
  struct Slot {
    std::int64_t generation = 0;   // Of a row of the mask: its columns.
    std::int32_t next = kNone;     // Of the same position.
    std::int32_t needles = kNone;  // Of a query that points at tokens.
    std::size_t at = 0;            // In Memory::bytes.
  };

  struct Memory {
    std::vector<std::int32_t> first;  // [list][place of the position]: the slot added last.
    std::vector<Slot> slots;
    std::vector<model::NeedleSet> needles;
    std::vector<std::byte> bytes;
    std::vector<std::byte> passing;  // Of a row that is not kept.
    std::vector<double> lanes;
  };
  static std::vector<Memory>& spare_memory();

  /// [tensor][entry], then of masks [entry][head of the mask].
  std::size_t list_of(Tensor tensor, std::int64_t entry) const;
  std::size_t list_of_mask(std::int64_t entry, std::int64_t head) const;
  /// Null for positions that are kept nowhere. Valid until the next call.
  std::int32_t* first_slot(std::size_t list, std::int64_t position);
  /// Makes the lists at least this wide, where they may be.
  void widen(std::size_t places);
  const Slot* find(std::int32_t first, std::int64_t generation,
                   const model::NeedleSet* needles) const;
  /// Bytes of a new slot, or of a passing one where nothing is kept.
  std::span<std::byte> add(std::size_t size, std::int32_t* first, std::int64_t generation,
                           const model::NeedleSet* needles);
  std::span<const std::byte> bytes_of(const Slot& slot, std::size_t size) const;
  /// Finds or makes the rows of all heads; draw(head, row) fills one of them.
  template <class Draw>
  std::span<const std::byte> rows(Tensor tensor, const model::Fill& fill, std::int64_t entry,
                                  model::Token token, const model::NeedleSet* needles,
                                  const Draw& draw);

  model::Scenario like_;  // What rows depend on; without steps.
  std::int64_t entries_;
  bool keeps_;
  std::int64_t mask_heads_;  // 0 = no rows of masks are kept.
  std::size_t lists_;
  std::size_t places_ = 0;  // Of each list.
  std::size_t used_ = 0;    // Of Memory::bytes.
  Memory memory_;
};

}  // namespace kvcheck::properties
