// Parameters of the model as tensors.
#include "properties/parameter_tensors.h"

#include "model/parameters.h"
#include "model/rotary.h"
#include "properties/convert.h"
#include "properties/tensor_writer.h"

namespace kvcheck::properties {
namespace {

using kernels::Tensor;
using model::Scenario;

Tensor norm_weights(const Scenario& scenario, model::NormSide side) {
  Tensor weights = Tensor::zeros(to_kernel(scenario.element_type), {scenario.head_size});
  TensorWriter writer(weights);
  for (std::int64_t lane = 0; lane < scenario.head_size; ++lane) {
    writer.put(model::norm_weight(scenario, side, lane));
  }
  return weights;
}

Tensor cache_scales(const Scenario& scenario, model::CacheSide side) {
  if (!scenario.cache.quantisation.per_channel) {
    Tensor scale = Tensor::zeros(kernels::ElementType::f32, {1});
    TensorWriter(scale).put(model::cache_scale(scenario, side, 0, 0));
    return scale;
  }
  Tensor scales = Tensor::zeros(kernels::ElementType::f32, {scenario.kv_heads, scenario.head_size});
  TensorWriter writer(scales);
  for (std::int64_t head = 0; head < scenario.kv_heads; ++head) {
    for (std::int64_t lane = 0; lane < scenario.head_size; ++lane) {
      writer.put(model::cache_scale(scenario, side, head, lane));
    }
  }
  return scales;
}

/// cos_cache and sin_cache, which depend on these three numbers alone.
struct TurnTables {
  kernels::ElementType type = kernels::ElementType::f32;
  std::int64_t lanes = 0;
  std::int64_t rows = 0;
  Tensor cos, sin;
};

TurnTables make_tables(const Scenario& scenario, std::int64_t rows) {
  const model::Rotary rotary(scenario);
  TurnTables made{to_kernel(scenario.element_type), model::rotary_lanes(scenario), rows, {}, {}};
  made.cos = Tensor::zeros(made.type, {rows, rotary.pairs()});
  made.sin = Tensor::zeros(made.type, {rows, rotary.pairs()});
  TensorWriter cos(made.cos), sin(made.sin);
  for (std::int64_t position = 0; position < rows; ++position) {
    for (std::int64_t pair = 0; pair < rotary.pairs(); ++pair) {
      const model::Turn turn = rotary.turn(position, pair);
      cos.put(turn.cos);
      sin.put(turn.sin);
    }
  }
  return made;
}

/// The tables of a scenario. A thread keeps its last ones: a scenario runs several times.
const TurnTables& tables_of(const Scenario& scenario, std::int64_t rows) {
  thread_local TurnTables last;
  const bool same = last.type == to_kernel(scenario.element_type) &&
                    last.lanes == model::rotary_lanes(scenario) && last.rows == rows;
  if (!same) last = make_tables(scenario, rows);
  return last;
}

}  // namespace

Tensor head_sink(const Scenario& scenario) {
  Tensor sinks = Tensor::zeros(to_kernel(scenario.element_type), {scenario.query_heads});
  TensorWriter writer(sinks);
  for (std::int64_t head = 0; head < scenario.query_heads; ++head) {
    writer.put(model::sink_logit(scenario, head));
  }
  return sinks;
}

kernels::RotaryConfig rotary_config(const Scenario& scenario, const model::Timeline& timeline) {
  const TurnTables& tables = tables_of(scenario, model::rotary_rows(scenario, timeline));
  return {scenario.rotary->interleaved, scenario.rotary->position_ids.has_value(), tables.cos,
          tables.sin};
}

kernels::QkNormConfig qk_norm_config(const Scenario& scenario) {
  return {scenario.qk_norm->epsilon, norm_weights(scenario, model::NormSide::query),
          norm_weights(scenario, model::NormSide::key)};
}

kernels::QuantisationConfig quantisation_config(const Scenario& scenario) {
  kernels::QuantisationConfig config;
  if (scenario.cache.quantisation.kind == model::QuantisationKind::none) return config;
  config.kind = to_string(scenario.cache.quantisation.kind);
  config.per_channel = scenario.cache.quantisation.per_channel;
  config.key_scale = cache_scales(scenario, model::CacheSide::key);
  config.value_scale = cache_scales(scenario, model::CacheSide::value);
  return config;
}

}  // namespace kvcheck::properties
