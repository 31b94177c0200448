// The small exhaustive grid that every run begins with.
#include <initializer_list>
#include <iterator>
#include <string>

#include "properties/convert.h"
#include "properties/covering_rows.h"
#include "properties/generator.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

/// Kinds of quantised cache that the target claims.
std::vector<model::QuantisationKind> quantisations(const kernels::Capabilities& target) {
  using enum model::QuantisationKind;
  std::vector<model::QuantisationKind> kinds;
  for (const auto kind : {int8, int4, fp8}) {
    if (target.has("cache_" + std::string(to_string(kind)))) kinds.push_back(kind);
  }
  return kinds;
}

/// Kernels, orders of threads and element types by turns, so that every kernel meets the grid.
void add_launch(std::size_t number, const kernels::Capabilities& target, Scenario& s) {
  using model::LaunchKernel;
  using model::LaunchOrder;
  constexpr LaunchKernel kKernels[] = {LaunchKernel::prefill, LaunchKernel::decode,
                                       LaunchKernel::decode_matrix, LaunchKernel::unfused};
  constexpr LaunchOrder kOrders[] = {LaunchOrder::random, LaunchOrder::lockstep,
                                     LaunchOrder::reverse, LaunchOrder::priority,
                                     LaunchOrder::starve};
  s.launch.emplace();
  s.launch->kernel = kKernels[number % std::size(kKernels)];
  s.launch->order = kOrders[number % std::size(kOrders)];
  s.launch->seed = number;
  if (s.launch->kernel == LaunchKernel::unfused) return;
  s.element_type = number % 8 < 4 ? model::ElementType::f16 : model::ElementType::bf16;
  const std::int64_t lanes = packet_lanes(target);
  s.head_size += (lanes - s.head_size % lanes) % lanes;
  s.value_head_size += (lanes - s.value_head_size % lanes) % lanes;
}

void add_valid(std::vector<Scenario>& grid, const kernels::Capabilities& target,
               Scenario scenario) {
  scenario = model::normalise(std::move(scenario));
  if (model::validate(scenario).empty() && unsupported_reason(target, scenario).empty()) {
    grid.push_back(std::move(scenario));
  }
}

void add(std::vector<Scenario>& grid, const kernels::Capabilities& target, Scenario scenario) {
  const bool plain = scenario.cache.quantisation.kind == model::QuantisationKind::none;
  if (plain && scenario.op == model::Operator::gqa && target.has("cache_quantised_only")) {
    const auto kinds = quantisations(target);
    if (!kinds.empty()) scenario.cache.quantisation.kind = kinds.front();
  }
  add_valid(grid, target, std::move(scenario));
}

/// Every past, query count and new key count up to 3 under the causal mask.
void add_attention(std::vector<Scenario>& grid, const kernels::Capabilities& target) {
  for (const int opset : target.opsets) {
    for (std::int64_t past = 0; past <= 3; ++past) {
      for (std::int64_t queries = 1; queries <= 3; ++queries) {
        for (std::int64_t tokens = 1; tokens <= 3; ++tokens) {
          Scenario s;
          s.op = model::Operator::attention;
          s.opset = opset;
          s.head_size = s.value_head_size = 4;
          s.fill.kind = model::FillKind::needles;
          if (past > 0) s.steps.emplace_back(Past{{past}});
          s.steps.emplace_back(Append{{tokens}, {queries}, 0});
          add(grid, target, s);
          if (opset == 24) {
            s.nonpad_kv_seqlen = true;
            s.cache.capacity = past + tokens + 2;
            add(grid, target, s);
          }
        }
      }
    }
  }
}

/// Every small window and capacity with step lists that cross an eviction.
void add_windowed(std::vector<Scenario>& grid, const kernels::Capabilities& target,
                  model::LayoutKind layout) {
  for (std::int64_t window = 1; window <= 3; ++window) {
    for (std::int64_t capacity = window; capacity <= window + 2; ++capacity) {
      for (const bool whole : {false, true}) {
        for (const bool rolled_back : {false, true}) {
          Scenario s;
          s.head_size = s.value_head_size =
              target.head_size_multiple < 8 ? 8 : target.head_size_multiple;
          s.cache.layout = layout;
          s.cache.capacity = capacity;
          s.cache.window_size = window;
          s.fill.kind = model::FillKind::needles;
          const auto append = [&](std::int64_t n, std::int64_t generation) {
            for (std::int64_t i = 0; i < (whole ? 1 : n); ++i) {
              const std::int64_t count = whole ? n : 1;
              s.steps.emplace_back(Append{{count}, {count}, generation});
            }
          };
          append(capacity, 0);
          if (rolled_back) s.steps.emplace_back(Rollback{{1}});
          append(capacity + 1, rolled_back ? 1 : 0);
          append(2, rolled_back ? 1 : 0);
          add(grid, target, s);
        }
      }
    }
  }
}

/// A full cache with and without a window.
void add_full(std::vector<Scenario>& grid, const kernels::Capabilities& target) {
  for (std::int64_t window = 0; window <= 3; ++window) {
    for (std::int64_t prompt = 1; prompt <= 4; ++prompt) {
      for (std::int64_t next = 1; next <= 2; ++next) {
        Scenario s;
        s.query_heads = 4;
        s.kv_heads = 2;
        s.head_size = s.value_head_size =
            target.head_size_multiple < 8 ? 8 : target.head_size_multiple;
        if (window > 0) s.cache.window_size = window;
        s.cache.capacity = prompt + next + 2;
        s.fill.kind = model::FillKind::needles;
        s.steps.emplace_back(Append{{prompt}, {prompt}, 0});
        s.steps.emplace_back(Append{{next}, {next}, 0});
        add(grid, target, s);
      }
    }
  }
}

/// Keys of a few splits of a launch.
constexpr std::int64_t kSplitLength = 600;

using Change = void (*)(Scenario&);

constexpr std::initializer_list<Change> kGqaFeatures = {
    [](Scenario& s) { s.softcap = 2; },
    [](Scenario& s) { s.smooth_softmax = true; },
    [](Scenario& s) { s.head_sink = true; },
    [](Scenario& s) { s.smooth_softmax = s.head_sink = true; },
    [](Scenario& s) { s.rotary = model::RotarySpec{}; },
    [](Scenario& s) {
      s.rotary = model::RotarySpec{true, 4, {}};
    },
    [](Scenario& s) {
      s.rotary = model::RotarySpec{false, 0, model::PositionIds{7, 2, 1}};
    },
    [](Scenario& s) { s.qk_norm = model::QkNormSpec{}; },
    [](Scenario& s) { s.qk_norm = model::QkNormSpec{}, s.rotary = model::RotarySpec{}; },
    [](Scenario& s) { s.packed_qkv = true; },
    [](Scenario& s) { s.causal = false; },
    [](Scenario& s) { s.cache.window_size = 0; },
    [](Scenario& s) { s.qk_output = model::QkOutput::biased; },
    [](Scenario& s) { s.qk_output = model::QkOutput::probabilities; },
    [](Scenario& s) { s.mask.kind = model::MaskKind::additive; },
    [](Scenario& s) {
      s.steps.emplace_back(Append{{0}, {2}, 0});
    },
};

constexpr std::initializer_list<Change> kAttentionFeatures = {
    [](Scenario& s) { s.softcap = 2; },
    [](Scenario& s) { s.input_rank = 3; },
    [](Scenario& s) { s.qk_output = model::QkOutput::raw; },
    [](Scenario& s) { s.qk_output = model::QkOutput::softcapped, s.softcap = 2; },
    [](Scenario& s) {
      s.qk_output = model::QkOutput::biased;
      s.mask.kind = model::MaskKind::additive;
    },
    [](Scenario& s) { s.qk_output = model::QkOutput::probabilities; },
    [](Scenario& s) { s.softmax_precision = model::ElementType::f16; },
    [](Scenario& s) { s.mask.kind = model::MaskKind::boolean, s.mask.rank = 1; },
    [](Scenario& s) { s.cache.window_size = 2; },
    [](Scenario& s) { s.right_window_size = 1, s.causal = false; },
    [](Scenario& s) { s.cache.window_size = 2, s.right_window_size = 0, s.causal = false; },
    [](Scenario& s) {
      s.steps.emplace_back(Append{{0}, {2}, 0});
    },
};

/// A base with each of the changes that the target claims to take.
void add_changed(std::vector<Scenario>& grid, const kernels::Capabilities& target,
                 const Scenario& base, std::initializer_list<Change> changes) {
  for (const Change change : changes) {
    Scenario s = base;
    change(s);
    add(grid, target, s);
  }
}

/// Every optional feature alone, on caches of both kinds; every kind of quantised cache.
void add_features(std::vector<Scenario>& grid, const kernels::Capabilities& target) {
  Scenario base;
  base.fill.kind = model::FillKind::needles;
  for (const std::int64_t n : {3, 1, 2}) base.steps.emplace_back(Append{{n}, {n}, 0});
  for (const auto layout : {model::LayoutKind::full, model::LayoutKind::block}) {
    Scenario s = base;
    s.query_heads = 4;
    s.kv_heads = 2;
    s.head_size = s.value_head_size = std::max<std::int64_t>(8, target.head_size_multiple);
    s.cache.layout = layout;
    s.cache.capacity = 8;
    if (layout == model::LayoutKind::block) s.cache.capacity = 4, s.cache.window_size = 3;
    add_changed(grid, target, s, kGqaFeatures);
    for (const auto kind : quantisations(target)) {
      for (const bool per_channel : {false, true}) {
        s.cache.quantisation = {kind, per_channel};
        add(grid, target, s);
      }
    }
  }
  for (const int opset : target.opsets) {
    Scenario s = base;
    s.op = model::Operator::attention;
    s.opset = opset;
    s.query_heads = 2;
    add_changed(grid, target, s, kAttentionFeatures);
    // Single tokens in a buffer: every step's intermediate has the shape of the one before.
    s.nonpad_kv_seqlen = true;
    s.cache.capacity = 8;
    s.steps.assign(5, Append{{1}, {1}, 0});
    s.qk_output = model::QkOutput::probabilities;
    add(grid, target, s);
    // Behind an entry that has keys, two queries of one that has none.
    s.qk_output = model::QkOutput::none;
    s.batch = 2;
    s.steps = {Append{{3, 0}, {2, 2}, 0}, Append{{1, 0}, {2, 2}, 0}};
    add(grid, target, s);
  }
}

/// Every pair of boundary values of shape, lengths and cache, in few scenarios.
void add_pairs(std::vector<Scenario>& grid, const kernels::Capabilities& target) {
  const std::int64_t lanes = std::max<std::int64_t>(8, target.head_size_multiple);
  const std::vector<std::string> types(target.element_types.begin(), target.element_types.end());
  if (types.empty()) return;
  constexpr std::int64_t kKvHeads[] = {1, 2, 3}, kGroups[] = {1, 2, 5}, kWindows[] = {1, 2, 4};
  constexpr std::int64_t kSpare[] = {0, 1, 5};
  for (const auto layout : {model::LayoutKind::block, model::LayoutKind::full}) {
    const int sizes = target.head_size_multiple == 1 ? 3 : 2;
    for (const auto& row :
         covering_rows({2, 3, 3, sizes, static_cast<int>(types.size()), 3, 3, 6, 4, 3})) {
      Scenario s;
      s.batch = 1 + row[0];
      s.kv_heads = kKvHeads[row[1]];
      s.query_heads = s.kv_heads * kGroups[row[2]];
      s.head_size = s.value_head_size = row[3] == 2 ? 5 : lanes * (1 + row[3]);
      s.element_type = *model::element_type_from(types[static_cast<std::size_t>(row[4])]);
      const std::int64_t window = kWindows[row[5]], capacity = window + kSpare[row[6]];
      s.cache.layout = layout;
      s.cache.window_size = window;
      if (layout == model::LayoutKind::block) s.cache.capacity = capacity;
      s.fill.kind = model::FillKind::needles;
      const std::int64_t prompts[] = {1, window, window + 1, capacity, capacity + 1, 2 * capacity};
      const std::int64_t chunks[] = {1, window, capacity, capacity + 1};
      const auto append = [&](std::int64_t n, std::int64_t generation) {
        const std::vector<std::int64_t> tokens(static_cast<std::size_t>(s.batch), n);
        s.steps.emplace_back(Append{tokens, tokens, generation});
      };
      append(prompts[row[7]], 0);
      append(chunks[row[8]], 0);
      if (row[9] > 0) {
        s.steps.emplace_back(
            Rollback{std::vector<std::int64_t>(static_cast<std::size_t>(s.batch), row[9])});
      }
      append(1, row[9] > 0 ? 1 : 0);
      add(grid, target, s);
    }
  }
}

/// Lengths around tiles and chunks of keys, where a kernel splits its sums: a few queries, some
/// before the edge, behind a loaded past, so that they stay cheap.
void add_long(std::vector<Scenario>& grid, const kernels::Capabilities& target) {
  constexpr std::int64_t kQueries = 5;
  for (const std::int64_t length : {65, 513, 1100}) {
    Scenario base;
    base.steps.emplace_back(Past{{length - kQueries}});
    base.steps.emplace_back(Append{{kQueries}, {kQueries}, 0});
    Scenario s = base;
    s.query_heads = 4;
    s.kv_heads = 2;
    s.head_size = s.value_head_size = std::max<std::int64_t>(8, target.head_size_multiple);
    s.cache.capacity = length + 1;
    add(grid, target, s);
    s.head_sink = true;
    add(grid, target, s);
    if (target.opsets.empty()) continue;
    s = base;
    s.op = model::Operator::attention;
    s.opset = *target.opsets.rbegin();
    s.query_heads = 3;
    s.head_size = s.value_head_size = 4;
    add(grid, target, s);
  }
}

/// For targets that launch kernels: an entry of several splits beside one whose later splits are
/// empty, by each fused kernel, with a sink to be added once; narrow and wide rows.
void add_splits(std::vector<Scenario>& grid, const kernels::Capabilities& target) {
  using model::LaunchKernel;
  constexpr std::int64_t kQueries = 2;
  for (const std::int64_t head_size : {16, 64}) {
    for (const LaunchKernel kernel :
         {LaunchKernel::decode, LaunchKernel::decode_matrix, LaunchKernel::prefill}) {
      Scenario s;
      s.element_type = model::ElementType::f16;
      s.batch = 2;
      s.query_heads = 8;
      s.kv_heads = 2;
      s.head_size = s.value_head_size = head_size;
      s.head_sink = true;
      s.cache.capacity = 1 + kSplitLength;
      s.launch.emplace();
      s.launch->kernel = kernel;
      s.launch->threads = 32;
      s.launch->split_positions = 1;  // Rounded up to the least that there is.
      s.steps.emplace_back(Past{{kSplitLength - kQueries, 40}});
      s.steps.emplace_back(Append{{kQueries, kQueries}, {kQueries, kQueries}, 0});
      add(grid, target, s);
    }
  }
}

/// An entry that fills its rows beside one that brings more tokens: a row too many is another's.
void add_ragged(std::vector<Scenario>& grid, const kernels::Capabilities& target) {
  Scenario s;
  s.batch = s.query_heads = s.kv_heads = 2;
  s.head_size = s.value_head_size = packet_lanes(target);
  s.cache.capacity = 4;
  s.steps.emplace_back(Append{{3, 1}, {3, 1}, 0});
  s.steps.emplace_back(Append{{1, 3}, {1, 3}, 0});
  add(grid, target, s);
}

}  // namespace

std::vector<Scenario> lattice(const kernels::Capabilities& target) {
  std::vector<Scenario> grid;
  add_attention(grid, target);
  add_windowed(grid, target, model::LayoutKind::block);
  add_windowed(grid, target, model::LayoutKind::min_overflow);
  add_full(grid, target);
  add_features(grid, target);
  add_pairs(grid, target);
  add_long(grid, target);
  if (!target.has("launches")) return grid;
  // A launch is simulated thread by thread, so that the whole grid would leave no time for draws.
  constexpr std::size_t kOneIn = 4;
  std::vector<Scenario> thin;
  add_splits(thin, target);
  add_ragged(thin, target);
  for (std::size_t i = 0; i < grid.size(); i += kOneIn) {
    add_launch(thin.size(), target, grid[i]);
    add_valid(thin, target, std::move(grid[i]));
  }
  return thin;
}

}  // namespace kvcheck::properties
