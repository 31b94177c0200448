// The small exhaustive grid that every run begins with.
#include "properties/convert.h"
#include "properties/generator.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

void add(std::vector<Scenario>& grid, const kernels::Capabilities& target, Scenario scenario) {
  scenario = model::normalise(std::move(scenario));
  if (model::validate(scenario).empty() && unsupported_reason(target, scenario).empty()) {
    grid.push_back(std::move(scenario));
  }
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
void add_windowed(std::vector<Scenario>& grid, const kernels::Capabilities& target) {
  for (std::int64_t window = 1; window <= 3; ++window) {
    for (std::int64_t capacity = window; capacity <= window + 2; ++capacity) {
      for (const bool whole : {false, true}) {
        for (const bool rolled_back : {false, true}) {
          Scenario s;
          s.head_size = s.value_head_size =
              target.head_size_multiple < 8 ? 8 : target.head_size_multiple;
          s.cache = {model::LayoutKind::block, capacity, window};
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

}  // namespace

std::vector<Scenario> lattice(const kernels::Capabilities& target) {
  std::vector<Scenario> grid;
  add_attention(grid, target);
  add_windowed(grid, target);
  add_full(grid, target);
  return grid;
}

}  // namespace kvcheck::properties
