// Sentences.
#include "properties/evidence_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "properties/position_text.h"

namespace kvcheck::properties {
namespace {

using model::EntryStep;
using model::Scenario;

std::string range_text(std::int64_t begin, std::int64_t end) {
  return end - begin == 1 ? fmt::format("position {}", begin)
                          : fmt::format("positions {} to {}", begin, end - 1);
}

std::string entry_prefix(const Scenario& scenario, std::size_t entry) {
  return scenario.batch > 1 ? fmt::format(", entry {}", entry) : "";
}

std::string step_sentence(const Scenario& scenario, const EntryStep& state, std::size_t step,
                          std::size_t entry) {
  std::string text = fmt::format("Step {}{}: ", step, entry_prefix(scenario, entry));
  const model::Step& action = scenario.steps[step];
  if (std::holds_alternative<model::Past>(action)) {
    text += fmt::format("the cache starts with {} token{} ({})", state.length,
                        state.length == 1 ? "" : "s",
                        state.length > 0 ? range_text(0, state.length) : "none");
  } else if (std::holds_alternative<model::Rollback>(action)) {
    text += fmt::format("the newest {} tokens are dropped, {} remain", state.past - state.length,
                        state.length);
  } else {
    text += state.length > state.past
                ? fmt::format("{} appended", range_text(state.past, state.length))
                : "nothing appended";
    if (state.queries == 0) text += ", no query asked";
    if (state.queries > 0) {
      text += fmt::format(", {} asked at {}", state.queries == 1 ? "one query" : "queries",
                          range_text(state.origin.value, state.origin.value + state.queries));
    }
  }
  if (scenario.cache.layout != model::LayoutKind::full) {
    text += fmt::format("; {} rows resident, {} in row 0", state.resident,
                        range_text(state.first_position.value, state.first_position.value + 1));
    if (state.evicted > 0) text += fmt::format(", {} evicted", state.evicted);
    if (state.staged) text += ", on a temporary buffer";
  }
  return text + ".";
}

std::string causal_rule(const Scenario& scenario, const EntryStep& state) {
  if (!scenario.causal) return "there is no causal mask";
  if (scenario.op == model::Operator::gqa) return "causal: keys up to the query's own position";
  if (scenario.nonpad_kv_seqlen) {
    return fmt::format(
        "causal: query i sees keys up to i + offset, offset = {} valid keys - {} "
        "queries = {}",
        state.length, state.queries, state.origin.value);
  }
  return state.past > 0
             ? fmt::format("causal: query i sees keys up to i + past, past = {}", state.past)
             : "causal: without a past query i sees keys up to i";
}

}  // namespace

std::vector<std::string> timeline_words(const Scenario& scenario, const model::Timeline& timeline) {
  constexpr std::size_t kMost = 12;
  std::vector<std::string> words;
  const std::size_t total = scenario.steps.size() * static_cast<std::size_t>(scenario.batch);
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    for (std::size_t b = 0; b < timeline.steps()[i].entries.size(); ++b) {
      if (words.size() == kMost) {
        words.push_back(fmt::format("{} more such sentences are left out.", total - kMost));
        return words;
      }
      words.push_back(step_sentence(scenario, timeline.steps()[i].entries[b], i, b));
    }
  }
  return words;
}

std::vector<std::string> visibility_words(const Scenario& scenario, const model::Timeline& timeline,
                                          const MeasuredQuery& query) {
  const auto& state = timeline.steps()[query.step].entries[static_cast<std::size_t>(query.entry)];
  std::string rule = causal_rule(scenario, state);
  if (scenario.cache.window_size) {
    rule += scenario.causal
                ? fmt::format("; window: the last {} of them, its own included",
                              *scenario.cache.window_size)
                : fmt::format("; window: no more than {} keys before its own position",
                              std::max<std::int64_t>(0, *scenario.cache.window_size - 1));
  }
  if (scenario.right_window_size) {
    rule += fmt::format("; of those after its own position the first {} alone",
                        *scenario.right_window_size);
  }
  if (scenario.mask.kind != model::MaskKind::none) rule += "; then the mask hides some";
  std::vector<std::string> words{
      fmt::format("The rule for query {} of step {} (position {}): {}.", query.query, query.step,
                  query.position.value, rule),
      fmt::format("So it may see keys {}.", positions_text(query.expected)),
      fmt::format("With all logits 0 the target gave weight to keys {}.",
                  positions_text(query.observed))};
  for (const auto& key : difference(query.observed, query.expected)) {
    const char* why = key.value >= state.length ? "does not exist"
                      : scenario.causal && key.value > query.position.value
                          ? "is later than the query"
                          : "is not among those";
    words.push_back(fmt::format("Key {} {}: it leaks.", key.value, why));
  }
  const auto missing = difference(query.expected, query.observed);
  if (!missing.empty()) {
    words.push_back(
        fmt::format("Keys {} have no weight: they are missing.", positions_text(missing)));
  }
  return words;
}

}  // namespace kvcheck::properties
