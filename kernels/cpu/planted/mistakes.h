// What each planted fault does to the values that the healthy code computed.
//
// The kernel works out a plan, a query's case or its list of keys, and passes it through here;
// under Fault::none everything comes back as it was. So the kernel reads as if there were no
// faults, and each fault stands in one place. Faults that change how rows are copied or summed
// stand at that copy or sum instead. Whatever a fault does, rows stay inside their buffers.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/key_range.h"
#include "kernels/cpu/planted/faults.h"
#include "kernels/cpu/planted/input_mistakes.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Layout, staging and append faults. `astray[b]` = tokens rolled back since the last append.
void distort_plans(Fault fault, const SessionConfig& config, std::span<const std::int64_t> astray,
                   std::span<EntryPlan> plans);

/// Length of `entry` after the step; \param rows of the buffer.
std::int64_t settled_length(Fault fault, std::span<const EntryPlan> plans, std::size_t entry,
                            std::int64_t rows);

/// Row of the buffer that a row of `row_bytes` is appended to.
std::int64_t distort_row(Fault fault, std::int64_t row, std::int64_t row_bytes);

/// Entry that the rows of `entry` are appended to; \param bytes of an entry.
std::int64_t distort_entry(Fault fault, std::int64_t entry, std::int64_t bytes);

/// Mask origin, window edge and length faults. \param plans of all entries
QueryCase mistaken_case(Fault fault, const SessionConfig& config, std::span<const EntryPlan> plans,
                        QueryCase right);
inline QueryCase distort_case(Fault fault, const SessionConfig& config,
                              std::span<const EntryPlan> plans, const QueryCase& right) {
  return fault == Fault::none ? right : mistaken_case(fault, config, plans, right);
}

/// Rows that entry `entry` reads.
EntryRows distort_rows(Fault fault, std::span<const EntryPlan> plans,
                       std::span<const EntryRows> rows, std::size_t entry);

/// KV head whose keys query head `head` uses; `right` = head / (Nq / Nk).
std::int64_t distort_key_head(Fault fault, std::int64_t kv_heads, std::int64_t head,
                              std::int64_t right);
std::int64_t distort_value_head(Fault fault, std::int64_t kv_heads, std::int64_t head,
                                std::int64_t right);

}  // namespace kvcheck::kernels
