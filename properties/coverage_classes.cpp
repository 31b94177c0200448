// The classes of situations.
#include <algorithm>

#include "model/visibility.h"
#include "properties/coverage.h"

namespace kvcheck::properties {
namespace {

using kernels::Capabilities;
using model::Append;
using model::EntryStep;
using model::Rollback;
using model::Scenario;
using model::Timeline;

/// Keys that tiles and blocks of kernels hold.
constexpr std::int64_t kTileEdges[] = {64, 128, 256};

bool any_target(const Capabilities&) { return true; }
bool block_target(const Capabilities& t) {
  return t.operators.count("gqa") > 0 && t.layouts.count("block") > 0;
}
bool attention_target(const Capabilities& t) { return t.operators.count("attention") > 0; }
bool rollback_target(const Capabilities& t) { return t.has("rollback"); }
bool block_rollback_target(const Capabilities& t) { return block_target(t) && t.has("rollback"); }

bool block(const Scenario& s) { return s.cache.layout == model::LayoutKind::block; }

/// Whether `test` holds for an entry of a step of kind K.
template <class K, class Test>
bool any_step(const Scenario& s, const Timeline& timeline, Test&& test) {
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    if (!std::holds_alternative<K>(s.steps[i])) continue;
    for (const EntryStep& entry : timeline.steps()[i].entries) {
      if (test(entry)) return true;
    }
  }
  return false;
}

/// Largest number of evictions that one entry has gone through.
std::int64_t evictions(const Scenario& s, const Timeline& timeline) {
  if (!block(s)) return 0;
  std::vector<std::int64_t> count(static_cast<std::size_t>(s.batch), 0);
  for (const auto& step : timeline.steps()) {
    for (std::size_t b = 0; b < step.entries.size(); ++b) count[b] += step.entries[b].evicted > 0;
  }
  return *std::max_element(count.begin(), count.end());
}

bool exactly_full(const Scenario& s, const Timeline& timeline) {
  return block(s) && any_step<Append>(s, timeline, [&](const EntryStep& e) {
           return e.resident == s.cache.capacity;
         });
}

bool step_of(const Scenario& s, const Timeline& timeline, auto&& test) {
  return any_step<Append>(s, timeline, [&](const EntryStep& e) { return test(e.length - e.past); });
}

bool empty_query_row(const Scenario& s, const Timeline& timeline) {
  if (s.op == model::Operator::gqa) return false;
  for (std::size_t i = 0; i < s.steps.size() && timeline.steps()[i].defined; ++i) {
    if (!std::holds_alternative<Append>(s.steps[i])) continue;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto& entry = timeline.steps()[i].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; q < entry.queries; ++q) {
        if (visible_positions(s, timeline, i, b, 0, q).empty()) return true;
      }
    }
  }
  return false;
}

bool ragged(const Scenario&, const Timeline& timeline) {
  for (const auto& step : timeline.steps()) {
    for (const auto& entry : step.entries) {
      if (entry.length != step.entries.front().length) return true;
    }
  }
  return false;
}

bool rollback_then_append(const Scenario& s, const Timeline&) {
  for (std::size_t i = 1; i < s.steps.size(); ++i) {
    if (std::holds_alternative<Rollback>(s.steps[i - 1]) &&
        std::holds_alternative<Append>(s.steps[i])) {
      return true;
    }
  }
  return false;
}

std::vector<CoverageClass> windowed_classes() {
  return {
      {"buffer not yet full",
       [](const Scenario& s, const Timeline& t) { return block(s) && evictions(s, t) == 0; },
       block_target},
      {"buffer exactly full", exactly_full, block_target},
      {"one eviction", [](const Scenario& s, const Timeline& t) { return evictions(s, t) == 1; },
       block_target},
      {"many evictions", [](const Scenario& s, const Timeline& t) { return evictions(s, t) >= 3; },
       block_target},
      {"capacity equals window",
       [](const Scenario& s, const Timeline&) {
         return block(s) && s.cache.capacity == s.cache.window_size;
       },
       block_target},
      {"step equals window",
       [](const Scenario& s, const Timeline& t) {
         return block(s) && step_of(s, t, [&](std::int64_t n) { return n == s.cache.window_size; });
       },
       block_target},
      {"step larger than window",
       [](const Scenario& s, const Timeline& t) {
         return block(s) && step_of(s, t, [&](std::int64_t n) { return n > *s.cache.window_size; });
       },
       block_target},
      {"step larger than capacity",
       [](const Scenario& s, const Timeline& t) {
         return block(s) && step_of(s, t, [&](std::int64_t n) { return n > s.cache.capacity; });
       },
       block_target},
      {"length at the window's edge",
       [](const Scenario& s, const Timeline& t) {
         return s.cache.window_size && any_step<Append>(s, t, [&](const EntryStep& e) {
                  return e.length >= *s.cache.window_size - 1 &&
                         e.length <= *s.cache.window_size + 1;
                });
       },
       block_target},
      {"staged step",
       [](const Scenario& s, const Timeline& t) {
         return any_step<Append>(s, t, [](const EntryStep& e) { return e.staged; });
       },
       block_target},
      {"eviction on every overflow",
       [](const Scenario& s, const Timeline& t) {
         return s.cache.layout == model::LayoutKind::min_overflow &&
                any_step<Append>(s, t, [](const EntryStep& e) { return e.evicted > 0; });
       },
       [](const Capabilities& t) {
         return block_target(t) && t.layouts.count("min_overflow") > 0;
       }},
      {"rollback after an eviction",
       [](const Scenario& s, const Timeline& t) {
         return block(s) && any_step<Rollback>(s, t, [](const EntryStep& e) {
                  return e.rollback_exact && e.first_position.value > 0;
                });
       },
       block_rollback_target},
  };
}

std::vector<CoverageClass> attention_classes() {
  return {
      {"one query, several new keys, a past",
       [](const Scenario& s, const Timeline& t) {
         return s.op == model::Operator::attention && s.causal &&
                any_step<Append>(s, t, [](const EntryStep& e) {
                  return e.queries == 1 && e.length - e.past >= 2 && e.past > 0;
                });
       },
       attention_target},
      {"more queries than keys",
       [](const Scenario& s, const Timeline& t) {
         return any_step<Append>(s, t, [](const EntryStep& e) { return e.queries > e.length; });
       },
       attention_target},
      {"query that sees no key", empty_query_row, attention_target},
      {"boolean mask",
       [](const Scenario& s, const Timeline&) { return s.mask.kind == model::MaskKind::boolean; },
       [](const Capabilities& t) { return t.has("mask_boolean"); }},
      {"additive mask",
       [](const Scenario& s, const Timeline&) { return s.mask.kind == model::MaskKind::additive; },
       [](const Capabilities& t) { return t.has("mask_additive"); }},
      {"nonpad_kv_seqlen", [](const Scenario& s, const Timeline&) { return s.nonpad_kv_seqlen; },
       [](const Capabilities& t) { return t.has("nonpad_kv_seqlen"); }},
  };
}

std::vector<CoverageClass> general_classes() {
  return {
      {"head size off the vector width",
       [](const Scenario& s, const Timeline&) { return s.head_size % 8 != 0; },
       [](const Capabilities& t) { return attention_target(t) || t.head_size_multiple % 8 != 0; }},
      {"separate buffers", [](const Scenario& s, const Timeline&) { return !s.share_buffers; },
       [](const Capabilities& t) {
         return t.operators.count("gqa") > 0 && t.has("separate_buffers");
       }},
      {"single-token step with a past",
       [](const Scenario& s, const Timeline& t) {
         return any_step<Append>(
             s, t, [](const EntryStep& e) { return e.past > 0 && e.length - e.past == 1; });
       },
       any_target},
      {"several query heads for a KV head",
       [](const Scenario& s, const Timeline&) {
         return s.kv_heads > 1 && s.query_heads > s.kv_heads;
       },
       any_target},
      {"several batch entries", [](const Scenario& s, const Timeline&) { return s.batch > 1; },
       any_target},
      {"ragged lengths", ragged, any_target},
      {"rollback, then append", rollback_then_append, rollback_target},
      {"several rollbacks",
       [](const Scenario& s, const Timeline&) {
         return std::count_if(s.steps.begin(), s.steps.end(), [](const model::Step& step) {
                  return std::holds_alternative<Rollback>(step);
                }) > 1;
       },
       rollback_target},
      {"rollback to empty",
       [](const Scenario& s, const Timeline& t) {
         return any_step<Rollback>(s, t,
                                   [](const EntryStep& e) { return e.length == 0 && e.past > 0; });
       },
       rollback_target},
      {"length above 64",
       [](const Scenario& s, const Timeline& t) {
         return any_step<Append>(s, t, [](const EntryStep& e) { return e.length > 64; });
       },
       any_target},
      {"16-bit elements",
       [](const Scenario& s, const Timeline&) {
         return s.element_type == model::ElementType::f16 ||
                s.element_type == model::ElementType::bf16;
       },
       [](const Capabilities& t) {
         return t.element_types.count("f16") + t.element_types.count("bf16") > 0;
       }},
  };
}

bool quantised_target(const Capabilities& t) {
  return t.has("cache_int8") || t.has("cache_int4") || t.has("cache_fp8");
}

bool quantised(const Scenario& s) {
  return s.cache.quantisation.kind != model::QuantisationKind::none;
}

bool tile_edge_target(const Capabilities& t) { return t.has("load"); }

/// A length at 64, 128 or 256 or one beside it.
bool tile_edge(const Scenario& s, const Timeline& timeline) {
  return any_step<Append>(s, timeline, [](const EntryStep& e) {
    return std::any_of(std::begin(kTileEdges), std::end(kTileEdges), [&](std::int64_t edge) {
      return e.length >= edge - 1 && e.length <= edge + 1;
    });
  });
}

std::vector<CoverageClass> feature_classes() {
  return {
      {"softcap", [](const Scenario& s, const Timeline&) { return s.softcap != 0; },
       [](const Capabilities& t) { return t.has("softcap"); }},
      {"attention sink",
       [](const Scenario& s, const Timeline&) { return s.smooth_softmax || s.head_sink; },
       [](const Capabilities& t) { return t.has("smooth_softmax") || t.has("head_sink"); }},
      {"rotary embedding", [](const Scenario& s, const Timeline&) { return s.rotary.has_value(); },
       [](const Capabilities& t) { return t.has("rotary"); }},
      {"position_ids",
       [](const Scenario& s, const Timeline&) { return s.rotary && s.rotary->position_ids; },
       [](const Capabilities& t) { return t.has("rotary"); }},
      {"norm of queries and keys",
       [](const Scenario& s, const Timeline&) { return s.qk_norm.has_value(); },
       [](const Capabilities& t) { return t.has("qk_norm"); }},
      {"intermediate handed out",
       [](const Scenario& s, const Timeline&) { return s.qk_output != model::QkOutput::none; },
       [](const Capabilities& t) { return t.has("qk_output"); }},
      {"softmax precision",
       [](const Scenario& s, const Timeline&) { return s.softmax_precision.has_value(); },
       [](const Capabilities& t) { return t.has("softmax_precision"); }},
      {"window to the right",
       [](const Scenario& s, const Timeline&) { return s.right_window_size.has_value(); },
       [](const Capabilities& t) { return t.has("right_window"); }},
      {"queries, keys and values packed",
       [](const Scenario& s, const Timeline&) { return s.packed_qkv; },
       [](const Capabilities& t) { return t.has("packed_qkv"); }},
      {"not causal", [](const Scenario& s, const Timeline&) { return !s.causal; },
       [](const Capabilities& t) { return attention_target(t) || t.has("bidirectional"); }},
      {"inputs of rank 3", [](const Scenario& s, const Timeline&) { return s.input_rank == 3; },
       [](const Capabilities& t) { return t.has("input_rank_3"); }},
      {"mask that lacks columns",
       [](const Scenario& s, const Timeline&) { return s.mask.missing_columns > 0; },
       [](const Capabilities& t) { return t.has("short_mask"); }},
      {"queries alone",
       [](const Scenario& s, const Timeline& t) {
         return any_step<Append>(
             s, t, [](const EntryStep& e) { return e.queries > 0 && e.length == e.past; });
       },
       [](const Capabilities& t) { return t.has("shared_kv") || t.has("empty_append"); }},
      {"quantised cache", [](const Scenario& s, const Timeline&) { return quantised(s); },
       quantised_target},
      {"scales by channel",
       [](const Scenario& s, const Timeline&) { return s.cache.quantisation.per_channel; },
       quantised_target},
      {"quantised cache, eviction",
       [](const Scenario& s, const Timeline& t) { return quantised(s) && evictions(s, t) > 0; },
       [](const Capabilities& t) { return quantised_target(t) && block_target(t); }},
      {"length at the edge of a tile", tile_edge, tile_edge_target},
  };
}

}  // namespace

const std::vector<CoverageClass>& coverage_classes() {
  static const std::vector<CoverageClass> classes = [] {
    auto all = windowed_classes();
    for (auto& more : {attention_classes(), general_classes(), feature_classes()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return classes;
}

}  // namespace kvcheck::properties
