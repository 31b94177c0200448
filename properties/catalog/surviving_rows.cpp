// cache.present_is_past_plus_new: a step leaves the rows that survive it as they were.
// present[p] = past[p], bit for bit, for every position p that is resident before and after and was
// not rolled back between; also across a load and a rollback.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

/// Whether `count` neighbouring rows of one head, from two places on, hold the same bytes.
bool same_rows(const kernels::Tensor& a, std::int64_t from, const kernels::Tensor& b,
               std::int64_t to, std::int64_t entry, std::int64_t head, std::int64_t count) {
  const auto x = row_bytes(a, entry, head, from), y = row_bytes(b, entry, head, to);
  return x.size() == y.size() &&
         std::memcmp(x.data(), y.data(), x.size() * static_cast<std::size_t>(count)) == 0;
}

/// Compares what survives one step of one entry; adds the number of rows that it compared.
std::optional<Judgement> changed_row(Case& c, std::size_t before, std::size_t step,
                                     std::int64_t entry, std::int64_t& compared) {
  const auto& a = *c.execution().steps[before].result.rows;
  const auto& b = *c.execution().steps[step].result.rows;
  const auto e = static_cast<std::size_t>(entry);
  const auto& old_state = c.timeline().steps()[before].entries[e];
  const auto& state = c.timeline().steps()[step].entries[e];
  const std::int64_t first = std::max(old_state.first_position.value, state.first_position.value);
  const std::int64_t end = std::min(old_state.length, state.length);
  for (std::int64_t h = 0; h < c.scenario().kv_heads && first < end; ++h) {
    const auto same = [&](const kernels::Tensor& before_it, const kernels::Tensor& after_it,
                          std::int64_t position, std::int64_t count) {
      return same_rows(before_it, position - old_state.first_position.value, after_it,
                       position - state.first_position.value, entry, h, count);
    };
    if (same(a.key, b.key, first, end - first) && same(a.value, b.value, first, end - first)) {
      compared += end - first;
      continue;
    }
    for (std::int64_t p = first; p < end; ++p, ++compared) {
      const std::int64_t from = p - old_state.first_position.value;
      const std::int64_t to = p - state.first_position.value;
      const bool key = same(a.key, b.key, p, 1);
      const bool value = same(a.value, b.value, p, 1);
      if (key && value) continue;
      shrinkers::Hint hint;
      hint.step = static_cast<std::int64_t>(step);
      hint.entry = entry;
      hint.query_head = h * (c.scenario().query_heads / c.scenario().kv_heads);
      return Judgement::failed(
          Kind::wrong_row,
          fmt::format("step {} ({}) changes the {} of position {} of batch entry {}, KV head {}: "
                      "row {} after it (T={}) is not what row {} was before it (T={})",
                      step, model::describe(c.scenario().steps[step]), key ? "value" : "key", p,
                      entry, h, to, state.length, from, old_state.length),
          hint);
    }
  }
  return std::nullopt;
}

bool has_rows(Case& c, std::size_t step, std::size_t entry_rows) {
  const auto& rows = c.execution().steps[step].result.rows;
  if (!rows || !c.timeline().steps()[step].defined) return false;
  for (const auto& entry : c.timeline().steps()[step].entries) {
    if (entry.resident > rows->key.shape[2] || entry.resident > rows->value.shape[2]) return false;
  }
  return rows->key.shape.size() == entry_rows && rows->value.shape.size() == entry_rows;
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  std::int64_t compared = 0;
  for (std::size_t i = 1; i < execution.steps.size(); ++i) {
    if (!has_rows(c, i - 1, 4) || !has_rows(c, i, 4)) continue;
    for (std::int64_t b = 0; b < c.scenario().batch; ++b) {
      if (auto failure = changed_row(c, i - 1, i, b, compared)) return *failure;
    }
  }
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  return compared > 0 ? Judgement{} : Judgement::skipped("no row survives a step");
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.rows) return "the target does not let its cache be read";
  return scenario.steps.size() > 1 ? "" : "the scenario has one step";
}

}  // namespace

Property surviving_rows_property() {
  return {"cache.present_is_past_plus_new",
          "The rows that survive a step, a load or a rollback are, bit for bit, what they were "
          "before it, those that a target computed or quantised among them.",
          "compaction, staging write-back, rows quantised or turned a second time, appends into "
          "live rows",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
