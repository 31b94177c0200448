// The arithmetic of cpu-naive.
#include "kernels/cpu/naive/naive_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Core>

#include "kernels/cpu/element.h"
#include "kernels/cpu/intermediate.h"
#include "kernels/cpu/key_range.h"
#include "kernels/cpu/mask_rows.h"
#include "kernels/cpu/naive/mistakes.h"

namespace kvcheck::kernels {
namespace {

/// Scores that are held at once; more queries are taken in several blocks.
constexpr std::int64_t kMostScores = std::int64_t{1} << 20;

std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

template <class Real>
class Attention {
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Row = Eigen::Matrix<Real, 1, Eigen::Dynamic>;

 public:
  Attention(const AttentionStep& step, const StepRows<Real>& operands)
      : step_(step),
        config_(step.config),
        operands_(operands),
        queries_(*std::max_element(step.request.queries.begin(), step.request.queries.end())),
        alone_(asks_without_tokens(config_, step.request)),
        output_(Tensor::zeros(config_.element_type, {config_.batch, queries_, config_.query_heads,
                                                     config_.value_head_size})),
        intermediate_(config_, step.plans, queries_),
        lanes_(index(std::max(config_.head_size, config_.value_head_size))) {
    const bool by_default = config_.scale == 0;
    const double head_size = static_cast<double>(config_.head_size);
    scale_ = static_cast<Real>(by_default ? 1 / std::sqrt(head_size) : config_.scale);
    softcap_ = static_cast<Real>(config_.softcap);
    if (config_.head_sink) {
      sinks_.resize(index(config_.query_heads));
      decode_row(config_.element_type, config_.head_sink->bytes.data(), sinks_.size(),
                 sinks_.data());
    } else if (config_.smooth_softmax) {
      sinks_.assign(index(config_.query_heads), 0);
    }
  }

  AttentionAnswer run() {
    const std::int64_t group = config_.query_heads / config_.kv_heads;
    // Faults in the head map tell the heads of a group apart.
    const std::int64_t heads = step_.fault == Fault::none ? group : 1;
    for (std::int64_t entry = 0; entry < config_.batch; ++entry) {
      const std::int64_t queries = step_.request.queries[index(entry)];
      const std::int64_t keys = std::max<std::int64_t>(1, step_.rows[index(entry)].rows);
      const std::int64_t block = std::max<std::int64_t>(1, kMostScores / keys / heads);
      for (std::int64_t head = 0; head < config_.query_heads; head += heads) {
        for (std::int64_t first = 0; first < queries; first += block) {
          attend_block(entry, head, heads, first, std::min(block, queries - first));
        }
      }
    }
    return {std::move(output_), intermediate_.take()};
  }

 private:
  QueryCase case_of(std::int64_t entry, std::int64_t query) const {
    const std::int64_t queries = step_.request.queries[index(entry)];
    return distort_case(step_.fault, config_, step_.plans,
                        query_case(config_, step_.plans[index(entry)], alone_, queries, query));
  }

  /// Rows that the query may see before the mask; never outside the buffer.
  KeyRange rows_seen(const EntryRows& rows, std::int64_t entry, std::int64_t query) const {
    const KeyRange range = key_range(case_of(entry, query));
    return {std::max<std::int64_t>(0, range.begin - rows.first_position),
            std::min(range.end - rows.first_position, rows.rows)};
  }

  /// Queries [first, first + count) of heads [head, head + heads), which share a KV head.
  void attend_block(std::int64_t entry, std::int64_t head, std::int64_t heads, std::int64_t first,
                    std::int64_t count) {
    const EntryRows rows = distort_rows(step_.fault, step_.plans, step_.rows, index(entry));
    const std::int64_t group = config_.query_heads / config_.kv_heads;
    const std::int64_t key_head =
        distort_key_head(step_.fault, config_.kv_heads, head, head / group);
    const std::int64_t value_head =
        distort_value_head(step_.fault, config_.kv_heads, head, head / group);
    gather(rows, entry, first, count, key_head, value_head);
    scores_.setZero(count * heads, keys_of_head_.cols());
    for (std::int64_t i = 0; i < count * heads; ++i) {
      const Real* query = query_row(entry, first + i / heads, head + i % heads);
      // Each score sums its lanes in ascending order, whatever the shape of the matrix.
      for (std::int64_t lane = 0; lane < config_.head_size; ++lane) {
        scores_.row(i) += query[lane] * keys_of_head_.row(lane);
      }
    }
    scores_ *= scale_;
    for (std::int64_t i = 0; i < count * heads; ++i) {
      attend_row(rows, entry, first + i / heads, head + i % heads, i);
    }
  }

  const Real* query_row(std::int64_t entry, std::int64_t query, std::int64_t head) {
    const std::int64_t row = (entry * queries_ + query) * config_.query_heads + head;
    const bool in_place = step_.fault == Fault::output_over_next_query &&
                          config_.head_size == config_.value_head_size;
    if (in_place && head > 0) {
      const auto bytes = index((row - 1) * config_.head_size) * element_bytes(config_.element_type);
      decode_row(config_.element_type, output_.bytes.data() + bytes, index(config_.head_size),
                 lanes_.data());
      return lanes_.data();
    }
    return operands_.queries() + row * config_.head_size;
  }

  /// Fills keys_of_head_ [H, n] and values_of_head_ [n, Hv] with the rows from first_row_ on.
  void gather(const EntryRows& rows, std::int64_t entry, std::int64_t first, std::int64_t count,
              std::int64_t key_head, std::int64_t value_head) {
    KeyRange seen{rows.rows, 0};
    for (std::int64_t query = first; query < first + count; ++query) {
      const KeyRange one = rows_seen(rows, entry, query);
      if (one.begin >= one.end) continue;
      seen = {std::min(seen.begin, one.begin), std::max(seen.end, one.end)};
    }
    if (intermediate_.of_all_keys()) seen = {0, rows.live};
    if (step_.fault != Fault::none) seen = {0, rows.rows};
    first_row_ = seen.begin;
    const std::int64_t keys = std::max<std::int64_t>(0, seen.end - seen.begin);
    keys_of_head_.resize(config_.head_size, keys);
    values_of_head_.resize(keys, config_.value_head_size);
    for (std::int64_t i = 0; i < keys; ++i) {
      load(rows.key.row(key_head, first_row_ + i), operands_.key_codes(), key_head,
           config_.head_size);
      for (std::int64_t lane = 0; lane < config_.head_size; ++lane) {
        keys_of_head_(lane, i) = lanes_[index(lane)];
      }
      load(rows.value.row(value_head, first_row_ + i), operands_.value_codes(), value_head,
           config_.value_head_size);
      std::copy_n(lanes_.data(), config_.value_head_size, values_of_head_.row(i).data());
    }
  }

  /// One stored row as numbers, into lanes_.
  void load(const std::byte* from, const std::optional<Quantiser>& codes, std::int64_t head,
            std::int64_t count) {
    if (!codes) return decode_row(config_.element_type, from, index(count), lanes_.data());
    codes_.resize(index(count));
    codes->load(from, head, codes_.data());
    std::copy(codes_.begin(), codes_.end(), lanes_.begin());
  }

  /// Rows that the query sees, in ascending position.
  void find_keys(const EntryRows& rows, std::int64_t entry, std::int64_t query, std::int64_t head) {
    keys_.clear();
    const KeyRange range = rows_seen(rows, entry, query);
    std::optional<MaskRow> mask;
    if (step_.request.mask) mask = MaskRows(*step_.request.mask).row(entry, head, query);
    // A cap that follows the mask lifts what the mask hides.
    const bool hides = step_.fault != Fault::softcap_after_bias || softcap_ == 0;
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const double bias = mask ? mask->bias(row + rows.first_position) : 0;
      if (hides && bias == -std::numeric_limits<double>::infinity()) continue;
      keys_.push_back({row, bias, false});
    }
  }

  /// \param at row of scores_
  void attend_row(const EntryRows& rows, std::int64_t entry, std::int64_t query, std::int64_t head,
                  std::int64_t at) {
    find_keys(rows, entry, query, head);
    const KeyRange range = rows_seen(rows, entry, query);
    intermediate_.begin_row(entry, head, query, rows.first_position, range);
    cap(at);
    level_ = false;
    const std::int64_t live = step_.plans[index(entry)].length() - rows.first_position;
    if (keys_.empty()) {
      if (step_.fault == Fault::empty_row_mean) {
        // A finite sentinel at every key: all weights come out equal.
        for (std::int64_t row = 0; row < std::min(live, rows.rows); ++row) {
          keys_.push_back({row, 0, false});
        }
        level_ = true;
      } else if (step_.fault != Fault::empty_row_nan) {
        return;  // The output is zero already.
      }
    }
    distort_keys(step_.fault, live, rows.rows, keys_);
    if (step_.descending) std::reverse(keys_.begin(), keys_.end());
    const Real total = weigh(head, at);
    sum_values(total,
               ((entry * queries_ + query) * config_.query_heads + head) * config_.value_head_size);
  }

  /// The softcap of one row of scores, and what the intermediates want of all its keys.
  void cap(std::int64_t at) {
    if (softcap_ == 0 && !intermediate_.of_all_keys()) return;
    for (std::int64_t i = 0; i < scores_.cols(); ++i) {
      intermediate_.put("raw", first_row_ + i, scores_(at, i));
      const bool caps = softcap_ != 0 && step_.fault != Fault::softcap_after_bias;
      if (caps) scores_(at, i) = softcap_ * std::tanh(scores_(at, i) / softcap_);
      intermediate_.put("softcapped", first_row_ + i, scores_(at, i));
    }
  }

  /// Fills weights_ with exp(logit - largest logit) of every key; their sum, the sink among them.
  Real weigh(std::int64_t head, std::int64_t at) {
    weights_.assign(keys_.size(), 0);
    Real largest = sinks_.empty() ? -std::numeric_limits<Real>::infinity() : sinks_[index(head)];
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i].weightless) continue;
      weights_[i] = level_ ? 0 : scores_(at, keys_[i].row - first_row_);
      if (step_.request.mask) weights_[i] += static_cast<Real>(keys_[i].bias);
      if (step_.fault != Fault::none) {
        weights_[i] = static_cast<Real>(
            distort_logit(step_.fault, static_cast<double>(weights_[i]), config_.softcap));
      }
      intermediate_.put("biased", keys_[i].row, weights_[i]);
      largest = std::max(largest, weights_[i]);
    }
    if (step_.fault == Fault::maximum_not_subtracted) largest = 0;
    Real total = sinks_.empty() ? 0 : std::exp(sinks_[index(head)] - largest);
    if (step_.fault == Fault::sink_in_maximum_only) total = 0;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!keys_[i].weightless) weights_[i] = std::exp(weights_[i] - largest);
      total += weights_[i];
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!keys_[i].weightless) {
        intermediate_.put("probabilities", keys_[i].row, weights_[i] / total);
      }
    }
    return total;
  }

  void sum_values(Real total, std::int64_t first_lane) {
    sums_.setZero(config_.value_head_size);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (step_.fault != Fault::none) {
        weights_[i] =
            static_cast<Real>(distort_weight(step_.fault, static_cast<double>(weights_[i])));
      }
      sums_ += weights_[i] * values_of_head_.row(keys_[i].row - first_row_);
      if (step_.fault == Fault::narrow_accumulation) narrow_sums();
    }
    sums_ /= total;
    encode_row(config_.element_type, sums_.data(), index(config_.value_head_size),
               output_.bytes.data() + index(first_lane) * element_bytes(config_.element_type));
  }

  void narrow_sums() {
    std::byte element[8];
    for (Real& sum : sums_) {
      encode_element(config_.element_type, static_cast<double>(sum), element);
      sum = static_cast<Real>(decode_element(config_.element_type, element));
    }
  }

  const AttentionStep& step_;
  const SessionConfig& config_;
  const StepRows<Real>& operands_;
  std::int64_t queries_;
  bool alone_;
  Tensor output_;
  Intermediate intermediate_;
  std::vector<Real> sinks_;  // Empty without.
  Real scale_ = 0, softcap_ = 0;
  Matrix scores_, keys_of_head_, values_of_head_;
  std::int64_t first_row_ = 0;  // Of the cache, in column 0 of the matrices.
  std::vector<SeenKey> keys_;
  std::vector<Real> weights_;
  bool level_ = false;  // All logits count as 0. A planted fault.
  Row sums_;
  std::vector<Real> lanes_;
  std::vector<float> codes_;
};

}  // namespace

template <class Real>
AttentionAnswer attend(const AttentionStep& step, const StepRows<Real>& operands) {
  return Attention<Real>(step, operands).run();
}

template AttentionAnswer attend(const AttentionStep&, const StepRows<float>&);
template AttentionAnswer attend(const AttentionStep&, const StepRows<double>&);

}  // namespace kvcheck::kernels
