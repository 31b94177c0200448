// cpu-flash without tensors.
#include "kernels/cpu/flash/flash_engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "kernels/cpu/element.h"
#include "kernels/cpu/flash/planted_kernels.h"
#include "kernels/cpu/planted/mistakes.h"

namespace kvcheck::kernels::flash {

using namespace std::string_view_literals;

namespace {

const Kernels& chosen(const SessionConfig& config) {
  const Kernels* const kernels = kernels_for(config.isa);
  if (kernels == nullptr) {
    std::string known;
    for (const Kernels* here : kernels_here()) known += fmt::format("{} ", here->isa);
    throw std::invalid_argument(
        fmt::format("isa = {} (or KVCHECK_ISA): does not run here; use one of {}or leave it empty",
                    config.isa, known));
  }
  return *kernels;
}

FlashShape shape_of(const SessionConfig& config) {
  return {config.batch,     config.query_heads,     config.kv_heads,
          config.head_size, config.value_head_size, storage_of(config)};
}

/// What logits are multiplied with.
float scale_of(const SessionConfig& config) {
  return static_cast<float>(config.scale == 0 ? 1 / std::sqrt(static_cast<double>(config.head_size))
                                              : config.scale);
}

/// One scale for each KV head and lane; empty where the cache is not quantised.
std::vector<float> scales_of(const SessionConfig& config, const Tensor& scale, std::int64_t lanes) {
  if (!config.quantisation.quantised()) return {};
  std::vector<float> scales(static_cast<std::size_t>(config.kv_heads * lanes));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::size_t from = config.quantisation.per_channel ? i : 0;
    std::memcpy(&scales[i], scale.bytes.data() + from * sizeof(float), sizeof(float));
  }
  return scales;
}

std::vector<float> sinks_of(const SessionConfig& config) {
  std::vector<float> sinks;
  if (!config.head_sink && !config.smooth_softmax) return sinks;
  sinks.assign(static_cast<std::size_t>(config.query_heads), 0);
  if (config.head_sink) {
    decode_row(config.head_sink->type, config.head_sink->bytes.data(), sinks.size(), sinks.data());
  }
  return sinks;
}

/// Rows that the entries read, as a planted fault takes them.
void distort_entries(Fault fault, std::span<const EntryPlan> plans,
                     std::vector<EntryRows>& entries) {
  const std::vector<EntryRows> right = entries;
  for (std::size_t b = 0; b < entries.size(); ++b) {
    entries[b] = distort_rows(fault, plans, right, b);
    const bool longer = fault == Fault::length_one_too_many && entries[b].live < entries[b].rows;
    if (longer) ++entries[b].live;
    if (fault == Fault::nonpad_limit_ignored) entries[b].live = entries[b].rows;
  }
}

const float* data_or_null(const std::vector<float>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}

}  // namespace

Storage storage_of(ElementType type) {
  if (type == ElementType::f16) return Storage::f16;
  return type == ElementType::bf16 ? Storage::bf16 : Storage::f32;
}

Storage storage_of(const SessionConfig& config) {
  if (config.quantisation.kind == "int8"sv) return Storage::int8;
  if (config.quantisation.kind == "int4"sv) return Storage::int4;
  return storage_of(config.element_type);
}

FlashEngine::FlashEngine(const SessionConfig& config, const Kernels* kernels, bool shares_groups,
                         Fault fault)
    : config_(config),
      fault_(fault),
      kernels_(&distort_kernels(fault, config_, kernels != nullptr ? *kernels : chosen(config_))),
      cache_(config_, fault),
      attention_(shape_of(config_), *kernels_, config_.threads,
                 shares_groups && fault != Fault::head_modulo, fault),
      scale_(scale_of(config_)),
      sinks_(sinks_of(config_)),
      key_scales_(scales_of(config_, config_.quantisation.key_scale, config_.head_size)),
      value_scales_(scales_of(config_, config_.quantisation.value_scale, config_.value_head_size)) {
  entries_.reserve(static_cast<std::size_t>(config_.batch));
}

void FlashEngine::step(const EngineStep& step) { this->step(step, {}); }

void FlashEngine::step(const EngineStep& step, const Inspector& inspect) {
  const std::span<const EntryPlan> plans = cache_.plan(step.tokens);
  cache_.place(step.rows);
  if (fault_ == Fault::staging_skipped) cache_.settle();
  const std::int64_t most = *std::max_element(step.queries.begin(), step.queries.end());
  entries_.clear();
  ranges_.assign(static_cast<std::size_t>(config_.batch * most), {});
  for (std::size_t b = 0; b < plans.size(); ++b) {
    entries_.push_back(cache_.rows_of(static_cast<std::int64_t>(b)));
    for (std::int64_t i = 0; i < step.queries[b]; ++i) {
      ranges_[b * static_cast<std::size_t>(most) + static_cast<std::size_t>(i)] = key_range(
          distort_case(fault_, config_, plans,
                       query_case(config_, plans[b], step.queries_alone, step.queries[b], i)));
    }
  }
  if (fault_ != Fault::none) distort_entries(fault_, plans, entries_);
  FlashStep attended;
  attended.entries = entries_;
  attended.queries = step.queries;
  attended.max_queries = most;
  attended.ranges = ranges_;
  attended.query = step.query;
  attended.query_type = step.query_type;
  attended.mask = step.mask;
  attended.scale = scale_;
  attended.softcap = static_cast<float>(config_.softcap);
  attended.sinks = data_or_null(sinks_);
  attended.key_scales = data_or_null(key_scales_);
  attended.value_scales = data_or_null(value_scales_);
  attended.output = step.output;
  attended.output_type = step.output_type;
  attended.maxima = step.maxima;
  attended.totals = step.totals;
  attention_.run(attended);
  if (inspect) inspect(attention_, attended, plans);
  if (fault_ != Fault::staging_skipped) cache_.settle();
}

}  // namespace kvcheck::kernels::flash
