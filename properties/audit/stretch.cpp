// A past before the steps.
#include "properties/audit/stretch.h"

#include <algorithm>

#include "model/timeline.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

/// Multiplications that the exact model may spend on one run of a scenario.
constexpr std::int64_t kMostWork = 1'000'000;

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

/// Tokens to add, in whole blocks where a windowed cache keeps its size.
std::int64_t added_tokens(const model::Scenario& s, std::int64_t context, Stretch how) {
  const std::int64_t added = std::max<std::int64_t>(1, context - longest_past(s));
  if (s.cache.layout != model::LayoutKind::block || how == Stretch::wide) return added;
  const std::int64_t block = s.cache.capacity - *s.cache.window_size + 1;
  return std::max<std::int64_t>(1, added / block) * block;
}

bool add_to_first_append(model::Scenario& s, std::int64_t added) {
  auto* append = std::get_if<model::Append>(&s.steps.front());
  if (append == nullptr || s.op != model::Operator::attention) return false;
  for (std::int64_t& tokens : append->tokens) tokens += added;
  return true;
}

void add_past(model::Scenario& s, std::int64_t added, bool last_alone) {
  auto* past = std::get_if<model::Past>(&s.steps.front());
  if (past == nullptr) {
    const auto entries = static_cast<std::size_t>(s.batch);
    s.steps.insert(s.steps.begin(), model::Past{std::vector<std::int64_t>(entries, 0)});
    past = &std::get<model::Past>(s.steps.front());
  }
  for (std::size_t b = last_alone ? past->tokens.size() - 1 : 0; b < past->tokens.size(); ++b) {
    past->tokens[b] += added;
  }
}

}  // namespace

std::optional<model::Scenario> stretched(const kernels::Capabilities& target,
                                         const model::Scenario& scenario, std::int64_t context,
                                         Stretch how) {
  if (scenario.steps.empty() || scenario.fill.kind == model::FillKind::literal) return {};
  model::Scenario s = scenario;
  const std::int64_t added = added_tokens(s, context, how);
  if (work(s, added) > kMostWork) return {};
  if (how != Stretch::first_append) {
    add_past(s, added, how == Stretch::last_entry);
  } else if (!add_to_first_append(s, added)) {
    return {};
  }
  const bool grows = how == Stretch::wide || s.cache.layout == model::LayoutKind::full;
  if (grows && s.cache.capacity > 0) s.cache.capacity += added;
  if (how == Stretch::wide && s.cache.window_size && *s.cache.window_size > 0) {
    *s.cache.window_size += added;
  }
  s = model::normalise(s);
  if (!model::validate(s).empty() || !unsupported_reason(target, s).empty()) return {};
  return s;
}

}  // namespace kvcheck::properties
