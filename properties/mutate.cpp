// The changes.
#include "properties/mutate.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

constexpr int kTries = 8;

/// Longest a step grows to: what is mutated again and again must stay cheap.
constexpr std::int64_t kMostTokens = 256;

void change_data(Scenario& s, Draw& draw) {
  if (model::is_position_fill(s.fill.kind) || s.fill.kind == model::FillKind::literal) return;
  s.fill.seed = draw.bits() & 0xffffffffu;
  if (draw.percent(20)) {
    s.fill.kind =
        s.fill.kind == model::FillKind::random ? model::FillKind::needles : model::FillKind::random;
  }
}

void move_counts(std::vector<std::int64_t>& counts, Draw& draw, std::int64_t least) {
  const bool twice = draw.percent(30);
  const std::int64_t by = draw.pick({-2, -1, 1, 2});
  for (auto& n : counts) n = std::clamp(twice ? 2 * n : n + by, least, kMostTokens);
}

void change_step(Scenario& s, Draw& draw) {
  if (s.steps.empty()) return;
  const auto at =
      static_cast<std::size_t>(draw.between(0, static_cast<std::int64_t>(s.steps.size()) - 1));
  if (auto* append = std::get_if<Append>(&s.steps[at])) {
    const bool tied = append->queries == append->tokens;
    move_counts(append->tokens, draw, append->tokens.front() == 0 ? 0 : 1);
    if (tied) append->queries = append->tokens;
    if (!tied && draw.percent(30)) move_counts(append->queries, draw, 0);
  } else if (auto* past = std::get_if<Past>(&s.steps[at])) {
    move_counts(past->tokens, draw, 0);
  } else {
    move_counts(std::get<Rollback>(s.steps[at]).tokens, draw, 0);
  }
}

void change_list(Scenario& s, Draw& draw) {
  if (s.steps.empty()) return;
  const auto size = static_cast<std::int64_t>(s.steps.size());
  const auto at = draw.between(0, size - 1);
  const auto step = s.steps[static_cast<std::size_t>(at)];
  if (size > 1 && draw.percent(50)) {
    s.steps.erase(s.steps.begin() + at);
  } else if (!std::holds_alternative<Past>(step)) {
    s.steps.insert(s.steps.begin() + at, step);
  }
}

void change_cache(Scenario& s, Draw& draw) {
  if (s.cache.window_size) *s.cache.window_size += draw.pick({-1, 1});
  if (s.cache.layout != model::LayoutKind::full) s.cache.capacity += draw.pick({-1, 0, 1, 4});
}

void change_shape(Scenario& s, Draw& draw) {
  const std::int64_t group = s.query_heads / std::max<std::int64_t>(1, s.kv_heads);
  if (draw.percent(40)) s.kv_heads = std::max<std::int64_t>(1, s.kv_heads + draw.pick({-1, 1}));
  s.query_heads = s.kv_heads * std::max<std::int64_t>(1, group + draw.pick({-1, 0, 1}));
  if (draw.percent(40)) {
    s.head_size = draw.percent(50) ? 2 * s.head_size : std::max<std::int64_t>(1, s.head_size / 2);
    s.head_size = std::min<std::int64_t>(s.head_size, 128);
    if (s.op == model::Operator::gqa) s.value_head_size = s.head_size;
  }
}

void change_values(Scenario& s, Draw& draw) {
  if (draw.percent(50)) {
    s.scale = draw.pick(std::vector<double>{0.125, 0.25, 0.5, 1, 2});
  } else {
    s.softcap = draw.pick(std::vector<double>{0, 0.5, 2, 20, 50});
  }
}

void change_type(Scenario& s, const kernels::Capabilities& target, Draw& draw) {
  const std::vector<std::string> types(target.element_types.begin(), target.element_types.end());
  if (!types.empty()) s.element_type = *model::element_type_from(draw.pick(types));
}

void change(Scenario& s, const kernels::Capabilities& target, Draw& draw) {
  switch (draw.between(0, 9)) {
    case 0:
    case 1:
    case 2:
      return change_data(s, draw);
    case 3:
    case 4:
      return change_step(s, draw);
    case 5:
      return change_list(s, draw);
    case 6:
      return change_cache(s, draw);
    case 7:
      return change_shape(s, draw);
    case 8:
      return change_values(s, draw);
    default:
      return change_type(s, target, draw);
  }
}

}  // namespace

double cost_of(const Scenario& scenario, const model::Timeline& timeline) {
  double pairs = 0;
  for (const auto& step : timeline.steps()) {
    for (const auto& entry : step.entries) {
      pairs += static_cast<double>(entry.queries) * static_cast<double>(entry.length + 1);
    }
  }
  return pairs * static_cast<double>(scenario.query_heads) *
         static_cast<double>(scenario.head_size + scenario.value_head_size);
}

std::optional<Scenario> mutate(const Scenario& scenario, const kernels::Capabilities& target,
                               Draw& draw) {
  for (int i = 0; i < kTries; ++i) {
    Scenario s = scenario;
    for (auto changes = draw.between(1, 3); changes > 0; --changes) change(s, target, draw);
    s = model::normalise(std::move(s));
    if (s == scenario || !model::validate(s).empty() || !unsupported_reason(target, s).empty()) {
      continue;
    }
    const model::Timeline timeline(s);
    if (cost_of(s, timeline) <= kMostTargetedCost) return s;
  }
  return std::nullopt;
}

}  // namespace kvcheck::properties
