// All lengths in 64 bits: seqlens_k and the total are 32-bit, dimensions anything up to 64.
#include "model/calls/gqa_length_rules.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace kvcheck::model {
namespace {

using enum GqaRule;

class LengthChecker {
 public:
  LengthChecker(const GqaCall& call, const GqaSizes& sizes)
      : c_(call),
        s_(sizes),
        windowed_(call.sliding_window_cache == 1),
        total_(call.total_sequence_length_value),
        first_prompt_(sizes.step == total_ && !call.query_seqlens) {}

  std::vector<GqaRuleBreak> run() {
    total();
    if (!breaks_.empty()) return std::move(breaks_);
    const std::size_t batch = static_cast<std::size_t>(std::min(s_.batch, std::int64_t{1} << 32));
    for (std::size_t b = 0; b < std::min(batch, c_.seqlens_k_values.size()); ++b) {
      entry(b);
      if (c_.query_seqlens && b < c_.query_seqlens_values.size()) chunk_entry(b);
    }
    if (breaks_.empty()) position_values();
    return std::move(breaks_);
  }

 private:
  void require(GqaRule rule, bool ok, std::string_view field, std::int64_t value,
               std::string remedy) {
    if (!ok) breaks_.push_back({rule, std::string(field), fmt::format("{}", value), remedy});
  }

  void require_entry(GqaRule rule, bool ok, std::string_view list, std::size_t index,
                     std::int64_t value, std::string remedy) {
    if (!ok) {
      breaks_.push_back(
          {rule, fmt::format("{}[{}]", list, index), fmt::format("{}", value), std::move(remedy)});
    }
  }

  void total() {
    require(total_positive, total_ > 0, "total_sequence_length", total_, "must be above 0");
    if (total_ <= 0) return;
    require(step_empty, s_.step > 0 || c_.query_seqlens, "query dimension 1", s_.step,
            "must be at least 1 without query_seqlens");
    require(
        chunk_batch,
        s_.step <= 1 || s_.step == total_ || s_.batch == 1 || c_.query_seqlens.has_value(),
        "query dimension 0", s_.batch,
        fmt::format("must be 1 for {} tokens behind a past; query_seqlens allows more", s_.step));
    if (!windowed_) {
      require(total_covers_step, total_ >= s_.new_keys, "total_sequence_length", total_,
              fmt::format("must be at least the {} new keys", s_.new_keys));
      // The difference cannot overflow: no operand is negative.
      const bool agrees = total_ <= s_.past_rows || total_ - s_.new_keys == s_.past_rows;
      require(total_by_cache, agrees || c_.query_seqlens || total_ < s_.new_keys,
              "total_sequence_length", total_,
              fmt::format("must be at most the {} past rows, or their sum with the {} new keys",
                          s_.past_rows, s_.new_keys));
    }
    if (c_.cos_cache) {
      require(rotary_rows, c_.cos_cache->dim(0) >= total_, "cos_cache dimension 0",
              c_.cos_cache->dim(0), fmt::format("must be at least {}, the total", total_));
    }
    if (c_.attention_bias) {
      require(bias_total, c_.attention_bias->dim(3) == total_, "attention_bias dimension 3",
              c_.attention_bias->dim(3), fmt::format("must be {}, the total", total_));
    }
  }

  /// Rows of the present: those of the past, or more where the cache grows.
  std::int64_t present_rows() const { return std::max(s_.past_rows, total_); }

  void entry(std::size_t b) {
    const std::int64_t last = c_.seqlens_k_values[b];
    const std::int64_t length = last + 1;
    if (c_.query_seqlens) {
      require_entry(query_seqlens_seqlens, last >= 0, "seqlens_k", b, last, "must not be negative");
      require_entry(query_seqlens_total, length <= total_, "seqlens_k", b, last,
                    fmt::format("must be below {}, the total", total_));
    } else if (last < 0 || (!windowed_ && last >= present_rows())) {
      require_entry(seqlens_range, false, "seqlens_k", b, last,
                    fmt::format("must be at least 0 and below {}", present_rows()));
    } else {
      // A first prompt may be padded on the right, for which a windowed cache has no room.
      require_entry(seqlens_step, length >= s_.step || (first_prompt_ && !windowed_), "seqlens_k",
                    b, last, fmt::format("must be at least {}, the step less one", s_.step - 1));
    }
    if (c_.cos_cache) {
      require_entry(rotary_last_position, last < c_.cos_cache->dim(0), "seqlens_k", b, last,
                    fmt::format("must be below {}, the rows of cos_cache", c_.cos_cache->dim(0)));
    }
    if (c_.attention_bias && !c_.query_seqlens) {
      require_entry(bias_entries, length <= total_, "seqlens_k", b, last,
                    fmt::format("must be below {}, the columns of attention_bias", total_));
    }
  }

  void chunk_entry(std::size_t b) {
    const std::int64_t length = std::int64_t{c_.seqlens_k_values[b]} + 1;
    const std::int64_t valid = c_.query_seqlens_values[b];
    const std::int64_t most = std::max<std::int64_t>(std::min(s_.step, length), 0);
    const bool in_range = valid >= 0 && valid <= most;
    // A negative seqlens_k is refused for itself.
    require_entry(query_seqlens_range, in_range || length < 1, "query_seqlens", b, valid,
                  fmt::format("must be between 0 and {}", most));
    if (windowed_ || !in_range || length < 1) return;
    const std::int64_t past = length - valid;
    require_entry(query_seqlens_past_rows, past <= s_.past_rows, "query_seqlens", b, valid,
                  fmt::format("leaves {} cached tokens in {} rows", past, s_.past_rows));
    // The total is at least the step here, so the difference is not negative.
    require_entry(
        query_seqlens_room, past > s_.past_rows || past <= present_rows() - s_.step,
        "query_seqlens", b, valid,
        fmt::format("leaves {} cached tokens, too many for a padded chunk of {} in {} rows", past,
                    s_.step, present_rows()));
  }

  /// Of the positions only those are looked at that some token is turned by.
  void position_values() {
    if (!c_.position_ids || c_.do_rotary != 1) return;
    const std::int64_t rows = c_.cos_cache->dim(0);
    const std::vector<std::int64_t>& positions = c_.position_ids_values;
    if (first_prompt_) {
      if (positions.empty()) return;
      require_entry(position_ids_prompt, positions[0] >= 0 && positions[0] <= rows - s_.step,
                    "position_ids", 0, positions[0],
                    fmt::format("must be between 0 and {}", rows - s_.step));
      return;
    }
    if (s_.step == 0) return;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const auto b = static_cast<std::int64_t>(i) / s_.step;
      if (b >= s_.batch) break;
      const auto entry = static_cast<std::size_t>(b);
      if (c_.query_seqlens && entry < c_.query_seqlens_values.size() &&
          static_cast<std::int64_t>(i) % s_.step >= c_.query_seqlens_values[entry]) {
        continue;  // Padding.
      }
      if (positions[i] >= 0 && positions[i] < rows) continue;  // No text for each sound number.
      require_entry(position_ids_value, false, "position_ids", i, positions[i],
                    fmt::format("must be between 0 and {}", rows - 1));
    }
  }

  const GqaCall& c_;
  const GqaSizes& s_;
  bool windowed_;
  std::int64_t total_;
  bool first_prompt_;
  std::vector<GqaRuleBreak> breaks_;
};

}  // namespace

std::vector<GqaRuleBreak> check_lengths(const GqaCall& call, const GqaSizes& sizes) {
  return LengthChecker(call, sizes).run();
}

}  // namespace kvcheck::model
