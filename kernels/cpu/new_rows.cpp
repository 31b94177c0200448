// What a step brings, made ready.
#include "kernels/cpu/new_rows.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/cache_format.h"
#include "kernels/cpu/element.h"

namespace kvcheck::kernels {
namespace {

template <class Real>
std::vector<Real> numbers_of(const Tensor& tensor) {
  std::vector<Real> numbers(static_cast<std::size_t>(tensor.elements()));
  decode_row(tensor.type, tensor.bytes.data(), numbers.size(), numbers.data());
  return numbers;
}

std::int64_t largest(const std::vector<std::int64_t>& counts) {
  return *std::max_element(counts.begin(), counts.end());
}

template <class Real>
constexpr ElementType kElementOf =
    std::is_same_v<Real, float> ? ElementType::f32 : ElementType::f64;

}  // namespace

template <class Real>
StepRows<Real>::StepRows(const SessionConfig& config, bool widens, Fault fault)
    : config_(config),
      fault_(fault),
      key_row_bytes_(cache_row_bytes(config, config.head_size)),
      value_row_bytes_(cache_row_bytes(config, config.value_head_size)),
      widens_(widens) {
  const bool whole = fault == Fault::rotary_pairs_over_whole_head;
  if (config.rotary) rotary_.emplace(*config.rotary, whole ? config.head_size / 2 : 0);
  if (config.qk_norm) {
    query_weight_ = numbers_of<Real>(config.qk_norm->query_weight);
    key_weight_ = numbers_of<Real>(config.qk_norm->key_weight);
  }
  const QuantisationConfig& codes = config.quantisation;
  if (!codes.quantised()) return;
  key_codes_.emplace(codes, codes.key_scale, config.head_size, fault);
  value_codes_.emplace(codes, codes.value_scale, config.value_head_size, fault);
}

template <class Real>
void StepRows<Real>::prepare(const StepRequest& request, std::span<const std::int64_t> lengths) {
  const std::int64_t tokens = largest(request.tokens);
  const RotaryPositions positions(config_, lengths, request, fault_);
  const std::int64_t queries = largest(request.queries);
  prepare_queries(request, positions, queries);
  query_type_ = queries_ != nullptr ? kElementOf<Real> : config_.element_type;
  query_rows_ =
      RowSource::dense(queries_ != nullptr ? reinterpret_cast<const std::byte*>(queries_)
                                           : request.query.bytes.data(),
                       queries, config_.query_heads,
                       config_.head_size * static_cast<std::int64_t>(element_bytes(query_type_)));
  rows_ = {prepare_rows(request, positions, tokens, true),
           prepare_rows(request, positions, tokens, false)};
  if (tokens > 0) rolled_back_ = false;
}

template <class Real>
void StepRows<Real>::prepare_queries(const StepRequest& request, const RotaryPositions& positions,
                                     std::int64_t queries) {
  if (config_.element_type == kElementOf<Real> && !transforms()) {
    queries_ = reinterpret_cast<const Real*>(request.query.bytes.data());
    return;
  }
  queries_ = nullptr;
  if (!widens_ && !transforms()) return;
  const std::int64_t lanes = config_.head_size;
  const auto count =
      static_cast<std::size_t>(config_.batch * queries * config_.query_heads * lanes);
  if (query_numbers_.size() < count) query_numbers_.resize(count);
  decode_row(config_.element_type, request.query.bytes.data(), count, query_numbers_.data());
  queries_ = query_numbers_.data();
  if (!transforms()) return;
  for (std::int64_t b = 0; b < config_.batch; ++b) {
    for (std::int64_t s = 0; s < request.queries[static_cast<std::size_t>(b)]; ++s) {
      Real* row = query_numbers_.data() + (b * queries + s) * config_.query_heads * lanes;
      const std::int64_t token = fault_ == Fault::rotary_queries_at_first_position ? 0 : s;
      const std::int64_t position = rotary_ ? positions.of(b, token) : 0;
      for (std::int64_t head = 0; head < config_.query_heads; ++head, row += lanes) {
        transform(row, position, false);
      }
    }
  }
}

template <class Real>
RowSource StepRows<Real>::prepare_rows(const StepRequest& request, const RotaryPositions& positions,
                                       std::int64_t tokens, bool key) {
  const Tensor& given = key ? request.key : request.value;
  const std::int64_t lanes = key ? config_.head_size : config_.value_head_size;
  const std::optional<Quantiser>& codes = key ? key_codes_ : value_codes_;
  const std::int64_t row_bytes = key ? key_row_bytes_ : value_row_bytes_;
  const bool transformed = key && transforms();
  if (!transformed && !codes) {
    return RowSource::dense(given.bytes.data(), tokens, config_.kv_heads, row_bytes);
  }
  const std::int64_t given_bytes =
      lanes * static_cast<std::int64_t>(element_bytes(config_.element_type));
  std::vector<std::byte>& stored = key ? key_bytes_ : value_bytes_;
  const auto count =
      static_cast<std::size_t>(config_.batch * tokens * config_.kv_heads * row_bytes);
  if (stored.size() < count) stored.resize(count);
  lanes_.resize(static_cast<std::size_t>(lanes));
  elements_.resize(static_cast<std::size_t>(given_bytes));
  if (codes) rounded_.resize(lanes_.size());
  const RowSource from =
      RowSource::dense(given.bytes.data(), tokens, config_.kv_heads, given_bytes);
  for (std::int64_t b = 0; b < config_.batch; ++b) {
    for (std::int64_t t = 0; t < request.tokens[static_cast<std::size_t>(b)]; ++t) {
      const std::int64_t position = transformed && rotary_ ? positions.of(b, t) : 0;
      for (std::int64_t head = 0; head < config_.kv_heads; ++head) {
        const std::byte* elements = from.row(b, t, head);
        const std::int64_t row = (b * tokens + t) * config_.kv_heads + head;
        std::byte* const place = stored.data() + row * row_bytes;
        if (transformed) {
          decode_row(config_.element_type, elements, lanes_.size(), lanes_.data());
          transform(lanes_.data(), position, true);
          std::byte* const out = codes ? elements_.data() : place;
          encode_row(config_.element_type, lanes_.data(), lanes_.size(), out);
          elements = out;
        }
        if (!codes) continue;
        decode_row(config_.element_type, elements, rounded_.size(), rounded_.data());
        codes->store(rounded_.data(), head, place);
      }
    }
  }
  return RowSource::dense(stored.data(), tokens, config_.kv_heads, row_bytes);
}

template <class Real>
void StepRows<Real>::normalise(Real* row, const std::vector<Real>& weight) const {
  if (fault_ == Fault::norm_removes_mean) {
    Real sum = 0;
    for (std::size_t c = 0; c < weight.size(); ++c) sum += row[c];
    const Real mean = sum / static_cast<Real>(weight.size());
    for (std::size_t c = 0; c < weight.size(); ++c) row[c] -= mean;
  }
  Real squares = 0;
  for (std::size_t c = 0; c < weight.size(); ++c) squares += row[c] * row[c];
  const Real mean = squares / static_cast<Real>(weight.size());
  const Real factor = 1 / std::sqrt(mean + static_cast<Real>(config_.qk_norm->epsilon));
  for (std::size_t c = 0; c < weight.size(); ++c) row[c] = row[c] * factor * weight[c];
}

template <class Real>
void StepRows<Real>::transform(Real* row, std::int64_t position, bool key) const {
  const std::vector<Real>& weight = key ? key_weight_ : query_weight_;
  const bool late = fault_ == Fault::norm_after_rotary;
  const bool left_out = key && fault_ == Fault::norm_of_queries_only;
  if (config_.qk_norm && !late && !left_out) normalise(row, weight);
  if (rotary_) rotary_->turn(position, row);
  const bool again = key && rolled_back_ && fault_ == Fault::keys_turned_twice_after_rollback;
  if (rotary_ && again) rotary_->turn(position, row);
  if (config_.qk_norm && late) normalise(row, weight);
}

template <class Real>
std::int64_t StepRows<Real>::scratch_bytes() const {
  return static_cast<std::int64_t>(query_numbers_.size() * sizeof(Real) + key_bytes_.size() +
                                   value_bytes_.size());
}

template class StepRows<float>;
template class StepRows<double>;

}  // namespace kvcheck::kernels
