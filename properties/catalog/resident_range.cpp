// cache.resident_range: rows [0, L) hold positions T-L .. T-1.
#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

Judgement wrong_row(Case& c, RowContent& content, const kernels::CacheRows& rows, std::size_t step,
                    std::int64_t head, std::int64_t row, const model::HeldToken& expected,
                    RowContent::Match match) {
  const std::int64_t entry = expected.entry;
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(step);
  hint.entry = entry;
  hint.query_head = head * (c.scenario().query_heads / c.scenario().kv_heads);
  const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
  const std::string where = fmt::format(
      "after step {} ({}), T={}, L={}: row {} of batch entry {}, KV head {}", step,
      model::describe(c.scenario().steps[step]), state.length, state.resident, row, entry, head);
  if (match.key != match.value) {
    return Judgement::failed(
        Kind::wrong_row,
        fmt::format("{} holds the right {} but the wrong {} of position {}", where,
                    match.key ? "key" : "value", match.key ? "value" : "key",
                    expected.token.position.value),
        hint);
  }
  const auto found = content.identify(rows, entry, head, row);
  if (!found) {
    return Judgement::failed(Kind::wrong_row,
                             fmt::format("{} holds no token of this sequence; the contract says "
                                         "position {}",
                                         where, expected.token.position.value),
                             hint);
  }
  const model::Position position = found->token.position;
  const bool live = position.value >= state.first_position.value && position.value < state.length &&
                    c.timeline().generation(step, entry, position) == found->token.generation;
  return Judgement::failed(
      live ? Kind::wrong_row : Kind::stale_row,
      fmt::format("{} holds position {}{}; the contract says position {}", where, position.value,
                  live ? "" : " as it was before a rollback or an eviction",
                  expected.token.position.value),
      hint);
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  RowContent content(c.scenario(), c.timeline(), c.fill(), c.roundoff(),
                     c.oracle().operands(c.roundoff()));
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    const StepAnswer& answer = execution.steps[i];
    if (answer.status != StepAnswer::Status::ok || !answer.result.rows) continue;
    if (!c.timeline().steps()[i].defined) break;
    const kernels::CacheRows& rows = *answer.result.rows;
    if (const std::string problem = content.shape_problem(rows); !problem.empty()) {
      return Judgement::failed(Kind::nonsense, fmt::format("after step {} {}", i, problem));
    }
    for (std::int64_t b = 0; b < c.scenario().batch; ++b) {
      const auto& state = c.timeline().steps()[i].entries[static_cast<std::size_t>(b)];
      if (rows.key.shape[2] < state.resident) {
        return Judgement::failed(
            Kind::nonsense,
            fmt::format("after step {} the cache has {} rows; the contract says {} are resident", i,
                        rows.key.shape[2], state.resident));
      }
      for (std::int64_t r = 0; r < state.resident; ++r) {
        const auto expected = content.held(i, b, {state.first_position.value + r});
        for (std::int64_t h = 0; h < c.scenario().kv_heads; ++h, ++compared) {
          const auto match = content.match(rows, h, r, expected);
          if (!match.both()) return wrong_row(c, content, rows, i, h, r, expected, match);
        }
      }
    }
  }
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  return compared > 0 ? Judgement{} : Judgement::skipped("no resident row to compare");
}

}  // namespace

Property resident_range_property() {
  return {"cache.resident_range",
          "After every step rows [0, L(T)) of K and V hold positions T-L(T) to T-1 in order, for "
          "each batch entry by its own length: bit for bit, and where the target computes or "
          "quantises what it stores, to the side of a tie.",
          "layout, eviction, compaction, staging write-back, append position, head or entry mix-up",
          [](const model::Scenario&, const kernels::Capabilities& target) {
            return std::string(target.rows ? "" : "the target does not let its cache be read");
          },
          judge};
}

}  // namespace kvcheck::properties
