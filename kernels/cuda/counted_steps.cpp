// The steps: which shapes, and the memory of each.
#include "kernels/cuda/counted_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/cuda/device_attention.h"

namespace kvcheck::kernels::device {
namespace {

constexpr std::int64_t kElement = 2;  // Bytes of an f16.
constexpr std::int64_t kOneSplit = std::int64_t{1} << 20;

std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

/// The last `queries` of `live` tokens ask.
struct EntryShape {
  std::int64_t live, queries;
};

struct CountedShape {
  const char* name;
  AttentionKernel kernel;
  std::int32_t query_heads, kv_heads, head_size;
  std::vector<EntryShape> entries;
  std::int64_t window = -1;
  std::int64_t split_positions = kOneSplit;  ///< Decode kernels.
  std::uint32_t threads = 128;
};

/// Rows take so much more of the traffic than what describes them that a field which one compiler
/// loads again and the other keeps does not weigh. That decides the sizes.
std::vector<CountedShape> attention_shapes() {
  using enum AttentionKernel;
  return {
      {"decode, one split", decode, 8, 2, 64, {{1024, 1}}},
      {"decode, splits, ragged", decode, 8, 2, 64, {{2048, 1}, {700, 1}}, -1, 512},
      {"decode, window, 128 lanes", decode, 4, 2, 128, {{1200, 1}}, 500, 256},
      {"decode, 256 lanes", decode, 2, 1, 256, {{512, 1}}},
      {"decode_matrix, splits, ragged", decode_matrix, 16, 2, 64, {{2048, 1}, {700, 1}}, -1, 512},
      {"decode_matrix, window, drafts", decode_matrix, 8, 2, 128, {{1200, 2}}, 500},
      {"prefill, ragged", prefill, 4, 2, 64, {{192, 192}, {160, 64}}},
      {"prefill, window, 128 lanes", prefill, 2, 1, 128, {{256, 128}}, 100},
      {"prefill, 256 lanes", prefill, 2, 1, 256, {{128, 64}}},
      {"prefill, narrow blocks", prefill, 2, 2, 64, {{160, 32}}, -1, kOneSplit, 64},
      {"unfused, ragged", unfused, 4, 2, 64, {{256, 3}, {100, 1}}},
      {"unfused, window", unfused, 2, 1, 128, {{300, 2}}, 128},
  };
}

/// Numbers of f16 in (-1, 1), by a rule of their own, so that every run has the same.
DeviceBuffer numbers(Machine& machine, std::int64_t count, Use use, const char* name) {
  std::vector<std::uint16_t> bits(index(count));
  std::uint32_t state = 12345;
  for (std::uint16_t& each : bits) {
    state = state * 1664525U + 1013904223U;
    // A sign, an exponent of up to that of 0.5, a fraction.
    each = static_cast<std::uint16_t>((state >> 16 & 0x83ff) | (10 + (state >> 26) % 5) << 10);
  }
  DeviceBuffer buffer(machine, count * kElement, use, name);
  if (buffer.data() != nullptr) machine.write(buffer.data(), std::as_bytes(std::span(bits)));
  return buffer;
}

/// What a launch of attention works on.
struct AttentionMemory {
  DeviceBuffer key, value, query, output, entries, scores, outputs, maxima, sums;
  AttentionParameters parameters{};
};

void add_splits(Machine& machine, const CountedShape& shape, std::span<const EntryView> views,
                std::int64_t rows, AttentionMemory& memory) {
  AttentionParameters& p = memory.parameters;
  SessionConfig config;
  config.window_size = shape.window;
  const Splits splits = splits_of(config, views, shape.split_positions);
  p.split_positions = splits.positions;
  p.first_split = splits.first;
  p.splits = splits.count;
  if (p.splits == 1) return;
  const std::int64_t partial = rows * p.splits * std::int64_t{sizeof(float)};
  memory.outputs =
      DeviceBuffer(machine, partial * shape.head_size, Use::scratch, "partial outputs");
  memory.maxima = DeviceBuffer(machine, partial, Use::scratch, "partial maxima");
  memory.sums = DeviceBuffer(machine, partial, Use::scratch, "partial sums");
  p.partial_outputs = memory.outputs.as<float>();
  p.partial_maxima = memory.maxima.as<float>();
  p.partial_sums = memory.sums.as<float>();
}

/// Entries one after the other, [kv_heads, most live rows, head_size] each.
std::vector<EntryView> views_of(const CountedShape& shape, std::int64_t rows,
                                const AttentionMemory& memory) {
  const std::int64_t head_bytes = rows * shape.head_size * kElement;
  std::vector<EntryView> views;
  for (const EntryShape& entry : shape.entries) {
    const std::int64_t at = std::ssize(views) * shape.kv_heads * head_bytes;
    EntryView view{};
    view.key = memory.key.data() + at;
    view.value = memory.value.data() + at;
    view.key_head_stride = view.value_head_stride = head_bytes;
    view.live = entry.live;
    view.origin = entry.live - entry.queries;
    view.queries = entry.queries;
    views.push_back(view);
  }
  return views;
}

std::shared_ptr<AttentionMemory> attention_memory(Machine& machine, const CountedShape& shape) {
  auto memory = std::make_shared<AttentionMemory>();
  AttentionParameters& p = memory->parameters;
  std::int64_t most_live = 0;
  for (const EntryShape& entry : shape.entries) {
    most_live = std::max(most_live, entry.live);
    p.queries = std::max(p.queries, entry.queries);
  }
  p.batch = static_cast<std::int32_t>(shape.entries.size());
  p.query_heads = shape.query_heads;
  p.kv_heads = shape.kv_heads;
  p.head_size = p.value_head_size = shape.head_size;
  p.window = shape.window;
  p.right = -1;
  p.causal = true;
  p.scale = 1 / std::sqrt(static_cast<float>(shape.head_size));
  p.splits = 1;

  const std::int64_t cached = std::int64_t{p.batch} * p.kv_heads * most_live * p.head_size;
  const std::int64_t rows = p.batch * p.queries * p.query_heads;
  memory->key = numbers(machine, cached, Use::input, "keys");
  memory->value = numbers(machine, cached, Use::input, "values");
  memory->query = numbers(machine, rows * p.head_size, Use::input, "queries");
  memory->output = DeviceBuffer(machine, rows * p.head_size * kElement, Use::output, "output");
  const std::vector<EntryView> views = views_of(shape, most_live, *memory);
  memory->entries = uploaded(machine, std::span<const EntryView>(views), "entries");
  p.entries = memory->entries.as<EntryView>();
  p.query = memory->query.data();
  p.output = memory->output.data();
  if (shape.kernel == AttentionKernel::unfused) {
    p.score_columns = most_live;
    memory->scores = DeviceBuffer(machine, rows * most_live * std::int64_t{sizeof(float)},
                                  Use::scratch, "scores");
    p.scores = memory->scores.as<float>();
  } else if (shape.kernel != AttentionKernel::prefill) {
    add_splits(machine, shape, views, rows, *memory);
  }
  return memory;
}

CountedStep attention_step(Machine& machine, const CountedShape& shape) {
  const auto memory = attention_memory(machine, shape);
  const AttentionKernel kernel = shape.kernel;
  const auto entry = kernel == AttentionKernel::unfused         ? &KernelTable::unfused
                     : kernel == AttentionKernel::decode        ? &KernelTable::decode
                     : kernel == AttentionKernel::decode_matrix ? &KernelTable::decode_matrix
                                                                : &KernelTable::prefill;
  const AttentionLaunch how{Element::f16, false, shape.threads};
  CountedStep step;
  step.name = shape.name;
  if (kernel == AttentionKernel::unfused) {
    step.kernels = {"unfused_scores_kernel", "unfused_values_kernel"};
  } else {
    step.kernels = {std::string(to_string(kernel)) + "_kernel"};
    if (memory->parameters.splits > 1) step.kernels.push_back("merge_kernel");
  }
  step.call = [&machine, memory, entry, how](const KernelTable& kernels) {
    (kernels.*entry)(machine.queue(), how, memory->parameters);
  };
  return step;
}

/// New rows of a ragged batch. They are wide: what describes an entry is loaded for each of them.
CountedStep append_step(Machine& machine) {
  struct Memory {
    DeviceBuffer key, value, fresh, entries;
    AppendParameters parameters{};
  };
  constexpr std::int64_t kRows = 24, kHeadSize = 2048;
  constexpr std::int32_t kHeads = 2;
  const std::int64_t tokens[] = {12, 5};
  const auto memory = std::make_shared<Memory>();
  const std::int64_t row_bytes = kHeadSize * kElement;
  const std::int64_t entry_bytes = kHeads * kRows * row_bytes;
  memory->key = DeviceBuffer(machine, 2 * entry_bytes, Use::read_write, "key cache");
  memory->value = DeviceBuffer(machine, 2 * entry_bytes, Use::read_write, "value cache");
  memory->fresh = numbers(machine, 2 * tokens[0] * kHeads * kHeadSize, Use::input, "new rows");
  std::vector<AppendEntry> entries;
  for (const std::int64_t count : tokens) {
    const std::int64_t at = std::ssize(entries) * entry_bytes;
    entries.push_back({memory->key.data() + at, memory->value.data() + at, kRows * row_bytes,
                       kRows * row_bytes, 3, count});
  }
  memory->entries = uploaded(machine, std::span<const AppendEntry>(entries), "appends");
  AppendParameters& p = memory->parameters;
  p.entries = memory->entries.as<AppendEntry>();
  p.key = p.value = memory->fresh.data();
  p.tokens = tokens[0];
  p.batch = 2;
  p.kv_heads = kHeads;
  p.head_size = p.value_head_size = kHeadSize;
  p.element = Element::f16;
  return {"append, ragged", {"append_kernel"}, [&machine, memory](const KernelTable& kernels) {
            kernels.append(machine.queue(), memory->parameters);
          }};
}

/// Rows [from, from + rows) of 64 lanes to the front of the same buffer, or of another one.
CountedStep move_step(Machine& machine, const char* name, bool compaction) {
  struct Memory {
    DeviceBuffer key, value, other, entries;
    MoveParameters parameters{};
  };
  constexpr std::int64_t kRows = 1200, kRowElements = 64, kFrom = 100;
  constexpr std::int32_t kHeads = 2;
  const auto memory = std::make_shared<Memory>();
  const std::int64_t head_bytes = kRows * kRowElements * kElement;
  const std::int64_t all = 2 * kHeads * kRows * kRowElements;
  memory->key = numbers(machine, all, Use::read_write, "key cache");
  memory->value = numbers(machine, all, Use::read_write, "value cache");
  if (!compaction) memory->other = numbers(machine, 2 * all, Use::read_write, "stage");
  std::vector<MoveEntry> entries;
  for (const std::int64_t rows : {std::int64_t{1024}, std::int64_t{600}}) {
    const std::int64_t at = std::ssize(entries) * kHeads * head_bytes;
    std::byte* const key = memory->key.data() + at;
    std::byte* const value = memory->value.data() + at;
    std::byte* const key_to = compaction ? key : memory->other.data() + at;
    std::byte* const value_to = compaction ? value : key_to + all * kElement;
    entries.push_back({key, key_to, value, value_to, head_bytes, head_bytes, head_bytes, head_bytes,
                       kFrom, 0, rows});
  }
  memory->entries = uploaded(machine, std::span<const MoveEntry>(entries), "moves");
  MoveParameters& p = memory->parameters;
  p.entries = memory->entries.as<MoveEntry>();
  p.key_row_bytes = p.value_row_bytes = kRowElements * kElement;
  p.batch = 2;
  p.kv_heads = kHeads;
  return {name, {"move_kernel"}, [&machine, memory](const KernelTable& kernels) {
            kernels.move(machine.queue(), memory->parameters);
          }};
}

CountedStep probe_step(Machine& machine, const char* name, const char* kernel, Probe probe,
                       ProbeLaunch launch) {
  struct Memory {
    DeviceBuffer from, to;
    ProbeParameters parameters{};
  };
  const auto memory = std::make_shared<Memory>();
  memory->from = numbers(machine, kProbeThreads * 4 * 2, Use::input, "words");
  memory->to = DeviceBuffer(machine, kProbeBlocks * kProbeThreads * 4, Use::output, "sums");
  memory->parameters = {memory->from.as<unsigned>(), memory->to.as<unsigned>()};
  return {name, {kernel}, [&machine, memory, probe, launch](const KernelTable&) {
            launch(machine.queue(), probe, memory->parameters);
          }};
}

}  // namespace

std::vector<CountedStep> counted_steps(Machine& machine, ProbeLaunch probe) {
  std::vector<CountedStep> steps;
  for (const CountedShape& shape : attention_shapes()) {
    steps.push_back(attention_step(machine, shape));
  }
  steps.push_back(append_step(machine));
  steps.push_back(move_step(machine, "move, compaction", true));
  steps.push_back(move_step(machine, "move, to another buffer", false));
  using enum Probe;
  steps.push_back(probe_step(machine, "probe of words", "probe_words_kernel", words, probe));
  steps.push_back(probe_step(machine, "probe of packets", "probe_packets_kernel", packets, probe));
  steps.push_back(probe_step(machine, "probe of copies", "probe_copies_kernel", copies, probe));
  steps.push_back(
      probe_step(machine, "probe of matrices", "probe_matrices_kernel", matrices, probe));
  return steps;
}

}  // namespace kvcheck::kernels::device
