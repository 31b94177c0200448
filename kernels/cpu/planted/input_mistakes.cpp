// What each planted fault does to what a session and its steps bring.
#include "kernels/cpu/planted/input_mistakes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/cpu/element.h"
#include "kernels/cpu/eviction.h"

namespace kvcheck::kernels {
namespace {

double number_at(const Tensor& tensor, std::int64_t element) {
  const auto at = static_cast<std::size_t>(element) * element_bytes(tensor.type);
  return decode_element(tensor.type, tensor.bytes.data() + at);
}

void set_number(Tensor& tensor, std::int64_t element, double number) {
  const auto at = static_cast<std::size_t>(element) * element_bytes(tensor.type);
  encode_element(tensor.type, number, tensor.bytes.data() + at);
}

/// Every element becomes function(its index).
template <class Function>
void refill(Tensor& tensor, const Function& function) {
  const Tensor before = tensor;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    set_number(tensor, i, number_at(before, function(i)));
  }
}

void distort_sinks(Fault fault, SessionConfig& config) {
  if (fault == Fault::sinks_ignored) {
    config.head_sink.reset();
    config.smooth_softmax = false;
  }
  const std::int64_t group = config.query_heads / config.kv_heads;
  if (fault == Fault::sink_of_kv_head && config.head_sink) {
    refill(*config.head_sink, [&](std::int64_t head) { return head / group; });
  }
}

void distort_rotary(Fault fault, SessionConfig& config) {
  if (config.rotary && fault == Fault::rotary_layout_swapped) {
    config.rotary->interleaved = !config.rotary->interleaved;
  }
  if (config.rotary && fault == Fault::rotary_turned_backwards) {
    Tensor& sin = config.rotary->sin;
    for (std::int64_t i = 0; i < sin.elements(); ++i) set_number(sin, i, -number_at(sin, i));
  }
  if (config.qk_norm && fault == Fault::norm_weights_swapped) {
    std::swap(config.qk_norm->query_weight, config.qk_norm->key_weight);
  }
}

void distort_scales(Fault fault, SessionConfig& config) {
  QuantisationConfig& codes = config.quantisation;
  if (!codes.quantised()) return;
  if (fault == Fault::key_scale_for_values && config.head_size == config.value_head_size) {
    codes.value_scale = codes.key_scale;
  }
  for (Tensor* const scale : {&codes.key_scale, &codes.value_scale}) {
    if (fault == Fault::scale_floor_one) {
      for (std::int64_t i = 0; i < scale->elements(); ++i) {
        set_number(*scale, i, std::max(1.0, number_at(*scale, i)));
      }
    }
    if (!codes.per_channel) continue;
    const std::int64_t heads = config.kv_heads, lanes = scale->elements() / heads;
    if (fault == Fault::channel_scales_as_one) {
      refill(*scale, [](std::int64_t) { return 0; });
    }
    if (fault == Fault::channel_scales_of_head_zero) {
      refill(*scale, [&](std::int64_t i) { return i % lanes; });
    }
    if (fault == Fault::channel_scales_transposed) {
      refill(*scale, [&](std::int64_t i) { return i % lanes * heads + i / lanes; });
    }
  }
}

/// The queries of a step, each element taken from where `from(entry, query, head)` says.
template <class From>
void regather(const Tensor& from, const From& row_of, Tensor& to) {
  const std::int64_t queries = to.shape[1], heads = to.shape[2];
  const auto row = static_cast<std::int64_t>(element_bytes(to.type)) * to.shape[3];
  for (std::int64_t b = 0; b < to.shape[0]; ++b) {
    for (std::int64_t s = 0; s < queries; ++s) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t at = (b * queries + s) * heads + h;
        std::copy_n(from.bytes.begin() + row_of(b, s, h) * row, row, to.bytes.begin() + at * row);
      }
    }
  }
}

/// The last `counts[b]` of the rows [B,S,N,H] of each entry in place of the first.
void take_last(const std::vector<std::int64_t>& counts, Tensor& rows) {
  const std::int64_t all = rows.shape[1], heads = rows.shape[2];
  const Tensor given = rows;
  regather(
      given,
      [&](auto b, auto s, auto h) {
        const std::int64_t late = s + all - counts[static_cast<std::size_t>(b)];
        return (b * all + std::min(late, all - 1)) * heads + h;
      },
      rows);
}

/// The packed tensor [B,S,(Nq + 2 Nk) * H] of a step, row by row.
Tensor packed_rows(const StepRequest& request) {
  const auto& query = request.query.shape;
  const std::int64_t heads = query[2] + 2 * request.key.shape[2];
  Tensor packed = Tensor::zeros(request.query.type, {query[0], query[1], heads, query[3]});
  auto to = packed.bytes.begin();
  for (std::int64_t token = 0; token < query[0] * query[1]; ++token) {
    for (const Tensor* part : {&request.query, &request.key, &request.value}) {
      const auto count = static_cast<std::int64_t>(part->bytes.size()) / (query[0] * query[1]);
      to = std::copy_n(part->bytes.begin() + token * count, count, to);
    }
  }
  return packed;
}

void distort_queries(Fault fault, const SessionConfig& config, StepRequest& request) {
  const std::int64_t queries = request.query.shape[1], heads = config.query_heads;
  const std::int64_t group = heads / config.kv_heads;
  const Tensor given = request.query;
  if (fault == Fault::group_shares_first_query) {
    regather(
        given,
        [&](auto b, auto s, auto h) { return (b * queries + s) * heads + h / group * group; },
        request.query);
  }
  if (fault == Fault::rank_three_heads_first && config.input_rank == 3) {
    regather(
        given, [&](auto b, auto s, auto h) { return b * queries * heads + h * queries + s; },
        request.query);
  }
  if (fault == Fault::padding_before_queries) take_last(request.queries, request.query);
  if (fault == Fault::padding_before_tokens) {
    take_last(request.tokens, request.key);
    take_last(request.tokens, request.value);
  }
  const bool one_size = request.key.shape[1] == queries && request.key.shape == request.value.shape;
  if (fault == Fault::packed_query_stride && config.packed_qkv && one_size && queries > 0) {
    const std::int64_t all = heads + 2 * config.kv_heads;
    regather(
        packed_rows(request),
        [&](auto b, auto s, auto h) { return b * queries * all + s * heads + h; }, request.query);
  }
}

}  // namespace

void distort_config(Fault fault, SessionConfig& config) {
  if (fault == Fault::none) return;
  if (fault == Fault::softcap_ignored) config.softcap = 0;
  if (fault == Fault::scale_ignored) config.scale = 0;
  if (fault == Fault::scale_of_value_lanes && config.scale == 0) {
    config.scale = 1 / std::sqrt(static_cast<double>(config.value_head_size));
  }
  if (fault == Fault::intermediate_of_earlier_stage) {
    if (config.qk_output == "biased") config.qk_output = "softcapped";
    if (config.qk_output == "probabilities") config.qk_output = "biased";
  }
  distort_sinks(fault, config);
  distort_rotary(fault, config);
  distort_scales(fault, config);
}

std::optional<StepRequest> distort_request(Fault fault, const SessionConfig& config,
                                           std::span<const std::int64_t> lengths,
                                           const StepRequest& request) {
  if (fault == Fault::none) return std::nullopt;
  StepRequest taken = request;
  if (request.mask) {
    if (auto mask = distort_mask(fault, config, lengths, request)) taken.mask = std::move(mask);
  }
  const bool swaps = fault == Fault::packed_key_value_swapped && config.packed_qkv;
  if (swaps && config.head_size == config.value_head_size) std::swap(taken.key, taken.value);
  distort_queries(fault, config, taken);
  return taken;
}

std::int64_t distort_position(Fault fault, const SessionConfig& config,
                              std::span<const std::int64_t> lengths, std::int64_t entry,
                              std::int64_t token, std::int64_t right) {
  const std::int64_t past = lengths[static_cast<std::size_t>(entry)];
  const std::int64_t last = config.rotary->cos.shape[0] - 1;
  switch (fault) {
    case Fault::rotary_position_by_row:
      if (config.layout == "full" || config.rotary->position_ids) return right;
      return std::min(right,
                      Eviction::blocks(config.capacity, config.window_size).resident(past) + token);
    case Fault::rotary_position_by_step:
      return config.rotary->position_ids ? right : std::min(token, last);
    case Fault::rotary_position_of_longest:
      if (config.rotary->position_ids) return right;
      return std::min(last, right - past + *std::max_element(lengths.begin(), lengths.end()));
    case Fault::position_ids_ignored:
      return config.rotary->position_ids ? std::min(last, past + token) : right;
    default:
      return right;
  }
}

float distort_code(Fault fault, float exact, float lowest, float highest) {
  if (fault == Fault::codes_clamped_symmetrically && lowest + highest == -1) ++lowest;
  const float clamped = std::clamp(exact, lowest, highest);
  if (highest == 448) return clamped;
  switch (fault) {
    case Fault::codes_truncated:
      return std::trunc(clamped);
    case Fault::codes_rounded_half_away:
      return std::round(clamped);
    case Fault::codes_wrap_around: {
      const float steps = highest - lowest + 1;
      if (!(std::fabs(exact) < 0x1p20f)) return clamped < 0 ? lowest : highest;
      const float whole = std::nearbyint(exact) - lowest;
      return whole - steps * std::floor(whole / steps) + lowest;
    }
    default:
      return std::nearbyint(clamped);
  }
}

}  // namespace kvcheck::kernels
