// What each planted fault does to the values that the healthy code computed.
//
// The kernel works out a plan, a query's case or its list of keys, and passes it through here;
// under Fault::none everything comes back as it was. So the kernel reads as if there were no
// faults, and each fault stands in one place. Faults that change how rows are copied or summed
// stand at that copy or sum instead. Whatever a fault does, rows stay inside their buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/key_range.h"
#include "kernels/cpu/mask_rows.h"
#include "kernels/cpu/planted/faults.h"
#include "kernels/cpu/naive/naive_attention.h"

namespace kvcheck::kernels {

/// Layout, staging and append faults. `astray[b]` = tokens rolled back since the last append.
void distort_plans(Fault fault, const SessionConfig& config, std::span<const std::int64_t> astray,
                   std::span<EntryPlan> plans);

/// Length of `entry` after the step; \param rows of the buffer.
std::int64_t settled_length(Fault fault, std::span<const EntryPlan> plans, std::size_t entry,
                            std::int64_t rows);

/// Mask origin, window edge and length faults.
QueryCase distort_case(Fault fault, const AttentionStep& step, QueryCase right);

/// The row of the mask for one query of one head.
MaskRow distort_mask_row(Fault fault, const Tensor& mask, std::int64_t entry, std::int64_t head,
                         std::int64_t query);

/// Rows that entry `entry` reads.
EntryRows distort_rows(Fault fault, const AttentionStep& step, std::size_t entry);

/// KV head whose keys query head `head` uses; `right` = head / (Nq / Nk).
std::int64_t distort_key_head(Fault fault, const SessionConfig& config, std::int64_t head,
                              std::int64_t right);
std::int64_t distort_value_head(Fault fault, const SessionConfig& config, std::int64_t head,
                                std::int64_t right);

/// Keys of one query, ascending. `live` = rows that hold live positions, `rows` = all of them.
void distort_keys(Fault fault, std::int64_t live, std::int64_t rows, std::vector<SeenKey>& keys);

}  // namespace kvcheck::kernels
