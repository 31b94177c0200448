// Replacing V.
#include "properties/catalog/value_launch.h"

#include <cstring>
#include <utility>

#include "model/quantisation.h"

namespace kvcheck::properties {
namespace {

std::vector<double> row_of(const model::Scenario& s, const ValueLanes& lanes, std::int64_t entry,
                           std::int64_t kv_head) {
  std::vector<double> row;
  for (std::int64_t l = 0; l < s.value_head_size; ++l) row.push_back(lanes(entry, kv_head, l));
  return row;
}

void replace_loaded(const Case& c, const model::Scenario& s, const ValueLanes& lanes,
                    std::size_t step, kernels::Tensor& value) {
  const auto kind = s.cache.quantisation.kind;
  const auto width = static_cast<std::size_t>(value.shape[3]);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < s.kv_heads; ++h) {
      const auto row = row_of(s, lanes, b, h);
      for (std::int64_t r = 0; r < state.resident; ++r) {
        const std::int64_t at = (b * s.kv_heads + h) * value.shape[2] + r;
        if (kind == model::QuantisationKind::none) {
          put_row(value, at, row);
        } else {
          model::store_row(
              kind, row,
              std::span(value.bytes).subspan(static_cast<std::size_t>(at) * width, width));
        }
      }
    }
  }
}

}  // namespace

Interposer value_interposer(const Case& c, const model::Scenario& scenario, ValueLanes lanes) {
  Interposer interposer;
  interposer.config = [](kernels::SessionConfig& config) {
    if (!config.quantisation.quantised()) return;
    kernels::Tensor& scale = config.quantisation.value_scale;
    const float one = 1;
    for (std::int64_t i = 0; i < scale.elements(); ++i) {
      std::memcpy(scale.bytes.data() + static_cast<std::size_t>(i) * sizeof one, &one, sizeof one);
    }
  };
  interposer.append = [&scenario, lanes](std::size_t, kernels::StepRequest& request) {
    for (std::int64_t b = 0; b < scenario.batch; ++b) {
      for (std::int64_t h = 0; h < scenario.kv_heads; ++h) {
        const auto row = row_of(scenario, lanes, b, h);
        for (std::int64_t i = 0; i < request.tokens[static_cast<std::size_t>(b)]; ++i) {
          put_row(request.value, (b * request.value.shape[1] + i) * scenario.kv_heads + h, row);
        }
      }
    }
  };
  interposer.load = [&c, &scenario, lanes](std::size_t step, kernels::LoadRequest& request) {
    replace_loaded(c, scenario, lanes, step, request.rows.value);
  };
  return interposer;
}

}  // namespace kvcheck::properties
