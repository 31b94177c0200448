#include "tests/kernels/cuda/fused_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cuda/device.cuh"

namespace kvcheck::kernels::device {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

enum class Of : std::uint64_t { query, key, value, mask, sink };

/// Uniform in [-1, 1).
double number(const FusedCase& c, Of of, std::uint64_t entry, std::int64_t head, std::int64_t row,
              std::int64_t lane) {
  std::uint64_t hash = mixed(c.seed * 8 + static_cast<std::uint64_t>(of));
  for (const std::uint64_t part :
       {entry, static_cast<std::uint64_t>(head), static_cast<std::uint64_t>(row),
        static_cast<std::uint64_t>(lane)}) {
    hash = mixed(hash ^ part);
  }
  return static_cast<double>(hash >> 11) * 0x1p-52 - 1;
}

std::uint16_t stored(const FusedCase& c, double x) {
  const float f = static_cast<float>(x);
  return c.element == Element::f16 ? f16_from(f).bits : bf16_from(f).bits;
}

double loaded(const FusedCase& c, std::uint16_t bits) {
  return c.element == Element::f16 ? to_float(F16{bits}) : to_float(BF16{bits});
}

double rounded(const FusedCase& c, double x) { return loaded(c, stored(c, x)); }

/// What a code of int8 stands for; per channel it differs between heads and lanes.
float scale_of(const FusedCase& c, Of of, std::int64_t head, std::int64_t lane) {
  return (of == Of::key ? 0.01F : 0.006F) *
         static_cast<float>(c.per_channel ? 1 + (head + lane) % 3 : 1);
}

std::int8_t code_of(const FusedCase& c, Of of, std::uint64_t entry, std::int64_t head,
                    std::int64_t row, std::int64_t lane) {
  return static_cast<std::int8_t>(std::lround(127 * number(c, of, entry, head, row, lane)));
}

/// An element of the cache as a kernel sees it.
double cached(const FusedCase& c, Of of, std::uint64_t entry, std::int64_t head,
              std::int64_t position, std::int64_t lane) {
  if (!c.int8_cache) return rounded(c, number(c, of, entry, head, position, lane));
  return double{scale_of(c, of, head, lane)} * code_of(c, of, entry, head, position, lane);
}

std::int64_t mask_columns(const FusedCase& c) {
  if (c.mask_columns > 0) return c.mask_columns;
  std::int64_t most = 1;
  for (const FusedEntry& e : c.entries) most = std::max(most, e.first_position + e.live);
  return most;
}

/// The bias of one key; -infinity hides it.
double mask_bias(const FusedCase& c, std::size_t entry, std::int64_t head, std::int64_t query,
                 std::int64_t position) {
  if (c.mask == MaskKind::none) return 0;
  if (position >= mask_columns(c)) return -kInfinity;
  const auto of_entry = c.mask_of_entries ? static_cast<std::uint64_t>(entry) : 0;
  const double drawn = number(c, Of::mask, of_entry, c.mask_of_heads ? head : 0, query, position);
  // Some positions are hidden from everyone, others from some.
  if (position % 7 == 3 || drawn < -0.6) return -kInfinity;
  return c.mask == MaskKind::boolean ? 0 : rounded(c, 2 * drawn);
}

bool sees(const FusedCase& c, std::size_t entry, std::int64_t head, std::int64_t query,
          std::int64_t position) {
  const FusedEntry& e = c.entries[entry];
  const std::int64_t own = e.origin + query;
  if (position < e.first_position || position >= e.first_position + e.live) return false;
  if (c.causal && position > own) return false;
  if (c.window >= 0 && own - position >= c.window) return false;
  if (c.right >= 0 && position - own > c.right) return false;
  return mask_bias(c, entry, head, query, position) != -kInfinity;
}

bool seen_by_any(const FusedCase& c, std::size_t entry, std::int64_t position) {
  for (std::int64_t query = 0; query < c.entries[entry].queries; ++query) {
    for (std::int64_t head = 0; head < c.query_heads; ++head) {
      if (sees(c, entry, head, query, position)) return true;
    }
  }
  return false;
}

/// Memory of the device, filled by the host.
template <class T>
T* on_device(simt::GlobalMemory& memory, const std::vector<T>& content, simt::Use use,
             const char* name) {
  const std::size_t bytes = content.size() * sizeof(T);
  std::byte* const at = memory.allocate(std::max<std::size_t>(bytes, 16), use, name);
  if (bytes > 0) std::memcpy(at, content.data(), bytes);
  return reinterpret_cast<T*>(at);
}

/// Rows of all heads of one entry; `dead` takes the place of what is dead or hidden.
template <class T, class Make>
std::vector<T> rows_of(const FusedCase& c, std::size_t entry, std::int64_t lanes, T dead,
                       Make make) {
  const FusedEntry& e = c.entries[entry];
  std::vector<T> rows;
  for (std::int64_t head = 0; head < c.kv_heads; ++head) {
    for (std::int64_t row = 0; row < e.capacity; ++row) {
      const std::int64_t position = e.first_position + row;
      const bool real = row < e.live && (!c.poisons_hidden || seen_by_any(c, entry, position));
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        rows.push_back(real ? make(head, position, lane) : dead);
      }
    }
  }
  return rows;
}

const void* cache_of(const FusedCase& c, std::size_t entry, Of of, std::int64_t lanes,
                     simt::GlobalMemory& memory) {
  const char* const name = of == Of::key ? "keys" : "values";
  if (c.int8_cache) {
    const auto code = [&](std::int64_t head, std::int64_t position, std::int64_t lane) {
      return code_of(c, of, entry, head, position, lane);
    };
    return on_device(memory, rows_of(c, entry, lanes, std::int8_t{-128}, code), simt::Use::input,
                     name);
  }
  const auto element = [&](std::int64_t head, std::int64_t position, std::int64_t lane) {
    const bool infinite = of == Of::value && position == c.infinite_position;
    return stored(c, infinite ? kInfinity : number(c, of, entry, head, position, lane));
  };
  const std::uint16_t dead = stored(c, std::nan(""));
  return on_device(memory, rows_of(c, entry, lanes, dead, element), simt::Use::input, name);
}

const float* scales_of(const FusedCase& c, Of of, std::int64_t lanes, simt::GlobalMemory& memory) {
  std::vector<float> scales;
  for (std::int64_t head = 0; head < (c.per_channel ? c.kv_heads : 1); ++head) {
    for (std::int64_t lane = 0; lane < (c.per_channel ? lanes : 1); ++lane) {
      scales.push_back(scale_of(c, of, head, lane));
    }
  }
  return on_device(memory, scales, simt::Use::input, "scales");
}

/// Splits of all entries, and memory for their partial results.
void set_splits(const FusedCase& c, simt::GlobalMemory& memory, AttentionParameters& p) {
  p.splits = 1;
  if (c.split_positions == 0) return;
  std::int64_t end = 0, begin = c.entries[0].first_position;
  for (const FusedEntry& e : c.entries) {
    begin = std::min(begin, e.first_position);
    end = std::max(end, e.first_position + e.live);
  }
  p.split_positions = c.split_positions;
  p.first_split = begin / c.split_positions;
  p.splits = std::max<std::int64_t>(1, (end - 1) / c.split_positions - p.first_split + 1);
  const auto rows =
      c.entries.size() * static_cast<std::size_t>(c.queries() * c.query_heads * p.splits);
  const auto scratch = [&](std::size_t floats, const char* name) {
    return reinterpret_cast<float*>(memory.allocate(floats * 4, simt::Use::scratch, name));
  };
  p.partial_maxima = scratch(rows, "partial maxima");
  p.partial_sums = scratch(rows, "partial sums");
  p.partial_outputs =
      scratch(rows * static_cast<std::size_t>(c.value_head_size), "partial outputs");
}

double query_number(const FusedCase& c, std::size_t entry, std::int64_t head, std::int64_t query,
                    std::int64_t lane) {
  // By position, so that a step cut in two asks the same.
  const std::int64_t position = c.entries[entry].origin + query;
  return rounded(c, c.largest_query * number(c, Of::query, entry, head, position, lane));
}

std::vector<float> sinks_of(const FusedCase& c) {
  std::vector<float> sinks;
  for (std::int64_t head = 0; head < c.query_heads; ++head) {
    sinks.push_back(static_cast<float>(2 * number(c, Of::sink, 0, head, 0, 0)));
  }
  return sinks;
}

void set_mask(const FusedCase& c, simt::GlobalMemory& memory, AttentionParameters& p) {
  const std::int64_t columns = mask_columns(c);
  const std::int64_t heads = c.mask_of_heads ? c.query_heads : 1;
  const std::int64_t entries = c.mask_of_entries ? static_cast<std::int64_t>(c.entries.size()) : 1;
  std::vector<std::uint8_t> booleans;
  std::vector<std::uint16_t> numbers;
  for (std::int64_t entry = 0; entry < entries; ++entry) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t query = 0; query < c.queries(); ++query) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const double bias = mask_bias(c, static_cast<std::size_t>(entry), head, query, column);
          booleans.push_back(bias != -kInfinity);
          numbers.push_back(stored(c, bias));
        }
      }
    }
  }
  p.mask = c.mask == MaskKind::boolean
               ? static_cast<const void*>(on_device(memory, booleans, simt::Use::input, "mask"))
               : on_device(memory, numbers, simt::Use::input, "mask");
  p.mask_query_stride = columns;
  p.mask_head_stride = c.mask_of_heads ? columns * c.queries() : 0;
  p.mask_entry_stride = c.mask_of_entries ? columns * c.queries() * heads : 0;
  p.mask_columns = columns;
}

AttentionParameters parameters_of(const FusedCase& c, simt::GlobalMemory& memory) {
  std::vector<EntryView> views;
  std::vector<std::uint16_t> queries;
  for (std::size_t i = 0; i < c.entries.size(); ++i) {
    const FusedEntry& e = c.entries[i];
    EntryView view{};
    const std::int64_t bytes = c.int8_cache ? 1 : 2;
    view.key = cache_of(c, i, Of::key, c.head_size, memory);
    view.value = cache_of(c, i, Of::value, c.value_head_size, memory);
    view.key_head_stride = e.capacity * c.head_size * bytes;
    view.value_head_stride = e.capacity * c.value_head_size * bytes;
    view.first_position = e.first_position;
    view.live = e.live;
    view.origin = e.origin;
    view.queries = e.queries;
    views.push_back(view);
    for (std::int64_t query = 0; query < c.queries(); ++query) {
      for (std::int64_t head = 0; head < c.query_heads; ++head) {
        for (std::int64_t lane = 0; lane < c.head_size; ++lane) {
          // Padding is NaN: nothing may read it.
          const double x = query < e.queries ? query_number(c, i, head, query, lane) : std::nan("");
          queries.push_back(stored(c, x));
        }
      }
    }
  }
  AttentionParameters p{};
  p.entries = on_device(memory, views, simt::Use::input, "entries");
  p.query = on_device(memory, queries, simt::Use::input, "queries");
  if (c.sinks) p.sinks = on_device(memory, sinks_of(c), simt::Use::input, "sinks");
  if (c.mask != MaskKind::none) set_mask(c, memory, p);
  p.window = c.window;
  p.right = c.right;
  p.queries = c.queries();
  p.batch = static_cast<std::int32_t>(c.entries.size());
  p.query_heads = c.query_heads;
  p.kv_heads = c.kv_heads;
  p.head_size = c.head_size;
  p.value_head_size = c.value_head_size;
  p.mask_kind = c.mask;
  p.causal = c.causal;
  p.scale = c.scale;
  p.softcap = c.softcap;
  if (c.int8_cache) {
    p.per_channel = c.per_channel;
    p.key_scale = scales_of(c, Of::key, c.head_size, memory);
    p.value_scale = scales_of(c, Of::value, c.value_head_size, memory);
  }
  set_splits(c, memory, p);
  return p;
}

/// One query of one head in double. \param to value_head_size outputs and tolerances
void answer(const FusedCase& c, std::size_t entry, std::int64_t head, std::int64_t query,
            double* output, double* tolerance) {
  const FusedEntry& e = c.entries[entry];
  const std::int64_t kv_head = head / (c.query_heads / c.kv_heads);
  std::vector<std::int64_t> positions;
  std::vector<double> logits;
  double top = c.sinks ? sinks_of(c)[static_cast<std::size_t>(head)] : -kInfinity;
  const double sink = top;
  for (std::int64_t position = e.first_position; position < e.first_position + e.live; ++position) {
    if (!sees(c, entry, head, query, position)) continue;
    double dot = 0;
    for (std::int64_t lane = 0; lane < c.head_size; ++lane) {
      dot += query_number(c, entry, head, query, lane) *
             cached(c, Of::key, entry, kv_head, position, lane);
    }
    double logit = dot * c.scale;
    if (c.softcap != 0) logit = c.softcap * std::tanh(logit / c.softcap);
    logits.push_back(logit + mask_bias(c, entry, head, query, position));
    positions.push_back(position);
    top = std::max(top, logits.back());
  }
  double sum = sink == -kInfinity ? 0 : std::exp(sink - top);
  for (const double logit : logits) sum += std::exp(logit - top);
  // A weight and an output are rounded to the element type once each. Everything else is in f32:
  // sums of up to 256 products of up to 1, truncated, scaled by at most 1/4, stay within 2^-12 of a
  // logit, and so do the other roundings.
  const double roundoff = c.element == Element::f16 ? 0x1p-11 : 0x1p-8;
  // On CUDA cores weights are not rounded, and sums are to nearest: 2^-16 of a logit.
  const bool cores = c.kernel == &KernelTable::decode;
  const double relative = cores ? roundoff + 0x1p-14 : 2 * roundoff + 0x1p-11;
  for (std::int64_t lane = 0; lane < c.value_head_size; ++lane) {
    double value = 0;
    double size = 0;
    for (std::size_t j = 0; j < positions.size(); ++j) {
      const double v = positions[j] == c.infinite_position
                           ? kInfinity
                           : cached(c, Of::value, entry, kv_head, positions[j], lane);
      value += std::exp(logits[j] - top) / sum * v;
      size += std::exp(logits[j] - top) / sum * std::abs(v);
    }
    output[lane] = value;
    tolerance[lane] = positions.empty() ? 0 : relative * size + 0x1p-24;
  }
}

}  // namespace

std::int64_t FusedCase::queries() const {
  std::int64_t most = 0;
  for (const FusedEntry& e : entries) most = std::max(most, e.queries);
  return most;
}

std::int64_t FusedCase::output_row(std::size_t entry, std::int64_t query, std::int64_t head) const {
  return (static_cast<std::int64_t>(entry) * queries() + query) * query_heads + head;
}

FusedRun run_fused(const FusedCase& c, const simt::Schedule& schedule, const KernelTable& table) {
  simt::GlobalMemory memory;
  simt::SimtQueue queue(memory, schedule, simt::Checks{});
  AttentionParameters p = parameters_of(c, memory);
  const std::size_t elements =
      c.entries.size() * static_cast<std::size_t>(c.queries() * c.query_heads * c.value_head_size);
  const std::vector<std::uint16_t> untouched(elements, kUntouched);
  p.output = on_device(memory, untouched, simt::Use::output, "output");
  memory.begin_step();
  (table.*c.kernel)(queue, {c.element, c.int8_cache, c.threads}, p);
  FusedRun run;
  run.defects = queue.take_defects();
  run.counters = queue.counters();
  run.bits.resize(elements);
  std::memcpy(run.bits.data(), p.output, elements * 2);
  for (const std::uint16_t bits : run.bits) {
    run.output.push_back(static_cast<float>(loaded(c, bits)));
  }
  return run;
}

FusedTruth fused_truth(const FusedCase& c) {
  const std::size_t rows = c.entries.size() * static_cast<std::size_t>(c.queries() * c.query_heads);
  FusedTruth truth;
  truth.output.resize(rows * static_cast<std::size_t>(c.value_head_size));
  truth.tolerance = truth.output;
  for (std::size_t entry = 0; entry < c.entries.size(); ++entry) {
    for (std::int64_t query = 0; query < c.entries[entry].queries; ++query) {
      for (std::int64_t head = 0; head < c.query_heads; ++head) {
        const std::int64_t at = c.output_row(entry, query, head) * c.value_head_size;
        answer(c, entry, head, query, truth.output.data() + at, truth.tolerance.data() + at);
      }
    }
  }
  return truth;
}

std::string difference(const FusedCase& c, const FusedRun& run) {
  const FusedTruth truth = fused_truth(c);
  for (std::size_t entry = 0; entry < c.entries.size(); ++entry) {
    for (std::int64_t row = 0; row < c.queries() * c.query_heads; ++row) {
      const std::int64_t query = row / c.query_heads;
      const std::int64_t head = row % c.query_heads;
      for (std::int64_t lane = 0; lane < c.value_head_size; ++lane) {
        const auto at =
            static_cast<std::size_t>(c.output_row(entry, query, head) * c.value_head_size + lane);
        const std::string where = "entry " + std::to_string(entry) + " query " +
                                  std::to_string(query) + " head " + std::to_string(head) +
                                  " lane " + std::to_string(lane) + ": ";
        if (query >= c.entries[entry].queries) {
          if (run.bits[at] != kUntouched) return where + "there is no such query";
        } else if (std::isinf(truth.output[at])) {
          if (std::isfinite(run.output[at])) return where + "a value that is infinite is missing";
        } else if (!(std::abs(run.output[at] - truth.output[at]) <= truth.tolerance[at])) {
          return where + std::to_string(run.output[at]) + " in place of " +
                 std::to_string(truth.output[at]) + " +- " + std::to_string(truth.tolerance[at]);
        }
      }
    }
  }
  return "";
}

}  // namespace kvcheck::kernels::device
