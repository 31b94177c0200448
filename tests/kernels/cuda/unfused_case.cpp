// One call of attention of any element type, and what it answers, by plain loops in double.
#include "tests/kernels/cuda/unfused_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/device.cuh"

namespace kvcheck::kernels::device {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kScale = 0.3F;
constexpr std::byte kUntouched{0x5a};

std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

enum class Of : std::uint64_t { query = 1, key, value, mask, sink };

std::uint64_t hash_of(Of of, std::initializer_list<std::int64_t> parts) {
  std::uint64_t hash = static_cast<std::uint64_t>(of) * 0x9e3779b97f4a7c15u;
  for (const std::int64_t part : parts) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 29;
  }
  return hash;
}

/// One of 257 numbers in [-2, 2], which every element type holds.
float number(Of of, std::initializer_list<std::int64_t> parts) {
  return (static_cast<float>(hash_of(of, parts) % 257) - 128.0F) / 64.0F;
}

std::size_t element_bytes(Element element) { return element == Element::f32 ? 4 : 2; }

void put_element(std::vector<std::byte>& to, Element element, float x) {
  if (element == Element::f32) return append_bytes(to, std::vector<float>{x});
  const std::uint16_t bits = element == Element::f16 ? f16_from(x).bits : bf16_from(x).bits;
  append_bytes(to, std::vector<std::uint16_t>{bits});
}

float element_at(const std::byte* from, Element element) {
  float x;
  std::uint16_t bits;
  std::memcpy(&bits, from, 2);
  if (element == Element::f16) return to_float(F16{bits});
  if (element == Element::bf16) return to_float(BF16{bits});
  std::memcpy(&x, from, 4);
  return x;
}

/// Of head `head` and lane `lane`, of an int8 cache; two powers of two times three.
float scale_of(const AttentionCase& one, Of of, std::int64_t head, std::int64_t lane) {
  const float base = of == Of::key ? 0.01171875F : 0.0234375F;
  return one.per_channel ? base * static_cast<float>(1 + (head + lane) % 3) : base;
}

int code_of(Of of, std::int64_t entry, std::int64_t head, std::int64_t position,
            std::int64_t lane) {
  return static_cast<int>(hash_of(of, {entry, head, position, lane}) % 256) - 128;
}

/// What attention reads from the cache.
double stored(const AttentionCase& one, Of of, std::int64_t entry, std::int64_t head,
              std::int64_t position, std::int64_t lane) {
  if (!one.launch.int8_cache) return number(of, {entry, head, position, lane});
  return static_cast<float>(code_of(of, entry, head, position, lane)) *
         scale_of(one, of, head, lane);
}

std::int64_t mask_columns(const AttentionCase& one) {
  if (one.mask_columns > 0) return one.mask_columns;
  std::int64_t most = 1;
  for (const EntryCase& e : one.entries) most = std::max(most, e.first_position + e.live);
  return most;
}

/// The bias of one key; -infinity hides it. Query 1 sees nothing at all.
double bias_of(const AttentionCase& one, std::int64_t entry, std::int64_t head, std::int64_t query,
               std::int64_t position) {
  if (one.mask == MaskKind::none) return 0;
  if (position >= mask_columns(one) || query == 1) return -kInfinity;
  const std::int64_t of_head = one.mask_of_heads ? head : 0;
  if (hash_of(Of::mask, {entry, of_head, query, position}) % 4 == 0) return -kInfinity;
  return one.mask == MaskKind::boolean ? 0 : number(Of::mask, {entry, of_head, position});
}

bool sees(const AttentionCase& one, std::int64_t entry, std::int64_t head, std::int64_t query,
          std::int64_t position) {
  const EntryCase& e = one.entries[index(entry)];
  const std::int64_t own = e.origin + query;
  if (position < e.first_position || position >= e.first_position + e.live) return false;
  if (one.causal && position > own) return false;
  if (one.window >= 0 && own - position >= one.window) return false;
  if (one.right >= 0 && position - own > one.right) return false;
  return bias_of(one, entry, head, query, position) != -kInfinity;
}

bool seen_by_any(const AttentionCase& one, std::int64_t entry, std::int64_t position) {
  for (std::int64_t query = 0; query < one.entries[index(entry)].queries; ++query) {
    for (std::int64_t head = 0; head < one.query_heads; ++head) {
      if (sees(one, entry, head, query, position)) return true;
    }
  }
  return false;
}

std::vector<std::byte> cache_of(const AttentionCase& one, std::int64_t entry, Of of,
                                std::int64_t lanes) {
  const EntryCase& e = one.entries[index(entry)];
  std::vector<std::byte> rows;
  for (std::int64_t head = 0; head < one.kv_heads; ++head) {
    for (std::int64_t row = 0; row < e.rows; ++row) {
      const std::int64_t position = e.first_position + row;
      const bool real = row < e.live && seen_by_any(one, entry, position);
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        if (one.launch.int8_cache) {
          const int code = real ? code_of(of, entry, head, position, lane) : 127;
          rows.push_back(static_cast<std::byte>(code));
        } else {
          put_element(rows, one.launch.element,
                      real ? number(of, {entry, head, position, lane}) : std::nanf(""));
        }
      }
    }
  }
  rows.resize(std::max<std::size_t>(rows.size(), 16));
  return rows;
}

std::vector<float> scales_of(const AttentionCase& one, Of of, std::int64_t lanes) {
  std::vector<float> scales;
  for (std::int64_t i = 0; i < (one.per_channel ? one.kv_heads * lanes : 1); ++i) {
    scales.push_back(scale_of(one, of, i / lanes, i % lanes));
  }
  return scales;
}

void put_mask(const AttentionCase& one, World& world, AttentionParameters& p) {
  const std::int64_t columns = mask_columns(one);
  const std::int64_t heads = one.mask_of_heads ? one.query_heads : 1;
  std::vector<std::byte> mask;
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t query = 0; query < one.queries(); ++query) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const double bias = bias_of(one, entry, head, query, column);
          if (one.mask == MaskKind::boolean) {
            mask.push_back(static_cast<std::byte>(bias != -kInfinity));
          } else {
            put_element(mask, one.launch.element, static_cast<float>(bias));
          }
        }
      }
    }
  }
  p.mask = world.put(mask, simt::Use::input, "mask");
  p.mask_kind = one.mask;
  p.mask_columns = columns;
  p.mask_query_stride = columns;
  p.mask_head_stride = one.mask_of_heads ? columns * one.queries() : 0;
  p.mask_entry_stride = columns * one.queries() * heads;
}

void put_rows(const AttentionCase& one, World& world, AttentionParameters& p) {
  const auto bytes =
      static_cast<std::int64_t>(one.launch.int8_cache ? 1 : element_bytes(one.launch.element));
  std::vector<EntryView> views;
  std::vector<std::byte> queries;
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    const EntryCase& e = one.entries[index(entry)];
    views.push_back(
        {world.put(cache_of(one, entry, Of::key, one.head_size), simt::Use::input, "key cache"),
         world.put(cache_of(one, entry, Of::value, one.value_head_size), simt::Use::input,
                   "value cache"),
         e.rows * one.head_size * bytes, e.rows * one.value_head_size * bytes, e.first_position,
         e.live, e.origin, e.queries});
    for (std::int64_t i = 0; i < one.queries() * one.query_heads * one.head_size; ++i) {
      const std::int64_t query = i / one.head_size / one.query_heads;
      const std::int64_t head = i / one.head_size % one.query_heads;
      put_element(queries, one.launch.element,
                  query < e.queries
                      ? number(Of::query, {entry, head, e.origin + query, i % one.head_size})
                      : std::nanf(""));
    }
  }
  p.entries = world.put(views, simt::Use::input, "entries");
  p.query = world.put(queries, simt::Use::input, "queries");
}

AttentionParameters parameters_of(const AttentionCase& one, World& world) {
  AttentionParameters p{};
  p.batch = static_cast<std::int32_t>(one.entries.size());
  p.queries = one.queries();
  p.query_heads = one.query_heads;
  p.kv_heads = one.kv_heads;
  p.head_size = one.head_size;
  p.value_head_size = one.value_head_size;
  p.causal = one.causal;
  p.window = one.window;
  p.right = one.right;
  p.scale = kScale;
  p.softcap = one.softcap;
  p.per_channel = one.per_channel;
  put_rows(one, world, p);
  if (one.mask != MaskKind::none) put_mask(one, world, p);
  if (one.launch.int8_cache) {
    p.key_scale = world.put(scales_of(one, Of::key, one.head_size), simt::Use::input, "key scales");
    p.value_scale =
        world.put(scales_of(one, Of::value, one.value_head_size), simt::Use::input, "value scales");
  }
  std::vector<float> sinks;
  for (std::int64_t head = 0; head < one.query_heads; ++head) {
    sinks.push_back(number(Of::sink, {head}));
  }
  if (one.sinks) p.sinks = world.put(sinks, simt::Use::input, "sinks");
  for (const EntryCase& e : one.entries) p.score_columns = std::max(p.score_columns, e.live);
  const std::vector<float> scores(
      index(p.batch * p.query_heads * p.queries * std::max<std::int64_t>(p.score_columns, 1)));
  p.scores = world.put(scores, simt::Use::scratch, "scores");
  return p;
}

/// Output and tolerance of one query of one head, lane by lane.
struct Row {
  std::vector<double> output, tolerance;
};

Row expected_row(const AttentionCase& one, std::int64_t entry, std::int64_t query,
                 std::int64_t head) {
  const EntryCase& e = one.entries[index(entry)];
  const std::int64_t kv_head = head / (one.query_heads / one.kv_heads);
  const double sink = one.sinks ? number(Of::sink, {head}) : -kInfinity;
  std::vector<double> logits(index(e.live), -kInfinity);
  double largest = sink;
  for (std::int64_t row = 0; row < e.live; ++row) {
    const std::int64_t position = e.first_position + row;
    if (!sees(one, entry, head, query, position)) continue;
    double logit = 0;
    for (std::int64_t lane = 0; lane < one.head_size; ++lane) {
      logit += static_cast<double>(number(Of::query, {entry, head, e.origin + query, lane})) *
               stored(one, Of::key, entry, kv_head, position, lane);
    }
    logit *= static_cast<double>(kScale);
    if (one.softcap != 0) logit = one.softcap * std::tanh(logit / one.softcap);
    logits[index(row)] = logit + bias_of(one, entry, head, query, position);
    largest = std::max(largest, logits[index(row)]);
  }
  double total = largest == -kInfinity ? 1 : std::exp(sink - largest);
  for (const double logit : logits) total += logit == -kInfinity ? 0 : std::exp(logit - largest);
  Row result;
  for (std::int64_t lane = 0; lane < one.value_head_size; ++lane) {
    double sum = 0;
    double size = 0;
    for (std::int64_t row = 0; row < e.live; ++row) {
      if (logits[index(row)] == -kInfinity) continue;
      const double weight = std::exp(logits[index(row)] - largest) / total;
      const double value = stored(one, Of::value, entry, kv_head, e.first_position + row, lane);
      sum += weight * value;
      size += weight * std::abs(value);
    }
    // Products are multiples of 2^-14 and their sums below 2^11, so that f32 holds them but for a
    // bit or two; scaled they are within 2^-14 of exact, and so are the exponentials. The output is
    // rounded once.
    const double roundoff = one.launch.element == Element::f32   ? 0x1p-24
                            : one.launch.element == Element::f16 ? 0x1p-11
                                                                 : 0x1p-8;
    result.output.push_back(sum);
    result.tolerance.push_back(size * (0x1p-12 + roundoff) + (size > 0 ? 0x1p-24 : 0));
  }
  return result;
}

}  // namespace

std::int64_t AttentionCase::queries() const {
  std::int64_t most = 0;
  for (const EntryCase& e : entries) most = std::max(most, e.queries);
  return most;
}

AttentionOutcome run_unfused(const AttentionCase& one, const KernelTable& kernels,
                             simt::Order order) {
  World world(order);
  AttentionParameters p = parameters_of(one, world);
  const std::size_t bytes = element_bytes(one.launch.element);
  const std::size_t elements = index(p.batch * p.queries * p.query_heads * p.value_head_size);
  std::byte* const output =
      world.put(std::vector<std::byte>(elements * bytes, kUntouched), simt::Use::output, "output");
  p.output = output;
  world.memory().begin_step();
  kernels.unfused(world.queue(), one.launch, p);
  AttentionOutcome found;
  found.defects = world.queue().take_defects();
  found.bits = world.get(output, elements * bytes);
  for (std::size_t i = 0; i < elements; ++i) {
    found.output.push_back(element_at(found.bits.data() + i * bytes, one.launch.element));
  }
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    const std::size_t row = index(p.query_heads * p.value_head_size) * bytes;
    const auto missing = world.memory().check_written(
        output + index(entry * p.queries) * row, index(one.entries[index(entry)].queries) * row);
    if (missing) found.defects.push_back(*missing);
  }
  return found;
}

std::string difference(const AttentionCase& one, const AttentionOutcome& found) {
  const std::size_t bytes = element_bytes(one.launch.element);
  std::size_t at = 0;
  for (std::int64_t entry = 0; entry < static_cast<std::int64_t>(one.entries.size()); ++entry) {
    for (std::int64_t row = 0; row < one.queries() * one.query_heads; ++row) {
      const std::int64_t query = row / one.query_heads;
      const std::int64_t head = row % one.query_heads;
      const bool asked = query < one.entries[index(entry)].queries;
      const Row expected = asked ? expected_row(one, entry, query, head) : Row{};
      for (std::int64_t lane = 0; lane < one.value_head_size; ++lane, ++at) {
        const std::string where = "entry " + std::to_string(entry) + ", query " +
                                  std::to_string(query) + ", head " + std::to_string(head) +
                                  ", lane " + std::to_string(lane) + ": ";
        if (!asked) {
          for (std::size_t i = 0; i < bytes; ++i) {
            if (found.bits[at * bytes + i] != kUntouched) return where + "there is no such query";
          }
        } else if (const double is = found.output[at], meant = expected.output[index(lane)];
                   !(std::abs(is - meant) <= expected.tolerance[index(lane)])) {
          return where + std::to_string(is) + " in place of " + std::to_string(meant);
        }
      }
    }
  }
  return "";
}

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> cases;
  AttentionCase one;
  one.entries = {{0, 13, 9, 4, 15}, {5, 9, 13, 1, 9}, {0, 0, 0, 0, 2}, {0, 2, -3, 5, 6}};
  const auto add = [&](const auto& change) {
    AttentionCase other = one;
    change(other);
    for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
      other.launch.element = element;
      other.launch.int8_cache = cases.size() % 2 == 1;
      cases.push_back(other);
    }
  };
  add([](AttentionCase& c) { c.launch.threads = 32; });
  add([](AttentionCase& c) {
    c.window = 4;
    c.query_heads = 6;
    c.kv_heads = 3;
    c.per_channel = true;
  });
  add([](AttentionCase& c) {
    c.causal = false;
    c.window = 3;
    c.right = 2;
    c.sinks = true;
    c.launch.threads = 64;
  });
  add([](AttentionCase& c) {
    c.mask = MaskKind::boolean;
    c.head_size = 136;
    c.value_head_size = 3;
    c.softcap = 1.5F;
    c.mask_columns = 8;
  });
  add([](AttentionCase& c) {
    c.mask = MaskKind::additive;
    c.mask_of_heads = true;
    c.mask_columns = 11;
    c.entries.push_back({0, 13, 8, 5, 14});  // Sees positions behind the mask's very last column.
    c.value_head_size = 137;
    c.sinks = true;
    c.per_channel = true;
    c.window = 0x7fffffffffffffff;
    c.right = 0x7fffffffffffffff;
  });
  add([](AttentionCase& c) {
    c.window = 0;
    c.causal = false;
    c.entries = {{2, 300, 260, 2, 301}};
  });
  return cases;
}

}  // namespace kvcheck::kernels::device
