// The KV cache of a session of kernels/cuda.
#include "kernels/cuda/device_cache.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cpu/cache_format.h"
#include "kernels/cpu/element.h"

namespace kvcheck::kernels::device {
namespace {

std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

std::span<const float> as_floats(const Tensor& tensor) {
  return {reinterpret_cast<const float*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(float)};
}

}  // namespace

Element element_of(ElementType type) {
  if (type == ElementType::f16) return Element::f16;
  return type == ElementType::bf16 ? Element::bf16 : Element::f32;
}

DeviceCache::DeviceCache(Machine& machine, const SessionConfig& config)
    : machine_(machine),
      config_(config),
      kind_(cache_kind(config)),
      key_row_bytes_(cache_row_bytes(config, config.head_size)),
      value_row_bytes_(cache_row_bytes(config, config.value_head_size)),
      lengths_(index(config.batch), 0),
      plans_(lengths_.size()),
      stage_offset_(lengths_.size(), 0) {
  if (config.quantisation.quantised()) {
    scales_ = {uploaded(machine, as_floats(config.quantisation.key_scale), "key scales"),
               uploaded(machine, as_floats(config.quantisation.value_scale), "value scales")};
  }
  buffer_ = zeroed(kind_.concatenates ? 0 : config.capacity);
  if (config.initial_poison != 0) {
    poison({config.initial_poison, std::vector<std::int64_t>(lengths_.size(), 0)});
  }
}

DeviceCache::Rows DeviceCache::zeroed(std::int64_t rows) const {
  const std::int64_t all = config_.batch * config_.kv_heads * rows;
  Rows made{{machine_, all * key_row_bytes_, Use::read_write, "key cache"},
            {machine_, all * value_row_bytes_, Use::read_write, "value cache"},
            rows};
  for (const DeviceBuffer* buffer : {&made.key, &made.value}) {
    if (buffer->data() == nullptr) continue;
    machine_.write(buffer->data(), std::vector<std::byte>(index(buffer->bytes())));
  }
  return made;
}

DeviceCache::Place DeviceCache::place_of(const Rows& rows, std::int64_t entry) const {
  const std::int64_t first = entry * config_.kv_heads * rows.rows;
  return {rows.key.data() + first * key_row_bytes_, rows.value.data() + first * value_row_bytes_,
          rows.rows};
}

DeviceCache::Place DeviceCache::stage_of(std::int64_t entry) const {
  const EntryPlan& plan = plans_[index(entry)];
  const std::int64_t rows = plan.resident_before + plan.tokens;
  std::byte* const key = stage_.data() + stage_offset_[index(entry)];
  // Packets are read from here, too.
  const std::int64_t key_bytes = (config_.kv_heads * rows * key_row_bytes_ + 15) / 16 * 16;
  return {key, key + key_bytes, rows};
}

std::span<const EntryPlan> DeviceCache::plan(std::span<const std::int64_t> tokens) {
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    plans_[b] = plan_entry(kind_, lengths_[b], tokens[b]);
  }
  return plans_;
}

void DeviceCache::reserve_stage() {
  std::int64_t bytes = 0;
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    if (!plans_[b].staged) continue;
    stage_offset_[b] = bytes;
    const std::int64_t rows = config_.kv_heads * (plans_[b].resident_before + plans_[b].tokens);
    bytes += (rows * key_row_bytes_ + 15) / 16 * 16 + (rows * value_row_bytes_ + 15) / 16 * 16;
  }
  // Of this step alone, so that a row that nobody staged is seen to be nobody's.
  stage_ = DeviceBuffer(machine_, bytes, Use::scratch, "stage");
}

MoveEntry DeviceCache::move(const Place& from, std::int64_t from_row, const Place& to,
                            std::int64_t to_row, std::int64_t count) const {
  return {from.key,
          to.key,
          from.value,
          to.value,
          from.rows * key_row_bytes_,
          to.rows * key_row_bytes_,
          from.rows * value_row_bytes_,
          to.rows * value_row_bytes_,
          from_row,
          to_row,
          count};
}

void DeviceCache::run_moves(std::vector<MoveEntry> moves) {
  const bool any =
      std::any_of(moves.begin(), moves.end(), [](const MoveEntry& move) { return move.rows > 0; });
  if (!any) return;
  DeviceBuffer entries = uploaded(machine_, std::span<const MoveEntry>(moves), "moves");
  MoveParameters parameters{};
  parameters.entries = entries.as<const MoveEntry>();
  parameters.key_row_bytes = key_row_bytes_;
  parameters.value_row_bytes = value_row_bytes_;
  parameters.batch = static_cast<std::int32_t>(moves.size());
  parameters.kv_heads = static_cast<std::int32_t>(config_.kv_heads);
  in_use_.push_back(std::move(entries));
  machine_.kernels().move(machine_.queue(), parameters);
}

void DeviceCache::place(const StepRequest& request) {
  settled_ = false;
  Rows fresh;
  if (kind_.fresh_present) {
    fresh = zeroed(kind_.concatenates ? plans_[0].length() : config_.capacity);
  }
  Rows& present = kind_.fresh_present ? fresh : buffer_;
  reserve_stage();
  std::vector<MoveEntry> moves;
  std::vector<AppendEntry> appends;
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    const EntryPlan& plan = plans_[b];
    const auto entry = static_cast<std::int64_t>(b);
    const Place from = place_of(buffer_, entry);
    const Place to = plan.staged ? stage_of(entry) : place_of(present, entry);
    moves.push_back(move(from, plan.staged ? 0 : plan.dropped, to, 0,
                         plan.staged ? plan.resident_before : plan.moved));
    appends.push_back({to.key, to.value, to.rows * key_row_bytes_, to.rows * value_row_bytes_,
                       plan.append_row, plan.tokens});
  }
  run_moves(std::move(moves));
  const std::int64_t tokens = *std::max_element(request.tokens.begin(), request.tokens.end());
  if (tokens > 0) {
    DeviceBuffer entries = uploaded(machine_, std::span<const AppendEntry>(appends), "appends");
    DeviceBuffer key =
        uploaded(machine_, std::span<const std::byte>(request.key.bytes), "new keys");
    DeviceBuffer value =
        uploaded(machine_, std::span<const std::byte>(request.value.bytes), "new values");
    AppendParameters parameters{};
    parameters.entries = entries.as<const AppendEntry>();
    parameters.key = key.data();
    parameters.value = value.data();
    parameters.key_scale = scales_.key.as<const float>();
    parameters.value_scale = scales_.value.as<const float>();
    parameters.tokens = tokens;
    parameters.batch = static_cast<std::int32_t>(config_.batch);
    parameters.kv_heads = static_cast<std::int32_t>(config_.kv_heads);
    parameters.head_size = static_cast<std::int32_t>(config_.head_size);
    parameters.value_head_size = static_cast<std::int32_t>(config_.value_head_size);
    parameters.element = element_of(config_.element_type);
    parameters.per_channel = config_.quantisation.per_channel;
    machine_.kernels().append(machine_.queue(), parameters);
    for (DeviceBuffer* buffer : {&entries, &key, &value}) in_use_.push_back(std::move(*buffer));
  }
  if (kind_.fresh_present) std::swap(buffer_, fresh);
  // Launches that are under way still read the past.
  in_use_.push_back(std::move(fresh.key));
  in_use_.push_back(std::move(fresh.value));
}

EntryView DeviceCache::view(std::int64_t entry) const {
  const EntryPlan& plan = plans_[index(entry)];
  const bool staged = plan.staged && !settled_;
  const Place at = staged ? stage_of(entry) : place_of(buffer_, entry);
  EntryView view{};
  view.key = at.key;
  view.value = at.value;
  view.key_head_stride = at.rows * key_row_bytes_;
  view.value_head_stride = at.rows * value_row_bytes_;
  view.live = staged ? at.rows : plan.resident_after;
  view.first_position = plan.length() - view.live;
  return view;
}

void DeviceCache::settle() {
  std::vector<MoveEntry> moves;
  for (std::size_t b = 0; b < plans_.size(); ++b) {
    const EntryPlan& plan = plans_[b];
    const auto entry = static_cast<std::int64_t>(b);
    if (plan.staged) {
      moves.push_back(move(stage_of(entry), plan.write_back_from, place_of(buffer_, entry), 0,
                           plan.resident_after));
    }
    lengths_[b] = plan.length();
  }
  run_moves(std::move(moves));
  settled_ = true;
}

void DeviceCache::release_step() {
  in_use_.clear();
  stage_ = {};
}

std::optional<std::string> DeviceCache::why_not_rollback(
    std::span<const std::int64_t> tokens) const {
  return kernels::why_not_rollback(kind_, lengths_, tokens);
}

void DeviceCache::rollback(std::span<const std::int64_t> tokens) {
  for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] -= tokens[b];
  if (!kind_.concatenates) return;
  Rows shorter = zeroed(lengths_[0]);
  std::vector<MoveEntry> moves;
  for (std::int64_t entry = 0; entry < config_.batch; ++entry) {
    moves.push_back(move(place_of(buffer_, entry), 0, place_of(shorter, entry), 0, lengths_[0]));
  }
  run_moves(std::move(moves));
  std::swap(buffer_, shorter);
  in_use_.push_back(std::move(shorter.key));
  in_use_.push_back(std::move(shorter.value));
}

void DeviceCache::load(const LoadRequest& request) {
  buffer_ = zeroed(kind_.concatenates ? request.lengths[0] : config_.capacity);
  machine_.write(buffer_.key.data(), request.rows.key.bytes);
  machine_.write(buffer_.value.data(), request.rows.value.bytes);
  lengths_ = request.lengths;
}

void DeviceCache::poison(const PoisonRows& poison) {
  std::array<std::byte, 8> element{};
  const ElementType type = cache_type(config_);
  encode_element(type, poison.value, element.data());
  const std::span<const std::byte> bytes = std::span(element).first(element_bytes(type));
  for (std::size_t b = 0; b < poison.first_row.size(); ++b) {
    const auto entry = static_cast<std::int64_t>(b);
    fill_rows(buffer_.key, entry, key_row_bytes_, poison.first_row[b], bytes);
    fill_rows(buffer_.value, entry, value_row_bytes_, poison.first_row[b], bytes);
  }
}

void DeviceCache::fill_rows(DeviceBuffer& rows, std::int64_t entry, std::int64_t row_bytes,
                            std::int64_t first_row, std::span<const std::byte> element) const {
  if (first_row >= buffer_.rows) return;
  std::vector<std::byte> content(index((buffer_.rows - first_row) * row_bytes));
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = element[i % element.size()];
  for (std::int64_t head = 0; head < config_.kv_heads; ++head) {
    const std::int64_t row = (entry * config_.kv_heads + head) * buffer_.rows + first_row;
    machine_.write(rows.data() + row * row_bytes, content);
  }
}

CacheRows DeviceCache::present() const {
  const ElementType type = cache_type(config_);
  const auto tensor = [&](const DeviceBuffer& rows, std::int64_t lanes) {
    Tensor read = Tensor::zeros(
        type, {config_.batch, config_.kv_heads, buffer_.rows, cache_width(config_, lanes)});
    if (rows.data() != nullptr) machine_.read(rows.data(), read.bytes);
    return read;
  };
  return {tensor(buffer_.key, config_.head_size), tensor(buffer_.value, config_.value_head_size)};
}

const std::byte* DeviceCache::address_of(const ElementPlace& place) const {
  const bool key = place.of == ElementPlace::Of::key;
  const DeviceBuffer& rows = key ? buffer_.key : buffer_.value;
  const std::int64_t row_bytes = key ? key_row_bytes_ : value_row_bytes_;
  const auto width = static_cast<std::int64_t>(element_bytes(cache_type(config_)));
  const auto within = [](std::int64_t at, std::int64_t end) { return at >= 0 && at < end; };
  if (!within(place.entry, config_.batch) || !within(place.head, config_.kv_heads) ||
      !within(place.row, buffer_.rows) || !within(place.lane, row_bytes / width)) {
    return nullptr;
  }
  const std::int64_t row = (place.entry * config_.kv_heads + place.head) * buffer_.rows + place.row;
  return rows.data() + row * row_bytes + place.lane * width;
}

}  // namespace kvcheck::kernels::device
