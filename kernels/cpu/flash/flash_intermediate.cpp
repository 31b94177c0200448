// The intermediate that a session asks for.
#include "kernels/cpu/flash/flash_intermediate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cpu/intermediate.h"

namespace kvcheck::kernels::flash {

using namespace std::string_view_literals;

namespace {

KeyRange rows_in(const EntryRows& rows, const KeyRange& range) {
  return {std::max(range.begin, rows.first_position) - rows.first_position,
          std::min(range.end, rows.first_position + rows.live) - rows.first_position};
}

/// The logits of one row and tile at the stage that the session asks for.
class TileStages {
 public:
  TileStages(const SessionConfig& config, const Kernels& kernels, const FlashStep& step)
      : kernels_(kernels),
        step_(step),
        heads_(config.query_heads),
        capped_(config.qk_output != "raw"sv && step.softcap != 0),
        masked_(config.qk_output == "biased"sv || config.qk_output == "probabilities"sv),
        normalised_(config.qk_output == "probabilities"sv) {}

  /// Fills `values` where a bit of the result is set: what is visible and not hidden by the mask.
  std::uint64_t find(std::int64_t entry, std::int64_t query, std::int64_t head, std::int64_t first,
                     const float* logits, std::uint64_t visible, float* values) const {
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    const int count = std::bit_width(visible);
    std::copy_n(logits, count, values);
    if (capped_) {
      each(visible,
           [&](int i) { values[i] = step_.softcap * std::tanh(values[i] / step_.softcap); });
    }
    if (masked_ && step_.mask != nullptr) {
      float added[kTile];
      step_.mask->fill(entry, query, head, first, count, added);
      each(visible, [&](int i) {
        values[i] += added[i];
        if (added[i] == kHidden) visible &= ~(std::uint64_t{1} << i);
      });
    }
    if (normalised_) {
      const auto row =
          static_cast<std::size_t>((entry * step_.max_queries + query) * heads_ + head);
      each(visible, [&](int i) {
        values[i] = kernels_.exp(values[i] - step_.maxima[row]) / step_.totals[row];
      });
    }
    return visible;
  }

 private:
  template <class Do>
  static void each(std::uint64_t bits, const Do& work) {
    for (; bits != 0; bits &= bits - 1) work(std::countr_zero(bits));
  }

  const Kernels& kernels_;
  const FlashStep& step_;
  std::int64_t heads_;
  bool capped_, masked_, normalised_;
};

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
  const TileStages stages(config, kernels, step);
  attention.products(asked, [&](std::int64_t entry, std::int64_t query, std::int64_t head,
                                std::int64_t first, const float* logits, std::uint64_t visible) {
    const std::int64_t from = step.entries[static_cast<std::size_t>(entry)].first_position;
    intermediate.go_to_row(entry, head, query, from);
    float values[kTile];
    visible = stages.find(entry, query, head, first, logits, visible, values);
    while (visible != 0) {
      const int i = std::countr_zero(visible), count = std::countr_one(visible >> i);
      intermediate.store_run(first - from + i, values + i, count);
      visible &= i + count == kTile ? 0 : ~std::uint64_t{0} << (i + count);
    }
  });
  return std::move(*intermediate.take());
}

}  // namespace kvcheck::kernels::flash
