// Rotary positions and turns.
#include "kernels/cpu/rotary.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "kernels/cpu/element.h"
#include "kernels/cpu/key_range.h"

namespace kvcheck::kernels {

using namespace std::string_view_literals;

RotaryPositions::RotaryPositions(const SessionConfig& config, std::span<const std::int64_t> lengths,
                                 const StepRequest& request, Fault fault)
    : lengths_(lengths), request_(&request), config_(&config), fault_(fault) {
  if (!config.rotary) return;
  alone_ = asks_without_tokens(config, request);
  std::int64_t longest = 0;
  bool ragged = false, idle = false, behind = false;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::int64_t length = lengths[b] + request.tokens[b];
    width_ = std::max({width_, request.tokens[b], request.queries[b]});
    longest = std::max(longest, length);
    ragged |= length != lengths[0] + request.tokens[0];
    idle |= length == 0;
    behind |= !alone_ && lengths[b] != 0;
  }
  const bool evicts = config.layout != "full"sv;
  first_prompt_ = !idle && !behind && !(evicts && ragged) && width_ == longest;
  if (config.rotary->position_ids && request.position_ids) {
    ids_ = request.position_ids->bytes.data();
  }
}

std::int64_t RotaryPositions::right(std::int64_t entry, std::int64_t token) const {
  const auto b = static_cast<std::size_t>(entry);
  if (ids_ == nullptr) {
    return (alone_ ? lengths_[b] - request_->queries[b] : lengths_[b]) + token;
  }
  const auto id = [&](std::int64_t flat) {
    std::int64_t number = 0;
    std::memcpy(&number, ids_ + static_cast<std::size_t>(flat) * sizeof number, sizeof number);
    // What is outside any table stays so, and can be counted up from.
    return std::clamp<std::int64_t>(number, std::numeric_limits<std::int32_t>::min(),
                                    std::int64_t{1} << 40);
  };
  return first_prompt_ ? id(0) + token : id(entry * width_ + token);
}

template <class Real>
RotaryTable<Real>::RotaryTable(const RotaryConfig& config, std::int64_t apart)
    : interleaved_(config.interleaved),
      pairs_(config.cos.shape[1]),
      apart_(apart == 0 ? pairs_ : apart) {
  const auto table = [](const Tensor& from) {
    std::vector<Real> numbers(static_cast<std::size_t>(from.elements()));
    decode_row(from.type, from.bytes.data(), numbers.size(), numbers.data());
    return numbers;
  };
  cos_ = table(config.cos);
  sin_ = table(config.sin);
}

template <class Real>
void RotaryTable<Real>::turn(std::int64_t position, Real* row) const {
  const Real* const cos = cos_.data() + position * pairs_;
  const Real* const sin = sin_.data() + position * pairs_;
  for (std::int64_t pair = 0; pair < pairs_; ++pair) {
    Real& a = row[interleaved_ ? 2 * pair : pair];
    Real& b = row[interleaved_ ? 2 * pair + 1 : pair + apart_];
    const Real turned = a * cos[pair] - b * sin[pair];
    b = b * cos[pair] + a * sin[pair];
    a = turned;
  }
}

template class RotaryTable<float>;
template class RotaryTable<double>;

}  // namespace kvcheck::kernels
