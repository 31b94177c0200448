// The arithmetic of cpu-naive.
#include "kernels/cpu/naive/naive_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include <Eigen/Core>

#include "kernels/cpu/element.h"
#include "kernels/cpu/key_range.h"
#include "kernels/cpu/naive/mistakes.h"

namespace kvcheck::kernels {
namespace {

template <class Storage>
Storage load(const std::byte* from, std::int64_t index) {
  Storage value;
  std::memcpy(&value, from + static_cast<std::size_t>(index) * sizeof value, sizeof value);
  return value;
}

template <class Storage>
void store(std::byte* to, std::int64_t index, Storage value) {
  std::memcpy(to + static_cast<std::size_t>(index) * sizeof value, &value, sizeof value);
}

/// The mask row of one query: [Sq,T], [Nq,Sq,T] or [B,Nq,Sq,T], column = position.
class MaskRow {
 public:
  MaskRow(const Tensor& mask, Fault fault, std::int64_t entry, std::int64_t head,
          std::int64_t query)
      : mask_(mask) {
    const std::size_t rank = mask.shape.size();
    const std::int64_t queries = mask.shape[rank - 2];
    std::int64_t plane = 0;
    if (rank == 3) plane = head;
    if (rank == 4) plane = entry * mask.shape[1] + head;
    if (rank == 3 && fault == Fault::mask_rank_three_by_batch) plane = entry % mask.shape[0];
    if (fault == Fault::mask_first_row_for_all) query = 0;
    first_ = (plane * queries + query) * mask.shape[rank - 1];
  }

  /// What the mask adds at `position`; -infinity hides the key.
  double bias(std::int64_t position) const {
    const auto index = static_cast<std::size_t>(first_ + position);
    const std::byte* element = mask_.bytes.data() + index * element_bytes(mask_.type);
    const double value = decode_element(mask_.type, element);
    if (mask_.type != ElementType::boolean) return value;
    return value != 0 ? 0 : -std::numeric_limits<double>::infinity();
  }

 private:
  const Tensor& mask_;
  std::int64_t first_ = 0;
};

/// One step in one element type. Storage = element, Sum = type of all arithmetic.
template <class Storage, class Sum>
class Attention {
 public:
  explicit Attention(const AttentionStep& step)
      : step_(step),
        config_(step.config),
        queries_(*std::max_element(step.request.queries.begin(), step.request.queries.end())),
        output_(Tensor::zeros(config_.element_type, {config_.batch, queries_, config_.query_heads,
                                                     config_.value_head_size})) {
    const bool by_default = config_.scale == 0 || step.fault == Fault::scale_ignored;
    const double head_size = static_cast<double>(config_.head_size);
    scale_ = static_cast<Sum>(by_default ? 1 / std::sqrt(head_size) : config_.scale);
  }

  Tensor run() {
    for (std::int64_t entry = 0; entry < config_.batch; ++entry) {
      for (std::int64_t query = 0; query < step_.request.queries[index(entry)]; ++query) {
        for (std::int64_t head = 0; head < config_.query_heads; ++head) {
          attend_row(entry, query, head);
        }
      }
    }
    return std::move(output_);
  }

 private:
  static std::size_t index(std::int64_t entry) { return static_cast<std::size_t>(entry); }

  QueryCase case_of(std::int64_t entry, std::int64_t query) const {
    const EntryPlan& plan = step_.plans[index(entry)];
    QueryCase at;
    at.causal = config_.causal;
    at.from_end = config_.nonpad_kv_seqlen;
    at.window = config_.window_size;
    at.past = plan.past;
    at.length = at.anchor = plan.length();
    at.tokens = plan.tokens;
    at.queries = step_.request.queries[index(entry)];
    at.query = query;
    return distort_case(step_.fault, step_, at);
  }

  /// Rows that the query sees, in ascending position.
  void find_keys(const EntryRows& rows, std::int64_t entry, std::int64_t query, std::int64_t head) {
    keys_.clear();
    const KeyRange range = key_range(case_of(entry, query));
    // Never outside the buffer, whatever the range says.
    const std::int64_t begin = std::max(range.begin, rows.first_position);
    const std::int64_t end = std::min(range.end, rows.first_position + rows.rows);
    std::optional<MaskRow> mask;
    if (step_.request.mask) mask.emplace(*step_.request.mask, step_.fault, entry, head, query);
    for (std::int64_t position = begin; position < end; ++position) {
      const double bias = mask ? mask->bias(position) : 0;
      if (bias == -std::numeric_limits<double>::infinity()) continue;
      keys_.push_back({position - rows.first_position, bias, false});
    }
  }

  void attend_row(std::int64_t entry, std::int64_t query, std::int64_t head) {
    const EntryRows rows = distort_rows(step_.fault, step_, index(entry));
    find_keys(rows, entry, query, head);
    const std::int64_t live = step_.plans[index(entry)].length() - rows.first_position;
    Sum scale = scale_;
    if (keys_.empty()) {
      if (step_.fault == Fault::empty_row_mean) {
        // A finite sentinel at every key: all weights come out equal.
        for (std::int64_t row = 0; row < std::min(live, rows.rows); ++row) {
          keys_.push_back({row, 0, false});
        }
        scale = 0;
      } else if (step_.fault != Fault::empty_row_nan) {
        return;  // The output is zero already.
      }
    }
    distort_keys(step_.fault, live, rows.rows, keys_);
    if (step_.descending) std::reverse(keys_.begin(), keys_.end());

    const std::int64_t group = config_.query_heads / config_.kv_heads;
    const std::int64_t key_head = distort_key_head(step_.fault, config_, head, head / group);
    const std::int64_t value_head = distort_value_head(step_.fault, config_, head, head / group);
    const std::int64_t row = (entry * queries_ + query) * config_.query_heads + head;
    weigh(rows, key_head, row * config_.head_size, scale);
    sum_values(rows, value_head, row * config_.value_head_size);
  }

  /// Fills weights_ with exp(logit - largest logit) of every key.
  void weigh(const EntryRows& rows, std::int64_t head, std::int64_t first_lane, Sum scale) {
    const std::byte* query = step_.request.query.bytes.data();
    weights_.assign(keys_.size(), 0);
    Sum largest = -std::numeric_limits<Sum>::infinity();
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i].weightless) continue;
      const std::byte* key = rows.key.row(head, keys_[i].row);
      Sum dot = 0;
      for (std::int64_t lane = 0; lane < config_.head_size; ++lane) {
        dot += static_cast<Sum>(load<Storage>(query, first_lane + lane)) *
               static_cast<Sum>(load<Storage>(key, lane));
      }
      weights_[i] = dot * scale;
      if (step_.request.mask) weights_[i] += static_cast<Sum>(keys_[i].bias);
      largest = std::max(largest, weights_[i]);
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!keys_[i].weightless) weights_[i] = std::exp(weights_[i] - largest);
    }
  }

  void sum_values(const EntryRows& rows, std::int64_t head, std::int64_t first_lane) {
    const bool narrow = step_.fault == Fault::narrow_accumulation;
    sums_.assign(index(config_.value_head_size), 0);
    Sum total = 0;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::byte* value = rows.value.row(head, keys_[i].row);
      total += weights_[i];
      for (std::int64_t lane = 0; lane < config_.value_head_size; ++lane) {
        Sum& sum = sums_[index(lane)];
        sum += weights_[i] * static_cast<Sum>(load<Storage>(value, lane));
        if (narrow) sum = static_cast<Sum>(static_cast<Storage>(sum));
      }
    }
    for (std::int64_t lane = 0; lane < config_.value_head_size; ++lane) {
      store(output_.bytes.data(), first_lane + lane,
            static_cast<Storage>(sums_[index(lane)] / total));
    }
  }

  const AttentionStep& step_;
  const SessionConfig& config_;
  std::int64_t queries_;
  Tensor output_;
  Sum scale_ = 0;
  std::vector<SeenKey> keys_;
  std::vector<Sum> weights_;
  std::vector<Sum> sums_;
};

}  // namespace

Tensor attend(const AttentionStep& step) {
  switch (step.config.element_type) {
    case ElementType::f16:
      return Attention<Eigen::half, float>(step).run();
    case ElementType::bf16:
      return Attention<Eigen::bfloat16, float>(step).run();
    case ElementType::f64:
      return Attention<double, double>(step).run();
    default:
      return Attention<float, float>(step).run();
  }
}

}  // namespace kvcheck::kernels
