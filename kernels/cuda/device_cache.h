// The KV cache of a session of kernels/cuda: rows in the device's memory, lengths and plans on the
// host. The counterpart of kernels/cpu/cache.h, by the same plans.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/entry_plan.h"
#include "kernels/cuda/machine.h"
#include "kernels/cuda/parameters.h"
#include "kernels/target.h"

namespace kvcheck::kernels::device {

/// \pre type is f32, f16 or bf16
Element element_of(ElementType type);

/// Factors of an int8 cache in the device's memory; empty where the cache is not quantised.
struct DeviceScales {
  DeviceBuffer key, value;
};

class DeviceCache {
 public:
  /// \pre check_config(config) is empty. Refers to both.
  DeviceCache(Machine& machine, const SessionConfig& config);

  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// Rows of the buffer now.
  std::int64_t rows() const { return buffer_.rows; }
  const DeviceScales& scales() const { return scales_; }

  /// One plan per entry, valid until the next call. \pre check_step found nothing wrong
  std::span<const EntryPlan> plan(std::span<const std::int64_t> tokens);
  /// Launches the moves of the plan, then the append of the request's rows.
  void place(const StepRequest& request);
  /// What attention reads of an entry between place and settle; origin and queries are left open.
  EntryView view(std::int64_t entry) const;
  /// Launches the moves back of what was staged, and takes the new lengths.
  void settle();
  /// Releases what the launches of the step needed. \pre they have ended
  void release_step();

  std::optional<std::string> why_not_rollback(std::span<const std::int64_t> tokens) const;
  /// \pre why_not_rollback(tokens) is empty
  void rollback(std::span<const std::int64_t> tokens);
  /// \pre check_load found nothing wrong
  void load(const LoadRequest& request);
  /// Overwrites rows [first_row[b], rows()) of every entry.
  void poison(const PoisonRows& poison);
  CacheRows present() const;
  /// Where an element of a row is now; null where there is none. \pre place.of is not output
  const std::byte* address_of(const ElementPlace& place) const;

 private:
  /// Keys and values [batch, kv_heads, rows, bytes of a row].
  struct Rows {
    DeviceBuffer key, value;
    std::int64_t rows = 0;
  };
  /// Where the rows of one entry begin, and what lies between those of two KV heads.
  struct Place {
    std::byte* key = nullptr;
    std::byte* value = nullptr;
    std::int64_t rows = 0;
  };

  Rows zeroed(std::int64_t rows) const;
  Place place_of(const Rows& rows, std::int64_t entry) const;
  Place stage_of(std::int64_t entry) const;
  void reserve_stage();
  MoveEntry move(const Place& from, std::int64_t from_row, const Place& to, std::int64_t to_row,
                 std::int64_t count) const;
  void run_moves(std::vector<MoveEntry> moves);
  void fill_rows(DeviceBuffer& rows, std::int64_t entry, std::int64_t row_bytes,
                 std::int64_t first_row, std::span<const std::byte> element) const;

  Machine& machine_;
  const SessionConfig& config_;
  CacheKind kind_;
  std::int64_t key_row_bytes_, value_row_bytes_;
  DeviceScales scales_;
  Rows buffer_;
  std::vector<std::int64_t> lengths_;
  std::vector<EntryPlan> plans_;
  bool settled_ = true;
  DeviceBuffer stage_;                      // Staged entries one after the other, keys first.
  std::vector<std::int64_t> stage_offset_;  // Bytes, per entry.
  std::vector<DeviceBuffer> in_use_;        // Of the launches of this step.
};

}  // namespace kvcheck::kernels::device
