// The intermediate that a session asks for.
#include "kernels/cpu/flash/flash_intermediate.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cpu/intermediate.h"

namespace kvcheck::kernels::flash {
namespace {

KeyRange rows_in(const EntryRows& rows, const KeyRange& range) {
  return {std::max(range.begin, rows.first_position) - rows.first_position,
          std::min(range.end, rows.first_position + rows.live) - rows.first_position};
}

}  // namespace

Tensor intermediate_of(const SessionConfig& config, const Kernels& kernels,
                       FlashAttention& attention, const FlashStep& step,
                       std::span<const EntryPlan> plans) {
  Intermediate intermediate(config, plans, step.max_queries);
  FlashStep asked = step;
  std::vector<KeyRange> ranges(step.ranges.begin(), step.ranges.end());
  for (std::size_t b = 0; b < step.entries.size(); ++b) {
    const EntryRows& rows = step.entries[b];
    const auto entry = static_cast<std::int64_t>(b);
    for (std::int64_t query = 0; query < step.queries[b]; ++query) {
      KeyRange& range = ranges[static_cast<std::size_t>(entry * step.max_queries + query)];
      for (std::int64_t head = 0; head < config.query_heads; ++head) {
        intermediate.begin_row(entry, head, query, rows.first_position, rows_in(rows, range));
      }
      if (intermediate.of_all_keys()) {
        range = {rows.first_position, rows.first_position + rows.live};
      }
    }
  }
  asked.ranges = ranges;
  attention.products(asked, [&](std::int64_t entry, std::int64_t query, std::int64_t head,
                                std::int64_t position, float logit) {
    const std::int64_t first = step.entries[static_cast<std::size_t>(entry)].first_position;
    intermediate.go_to_row(entry, head, query, first);
    intermediate.put("raw", position - first, logit);
    if (step.softcap != 0) logit = step.softcap * std::tanh(logit / step.softcap);
    intermediate.put("softcapped", position - first, logit);
    if (step.mask != nullptr) {
      float added = 0;
      step.mask->fill(entry, query, head, position, 1, &added);
      if (added == -std::numeric_limits<float>::infinity()) return;
      logit += added;
    }
    intermediate.put("biased", position - first, logit);
    const auto at =
        static_cast<std::size_t>((entry * step.max_queries + query) * config.query_heads + head);
    intermediate.put("probabilities", position - first,
                     kernels.exp(logit - step.maxima[at]) / step.totals[at]);
  });
  return std::move(*intermediate.take());
}

}  // namespace kvcheck::kernels::flash
