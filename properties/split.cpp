// Token by token.
#include "properties/split.h"

#include <algorithm>

namespace kvcheck::properties {

using model::Append;

bool splittable(const Append& append) { return append.tokens == append.queries; }

Variant one_token_at_a_time(const Variant& way, const std::function<bool(std::size_t)>& which) {
  Variant split = way;
  split.words = "one token at a time";
  split.scenario.steps.clear();
  std::vector<StepPair> moved;
  moved.reserve(way.scenario.steps.size());
  for (std::size_t i = 0; i < way.scenario.steps.size(); ++i) {
    const auto* append = std::get_if<Append>(&way.scenario.steps[i]);
    if (!append || !splittable(*append) || !which(i)) {
      split.scenario.steps.push_back(way.scenario.steps[i]);
    } else {
      const std::int64_t longest = *std::max_element(append->tokens.begin(), append->tokens.end());
      for (std::int64_t t = 0; t < longest; ++t) {
        Append single = *append;
        for (std::size_t b = 0; b < single.tokens.size(); ++b) {
          single.tokens[b] = single.queries[b] = t < append->tokens[b] ? 1 : 0;
        }
        split.scenario.steps.emplace_back(std::move(single));
      }
    }
    moved.emplace_back(i, split.scenario.steps.size() - 1);
  }
  follow(split.same_state, moved);
  return split;
}

}  // namespace kvcheck::properties
