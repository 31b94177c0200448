// Attention of one step on a machine.
#include "kernels/cuda/device_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/element.h"
#include "kernels/cpu/key_range.h"
#include "kernels/cpu/mask_rows.h"
#include "kernels/cuda/takes.h"

namespace kvcheck::kernels::device {
namespace {

std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

AttentionShape shape_of(const SessionConfig& config, std::int64_t queries) {
  return {element_of(config.element_type), config.quantisation.quantised(), config.head_size,
          config.value_head_size, queries * (config.query_heads / config.kv_heads)};
}

bool takes(AttentionKernel kernel, const KernelTable& kernels, const AttentionShape& shape) {
  switch (kernel) {
    case AttentionKernel::unfused:
      return true;
    case AttentionKernel::decode:
      return kernels.decode != nullptr && takes_decode(shape);
    case AttentionKernel::decode_matrix:
      return kernels.decode_matrix != nullptr && takes_decode_matrix(shape);
    case AttentionKernel::prefill:
      return kernels.prefill != nullptr && takes_prefill(shape);
  }
  return false;
}

}  // namespace

std::string_view to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::unfused:
      return "unfused";
    case AttentionKernel::decode:
      return "decode";
    case AttentionKernel::decode_matrix:
      return "decode_matrix";
    case AttentionKernel::prefill:
      return "prefill";
  }
  return "?";
}

AttentionKernel chosen_kernel(const SessionConfig& config, const KernelTable& kernels,
                              std::int64_t queries) {
  using enum AttentionKernel;
  const AttentionShape shape = shape_of(config, queries);
  for (const AttentionKernel kernel : {unfused, decode, decode_matrix, prefill}) {
    if (config.launch && config.launch->kernel == to_string(kernel) &&
        takes(kernel, kernels, shape)) {
      return kernel;
    }
  }
  if (shape.rows >= kPrefillRows && takes(prefill, kernels, shape)) return prefill;
  if (shape.rows >= kMatrixRows && takes(decode_matrix, kernels, shape)) return decode_matrix;
  for (const AttentionKernel kernel : {decode, prefill}) {
    if (takes(kernel, kernels, shape)) return kernel;
  }
  return unfused;
}

Splits splits_of(const SessionConfig& config, std::span<const EntryView> entries,
                 std::int64_t positions) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  for (const EntryView& entry : entries) {
    if (entry.queries == 0 || entry.live == 0) continue;
    std::int64_t first = entry.first_position;
    if (config.window_size >= 0) {
      first = std::max(first, entry.origin - config.window_size + 1);
    }
    begin = std::min(begin, first);
    end = std::max(end, entry.first_position + entry.live);
  }
  if (begin >= end) return {kSplitUnit, 0, 1};
  const auto units = [](std::int64_t count) {
    return std::max<std::int64_t>(1, (count + kSplitUnit - 1) / kSplitUnit) * kSplitUnit;
  };
  Splits splits;
  splits.positions = std::max(units(positions == 0 ? kSplitPositions : positions),
                              units((end - begin) / kMostSplits));
  splits.first = begin / splits.positions;
  splits.count = (end - 1) / splits.positions - splits.first + 1;
  return splits;
}

DeviceAttention::DeviceAttention(Machine& machine, const SessionConfig& config,
                                 const DeviceCache& cache)
    : machine_(machine), config_(config), cache_(cache) {
  std::vector<float> sinks;
  if (config.head_sink) {
    sinks.resize(index(config.query_heads));
    decode_row(config.element_type, config.head_sink->bytes.data(), sinks.size(), sinks.data());
  } else if (config.smooth_softmax) {
    sinks.assign(index(config.query_heads), 0);
  }
  sinks_ = uploaded(machine, std::span<const float>(sinks), "sinks");
}

DeviceBuffer& DeviceAttention::keep(DeviceBuffer buffer) {
  in_use_.push_back(std::move(buffer));
  return in_use_.back();
}

std::vector<EntryView> DeviceAttention::views(const StepRequest& request,
                                              std::span<const EntryPlan> plans) const {
  const bool alone = asks_without_tokens(config_, request);
  std::vector<EntryView> all;
  for (std::int64_t entry = 0; entry < config_.batch; ++entry) {
    EntryView view = cache_.view(entry);
    view.queries = request.queries[index(entry)];
    view.origin = query_position(query_case(config_, plans[index(entry)], alone, view.queries, 0));
    all.push_back(view);
  }
  return all;
}

void DeviceAttention::add_mask(const StepRequest& request, AttentionParameters& parameters) {
  if (!request.mask) return;
  const MaskRows mask(*request.mask);
  parameters.mask =
      keep(uploaded(machine_, std::span<const std::byte>(request.mask->bytes), "mask")).data();
  parameters.mask_kind =
      request.mask->type == ElementType::boolean ? MaskKind::boolean : MaskKind::additive;
  parameters.mask_entry_stride = mask.entry_stride();
  parameters.mask_head_stride = mask.head_stride();
  parameters.mask_query_stride = mask.query_stride();
  parameters.mask_columns = mask.columns();
}

void DeviceAttention::add_scratch(AttentionKernel kernel, std::span<const EntryView> entries,
                                  AttentionParameters& parameters) {
  const std::int64_t rows = config_.batch * queries_ * config_.query_heads;
  if (kernel == AttentionKernel::unfused) {
    std::int64_t columns = 1;
    for (const EntryView& entry : entries) columns = std::max(columns, entry.live);
    parameters.score_columns = columns;
    parameters.scores =
        keep({machine_, rows * columns * std::int64_t{4}, Use::scratch, "scores"}).as<float>();
    return;
  }
  if (kernel == AttentionKernel::prefill) return;
  const Splits splits =
      splits_of(config_, entries, config_.launch ? config_.launch->split_positions : 0);
  parameters.split_positions = splits.positions;
  parameters.first_split = splits.first;
  parameters.splits = splits.count;
  if (splits.count == 1) return;
  const std::int64_t partial = rows * splits.count * std::int64_t{4};
  parameters.partial_outputs =
      keep({machine_, partial * config_.value_head_size, Use::scratch, "partial outputs"})
          .as<float>();
  parameters.partial_maxima = keep({machine_, partial, Use::scratch, "partial maxima"}).as<float>();
  parameters.partial_sums = keep({machine_, partial, Use::scratch, "partial sums"}).as<float>();
}

AttentionParameters DeviceAttention::parameters_of(const StepRequest& request) {
  AttentionParameters parameters{};
  parameters.query =
      keep(uploaded(machine_, std::span<const std::byte>(request.query.bytes), "queries")).data();
  parameters.output = output_.data();
  add_mask(request, parameters);
  parameters.sinks = sinks_.as<float>();
  parameters.key_scale = cache_.scales().key.as<float>();
  parameters.value_scale = cache_.scales().value.as<float>();
  parameters.per_channel = config_.quantisation.per_channel;
  parameters.window = config_.window_size;
  parameters.right = config_.right_window_size;
  parameters.causal = config_.causal;
  parameters.queries = queries_;
  parameters.batch = static_cast<std::int32_t>(config_.batch);
  parameters.query_heads = static_cast<std::int32_t>(config_.query_heads);
  parameters.kv_heads = static_cast<std::int32_t>(config_.kv_heads);
  parameters.head_size = static_cast<std::int32_t>(config_.head_size);
  parameters.value_head_size = static_cast<std::int32_t>(config_.value_head_size);
  const double by_default = 1 / std::sqrt(static_cast<double>(config_.head_size));
  parameters.scale = static_cast<float>(config_.scale == 0 ? by_default : config_.scale);
  parameters.softcap = static_cast<float>(config_.softcap);
  parameters.splits = 1;
  return parameters;
}

void DeviceAttention::launch_kernel(AttentionKernel kernel, std::span<const AttentionKernel> chosen,
                                    std::vector<EntryView> entries,
                                    AttentionParameters parameters) {
  for (std::size_t b = 0; b < entries.size(); ++b) {
    if (chosen[b] != kernel) entries[b].queries = 0;
  }
  parameters.entries =
      keep(uploaded(machine_, std::span<const EntryView>(entries), "entries")).as<EntryView>();
  add_scratch(kernel, entries, parameters);
  AttentionLaunch how{element_of(config_.element_type), config_.quantisation.quantised()};
  if (config_.launch && config_.launch->threads > 0) {
    how.threads = static_cast<std::uint32_t>(config_.launch->threads);
  }
  const KernelTable& kernels = machine_.kernels();
  const auto run = kernel == AttentionKernel::unfused         ? kernels.unfused
                   : kernel == AttentionKernel::decode        ? kernels.decode
                   : kernel == AttentionKernel::decode_matrix ? kernels.decode_matrix
                                                              : kernels.prefill;
  run(machine_.queue(), how, parameters);
}

void DeviceAttention::launch(const StepRequest& request, std::span<const EntryPlan> plans) {
  queries_ = *std::max_element(request.queries.begin(), request.queries.end());
  if (queries_ == 0) return;
  const std::int64_t outputs =
      config_.batch * queries_ * config_.query_heads * config_.value_head_size;
  output_ = DeviceBuffer(machine_,
                         outputs * static_cast<std::int64_t>(element_bytes(config_.element_type)),
                         Use::output, "output");
  const std::vector<EntryView> entries = views(request, plans);
  const std::int64_t row_bytes = output_.bytes() / (config_.batch * queries_);
  for (std::int64_t b = 0; b < config_.batch; ++b) {
    const std::int64_t asked = entries[index(b)].queries;
    if (asked > 0) {
      machine_.expect_written(output_.data() + b * queries_ * row_bytes, asked * row_bytes);
    }
  }
  const AttentionParameters parameters = parameters_of(request);
  std::vector<AttentionKernel> chosen;
  for (const EntryView& entry : entries) {
    chosen.push_back(chosen_kernel(config_, machine_.kernels(), entry.queries));
  }
  for (const AttentionKernel kernel : {AttentionKernel::unfused, AttentionKernel::decode,
                                       AttentionKernel::decode_matrix, AttentionKernel::prefill}) {
    bool used = false;
    for (std::size_t b = 0; b < entries.size(); ++b) {
      used = used || (chosen[b] == kernel && entries[b].queries > 0);
    }
    if (used) launch_kernel(kernel, chosen, entries, parameters);
  }
}

Tensor DeviceAttention::output() const {
  Tensor read = Tensor::zeros(config_.element_type, {config_.batch, queries_, config_.query_heads,
                                                     config_.value_head_size});
  if (output_.data() != nullptr && queries_ > 0) machine_.read(output_.data(), read.bytes);
  return read;
}

const std::byte* DeviceAttention::address_of(const ElementPlace& place) const {
  const auto within = [](std::int64_t at, std::int64_t end) { return at >= 0 && at < end; };
  if (output_.data() == nullptr || !within(place.entry, config_.batch) ||
      !within(place.row, queries_) || !within(place.head, config_.query_heads) ||
      !within(place.lane, config_.value_head_size)) {
    return nullptr;
  }
  const std::int64_t row = (place.entry * queries_ + place.row) * config_.query_heads + place.head;
  return output_.data() + (row * config_.value_head_size + place.lane) *
                              static_cast<std::int64_t>(element_bytes(config_.element_type));
}

void DeviceAttention::release_step() {
  in_use_.clear();
  output_ = {};
}

}  // namespace kvcheck::kernels::device
