// Planning of a step: units, chunks, threads; the arithmetic is in the tile kernels.
#include "kernels/cpu/flash/flash_attention.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include <tbb/enumerable_thread_specific.h>

#include "kernels/cpu/flash/unit_mistakes.h"
#include "kernels/cpu/flash/workspace.h"
#include "kernels/cpu/parallel.h"

namespace kvcheck::kernels::flash {
namespace {

/// Query rows of one unit: enough that keys and values are widened and fetched rarely, few enough
/// that rows, logits and outputs stay in the second cache.
constexpr std::int64_t kUnitRows = 384;
/// Products of a query row and a position below which a step stays on the caller's thread: some
/// 20 us of work, about what it costs to wake another.
constexpr std::int64_t kParallelProducts = std::int64_t{1} << 14;

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

std::int64_t bytes_of(Storage type) { return type == Storage::f32 ? 4 : 2; }

void store(const Kernels& kernels, const float* from, std::int64_t lanes, Storage type,
           std::byte* to) {
  switch (type) {
    case Storage::f16:
      return kernels.store_f16(from, lanes, to);
    case Storage::bf16:
      return kernels.store_bf16(from, lanes, to);
    default:
      std::memcpy(to, from, static_cast<std::size_t>(lanes) * sizeof(float));
  }
}

/// The mask as the rows of one unit see it.
class UnitMask final : public TileBias {
 public:
  UnitMask(const MaskSource& mask, std::int64_t entry, std::int64_t first_query,
           std::int64_t first_head, std::int64_t group)
      : mask_(mask),
        entry_(entry),
        first_query_(first_query),
        first_head_(first_head),
        group_(group) {}

  void fill(std::int64_t row, std::int64_t first, std::int64_t count, float* bias) const override {
    mask_.fill(entry_, first_query_ + row / group_, first_head_ + row % group_, first, count, bias);
  }

 private:
  const MaskSource& mask_;
  std::int64_t entry_, first_query_, first_head_, group_;
};

/// Products of the rows of one unit, each given its query, head and position.
class UnitProducts final : public TileSink {
 public:
  UnitProducts(const FlashAttention::ProductSink& to, std::int64_t entry, std::int64_t first_query,
               std::int64_t first_head, std::int64_t group, std::int64_t rows)
      : to_(to),
        entry_(entry),
        first_query_(first_query),
        first_head_(first_head),
        group_(group),
        rows_(rows) {}

  void take(std::int64_t first, const float* dots, const std::uint64_t* visible) override {
    for (std::int64_t row = 0; row < rows_; ++row) {
      if (visible[row] == 0) continue;
      to_(entry_, first_query_ + row / group_, first_head_ + row % group_, first,
          dots + row * kTile, visible[row]);
    }
  }

 private:
  const FlashAttention::ProductSink& to_;
  std::int64_t entry_, first_query_, first_head_, group_, rows_;
};

UnitShape unit_shape(const FlashShape& shape, std::int64_t rows) {
  return {round_up(rows, 2), round_up(shape.head_size, 8), round_up(shape.value_head_size, 16)};
}

void clear(const Partial& partial, const UnitShape& shape) {
  std::fill_n(partial.maximum, shape.rows, -std::numeric_limits<float>::infinity());
  std::fill_n(partial.sums, shape.rows * kSumLanes, 0.0f);
  std::fill_n(partial.output, shape.rows * shape.output_lanes, 0.0f);
}

}  // namespace

struct FlashAttention::Workspaces {
  Workspaces(const UnitShape& unit, Content first) : shape(unit), content(first) {}
  /// That of the caller's thread, where no other one works.
  Workspace& alone() {
    if (!own) own.emplace(shape, content);
    return *own;
  }
  /// Before several threads work: one for each.
  void share() {
    if (!shared) shared.emplace([unit = shape, first = content] { return Workspace(unit, first); });
  }
  Workspace& local() { return shared->local(); }

  UnitShape shape;
  Content content;
  std::optional<tbb::enumerable_thread_specific<Workspace>> shared;
  std::optional<Workspace> own;
};

FlashAttention::FlashAttention(const FlashShape& shape, const Kernels& kernels, int threads,
                               bool shares_groups, Fault fault)
    : shape_(shape),
      kernels_(&kernels),
      threads_(threads),
      fault_(fault),
      heads_per_unit_(shares_groups ? shape.group() : 1),
      queries_per_unit_(std::max<std::int64_t>(1, kUnitRows / heads_per_unit_)) {}

FlashAttention::FlashAttention(FlashAttention&&) noexcept = default;
FlashAttention::~FlashAttention() = default;

void FlashAttention::plan(const FlashStep& step) {
  units_.clear();
  const std::int64_t blocks = (step.max_queries + queries_per_unit_ - 1) / queries_per_unit_;
  units_.reserve(
      static_cast<std::size_t>(shape_.batch * blocks * (shape_.query_heads / heads_per_unit_)));
  products_ = 0;
  for (std::int64_t entry = 0; entry < shape_.batch; ++entry) {
    const std::int64_t queries = step.queries[static_cast<std::size_t>(entry)];
    const EntryRows& rows = step.entries[static_cast<std::size_t>(entry)];
    for (std::int64_t first = 0; first < queries; first += queries_per_unit_) {
      Unit unit{entry, 0, first, std::min(queries_per_unit_, queries - first), 0, 0};
      std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = 0;
      for (std::int64_t i = first; i < first + unit.count; ++i) {
        const KeyRange& range = step.ranges[static_cast<std::size_t>(entry * step.max_queries + i)];
        const std::int64_t from = std::max(range.begin, rows.first_position);
        const std::int64_t until = std::min(range.end, rows.first_position + rows.live);
        if (from >= until) continue;
        begin = std::min(begin, from);
        end = std::max(end, until);
        products_ += (until - from) * shape_.query_heads;
      }
      if (begin < end) {
        unit.chunk_begin = begin / kChunk;
        unit.chunk_end =
            distort_chunk_end(fault_, end, unit.chunk_begin, (end + kChunk - 1) / kChunk);
      }
      for (unit.head = 0; unit.head < shape_.query_heads; unit.head += heads_per_unit_) {
        units_.push_back(unit);
      }
    }
  }
}

/// Workspaces that the largest unit of the step fits into.
UnitShape FlashAttention::reserve(const FlashStep& step) {
  const UnitShape shape =
      unit_shape(shape_, std::min(step.max_queries, queries_per_unit_) * heads_per_unit_);
  if (workspaces_ == nullptr || workspaces_->shape.rows < shape.rows) {
    // What a planted fault reads too early is the same in each run.
    const Content content = fault_ == Fault::none ? Content::any : Content::zero;
    workspaces_ = nullptr;  // Its memory serves the next one.
    workspaces_ = std::make_unique<Workspaces>(shape, content);
  }
  return workspaces_->shape;
}

void FlashAttention::load_unit(const FlashStep& step, const Unit& unit, Workspace& work) const {
  const std::int64_t group = heads_per_unit_;
  const UnitShape lanes = unit_shape(shape_, rows_of(unit));
  const auto load = kernels_->load_query[static_cast<int>(step.query_type)];
  const float* const scales =
      step.key_scales == nullptr ? nullptr : step.key_scales + kv_head(unit) * shape_.head_size;
  // Rows of the next query lie too far for the processor to guess.
  const std::int64_t bytes = shape_.head_size * bytes_of(step.query_type);
  const std::int64_t ahead = unit.count > 1 ? step.query.token_stride : 0;
  float* to = work.query;
  std::size_t row = 0;
  for (std::int64_t query = unit.first; query < unit.first + unit.count; ++query) {
    const KeyRange& range =
        step.ranges[static_cast<std::size_t>(unit.entry * step.max_queries + query)];
    for (std::int64_t head = unit.head; head < unit.head + group; ++head, ++row) {
      const std::byte* const from = step.query.row(unit.entry, query, head);
      for (std::int64_t at = 0; ahead > 0 && at < bytes; at += 64)
        __builtin_prefetch(from + ahead + at);
      load(from, scales, step.scale, shape_.head_size, lanes.key_lanes, to);
      to += lanes.key_lanes;
      work.begin[row] = range.begin;
      work.end[row] = range.end;
    }
  }
  if (rows_of(unit) < lanes.rows) std::fill_n(to, lanes.key_lanes, 0.0f);
}

void FlashAttention::run_chunk(const FlashStep& step, const Unit& unit, std::int64_t chunk,
                               Workspace& work, const Partial& to, TileSink* sink) const {
  const EntryRows& rows = step.entries[static_cast<std::size_t>(unit.entry)];
  std::optional<UnitMask> mask;
  if (step.mask != nullptr) {
    mask.emplace(*step.mask, unit.entry, unit.first, unit.head, heads_per_unit_);
  }
  ChunkTask task;
  task.stored = {rows.key.row(kv_head(unit), 0),
                 rows.value.row(kv_head(unit), 0),
                 rows.key.row_stride,
                 rows.value.row_stride,
                 rows.first_position,
                 rows.first_position + rows.live};
  task.head_size = shape_.head_size;
  task.value_head_size = shape_.value_head_size;
  task.rows = rows_of(unit);
  task.query = work.query;
  task.query_stride = round_up(shape_.head_size, 8);
  task.begin = work.begin.data();
  task.end = work.end.data();
  task.bias = mask ? &*mask : nullptr;
  task.scale = step.scale;
  task.softcap = step.softcap;
  task.chunk_begin = chunk * kChunk;
  task.chunk_end = (chunk + 1) * kChunk;
  task.output_lanes = round_up(shape_.value_head_size, 16);
  task.partial = to;
  task.sink = sink;
  kernels_->chunk_pass[static_cast<int>(shape_.storage)](task, work.scratch);
}

void FlashAttention::run_unit(const FlashStep& step, const Unit& unit, Workspace& work) const {
  const UnitShape shape = unit_shape(shape_, rows_of(unit));
  load_unit(step, unit, work);
  const bool clears = fault_ != Fault::empty_unit_not_cleared;
  if (unit.chunk_begin == unit.chunk_end && clears) clear(work.merged, shape);
  for (std::int64_t chunk = unit.chunk_begin; chunk < unit.chunk_end; ++chunk) {
    const bool first = chunk == unit.chunk_begin;
    run_chunk(step, unit, chunk, work, first ? work.merged : work.chunk);
    if (first) continue;
    kernels_->merge_rows(work.merged, work.chunk, rows_of(unit), shape.output_lanes);
  }
  finish(step, unit, work.merged);
}

/// Chunks of one unit on different threads; their results are merged in order of position, as
/// run_unit merges them.
void FlashAttention::run_split(const FlashStep& step, const UnitShape& largest) {
  first_partial_.assign(1, 0);
  for (const Unit& unit : units_) {
    first_partial_.push_back(first_partial_.back() + unit.chunk_end - unit.chunk_begin);
  }
  const std::int64_t floats = round_up(largest.partial_floats(), 16);
  const auto bytes = static_cast<std::size_t>(first_partial_.back() * floats) * sizeof(float);
  if (partials_.size() < bytes) partials_ = Arena(bytes);
  auto* const memory = reinterpret_cast<float*>(partials_.data());
  run_tasks(awake_, first_partial_.back(), [&](std::int64_t task) {
    const auto after = std::upper_bound(first_partial_.begin(), first_partial_.end(), task);
    const auto index = static_cast<std::size_t>(after - first_partial_.begin() - 1);
    const Unit& unit = units_[index];
    Workspace& work = workspaces_->local();
    load_unit(step, unit, work);
    run_chunk(step, unit, unit.chunk_begin + task - first_partial_[index], work,
              partial_at(memory + task * floats, unit_shape(shape_, rows_of(unit))));
  });
  const auto units = static_cast<std::int64_t>(units_.size());
  run_tasks(awake_, distort_units(fault_, units), [&](std::int64_t task) {
    const auto index = static_cast<std::size_t>(task);
    const Unit& unit = units_[index];
    const UnitShape shape = unit_shape(shape_, rows_of(unit));
    const Partial& merged = workspaces_->local().merged;
    if (fault_ != Fault::threads_share_accumulator) clear(merged, shape);
    const PartRange parts =
        distort_parts(fault_, {first_partial_[index], first_partial_[index + 1]});
    for (std::int64_t part = parts.begin; part != parts.end; part += parts.step) {
      kernels_->merge_rows(merged, partial_at(memory + part * floats, shape), rows_of(unit),
                           shape.output_lanes);
    }
    finish(fault_ == Fault::split_ignores_sinks ? without_sinks(step) : step, unit, merged);
  });
}

void FlashAttention::finish(const FlashStep& step, const Unit& unit, const Partial& merged) const {
  const std::int64_t lanes = round_up(shape_.value_head_size, 16);
  const float* const scales = step.value_scales == nullptr
                                  ? nullptr
                                  : step.value_scales + kv_head(unit) * shape_.value_head_size;
  const bool in_place = step.output_type == Storage::f32 && shape_.value_head_size == lanes;
  std::int64_t row = 0;
  for (std::int64_t query = unit.first; query < unit.first + unit.count; ++query) {
    const std::int64_t query_row = unit.entry * step.max_queries + query;
    for (std::int64_t head = unit.head; head < unit.head + heads_per_unit_; ++head, ++row) {
      const float* const sink = step.sinks == nullptr ? nullptr : step.sinks + head;
      const std::int64_t at = query_row * shape_.query_heads + head;
      std::byte* const to = step.output + at * shape_.value_head_size * bytes_of(step.output_type);
      float* const output = in_place ? reinterpret_cast<float*>(to) : merged.output + row * lanes;
      const float total = kernels_->finish_row(merged, row, sink, lanes, output);
      if (scales != nullptr) {
        for (std::int64_t lane = 0; lane < shape_.value_head_size; ++lane)
          output[lane] *= scales[lane];
      }
      if (!in_place) store(*kernels_, output, shape_.value_head_size, step.output_type, to);
      if (step.maxima != nullptr) step.maxima[at] = merged.maximum[row];
      if (step.totals != nullptr) step.totals[at] = total;
    }
  }
}

void FlashAttention::run(const FlashStep& step) {
  if (step.max_queries == 0) return;
  plan(step);
  const UnitShape shape = reserve(step);
  const std::int64_t units = static_cast<std::int64_t>(units_.size());
  const std::int64_t threads = thread_count(threads_);
  const bool pays = products_ >= kParallelProducts;
  awake_ = pays ? threads_ : 1;
  // Told how many threads to take, a step is cut for them though it may not pay to wake them: what
  // is cut in another way when it is large can then be tested while it is small.
  if (threads > 1 && (threads_ > 1 || pays)) {
    workspaces_->share();
    if (units < 4 * threads) return run_split(step, shape);
    run_tasks(awake_, distort_units(fault_, units), [&](std::int64_t unit) {
      run_unit(step, units_[static_cast<std::size_t>(unit)], workspaces_->local());
    });
    return;
  }
  Workspace& work = workspaces_->alone();
  for (const Unit& unit : units_) run_unit(step, unit, work);
}

void FlashAttention::products(const FlashStep& step, const ProductSink& to) {
  if (step.max_queries == 0) return;
  plan(step);
  reserve(step);
  Workspace& work = workspaces_->alone();
  for (const Unit& unit : units_) {
    UnitProducts sink(to, unit.entry, unit.first, unit.head, heads_per_unit_, rows_of(unit));
    load_unit(step, unit, work);
    for (std::int64_t chunk = unit.chunk_begin; chunk < unit.chunk_end; ++chunk) {
      run_chunk(step, unit, chunk, work, work.chunk, &sink);
    }
  }
}

std::int64_t FlashAttention::scratch_bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(partials_.size());
  if (workspaces_ != nullptr) {
    if (workspaces_->shared) {
      for (const Workspace& work : *workspaces_->shared) bytes += work.bytes();
    }
    if (workspaces_->own) bytes += workspaces_->own->bytes();
  }
  return bytes;
}

}  // namespace kvcheck::kernels::flash
