// A past before the steps.
#include "properties/audit/stretch.h"

#include <algorithm>

#include "model/timeline.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

/// Multiplications that the exact model may spend on one run of a scenario.
constexpr std::int64_t kMostWork = 4'000'000;

std::int64_t longest_past(const model::Scenario& s) {
  const auto* past = std::get_if<model::Past>(&s.steps.front());
  return past ? *std::max_element(past->tokens.begin(), past->tokens.end()) : 0;
}

/// Lanes multiplied for all queries, if each saw the whole context.
std::int64_t work(const model::Scenario& s, std::int64_t context) {
  std::int64_t queries = 0;
  for (const model::Step& step : s.steps) {
    const auto* append = std::get_if<model::Append>(&step);
    if (append == nullptr) continue;
    for (const std::int64_t count : append->queries) queries += count;
  }
  return queries * s.query_heads * (s.head_size + s.value_head_size) * context;
}

}  // namespace

std::optional<model::Scenario> stretched(const kernels::Capabilities& target,
                                         const model::Scenario& scenario, std::int64_t context,
                                         bool wide) {
  if (scenario.steps.empty() || scenario.fill.kind == model::FillKind::literal) return {};
  model::Scenario s = scenario;
  std::int64_t added = std::max<std::int64_t>(1, context - longest_past(s));
  if (s.cache.layout == model::LayoutKind::block && !wide) {
    const std::int64_t block = s.cache.capacity - *s.cache.window_size + 1;
    added = std::max<std::int64_t>(1, added / block) * block;
  }
  if (work(s, added) > kMostWork) return {};
  if (auto* past = std::get_if<model::Past>(&s.steps.front())) {
    for (std::int64_t& tokens : past->tokens) tokens += added;
  } else {
    s.steps.insert(s.steps.begin(), model::Past{std::vector<std::int64_t>(
                                        static_cast<std::size_t>(s.batch), added)});
  }
  const bool grows = wide || s.cache.layout == model::LayoutKind::full;
  if (grows && s.cache.capacity > 0) s.cache.capacity += added;
  if (wide && s.cache.window_size && *s.cache.window_size > 0) *s.cache.window_size += added;
  s = model::normalise(s);
  if (!model::validate(s).empty() || !unsupported_reason(target, s).empty()) return {};
  return s;
}

}  // namespace kvcheck::properties
