// cache.split_invariance: any split of the same tokens leaves the same rows and outputs.
#include <algorithm>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/compare_runs.h"
#include "properties/convert.h"
#include "properties/draw.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Scenario;

/// Another split of a scenario, and the steps after which both hold the same tokens.
struct Split {
  Scenario scenario;
  std::vector<std::pair<std::size_t, std::size_t>> same_state;  // step here, step there
  std::string words;
};

bool splittable(const Append& append) { return append.tokens == append.queries; }

/// Every append token by token; entries that have run out stay idle.
Split one_by_one(const Scenario& scenario) {
  Split split{scenario, {}, "one token at a time"};
  split.scenario.steps.clear();
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    const auto* append = std::get_if<Append>(&scenario.steps[i]);
    if (!append || !splittable(*append)) {
      split.scenario.steps.push_back(scenario.steps[i]);
    } else {
      const std::int64_t longest = *std::max_element(append->tokens.begin(), append->tokens.end());
      for (std::int64_t t = 0; t < longest; ++t) {
        Append single = *append;
        for (std::size_t b = 0; b < single.tokens.size(); ++b) {
          single.tokens[b] = single.queries[b] = t < append->tokens[b] ? 1 : 0;
        }
        split.scenario.steps.push_back(single);
      }
    }
    split.same_state.emplace_back(i, split.scenario.steps.size() - 1);
  }
  return split;
}

/// Neighbouring appends as one.
Split merged(const Scenario& scenario) {
  Split split{scenario, {}, "neighbouring steps as one"};
  split.scenario.steps.clear();
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    const auto* append = std::get_if<Append>(&scenario.steps[i]);
    auto* last =
        split.scenario.steps.empty() ? nullptr : std::get_if<Append>(&split.scenario.steps.back());
    if (append && last && splittable(*append) && splittable(*last) &&
        append->generation == last->generation) {
      for (std::size_t b = 0; b < last->tokens.size(); ++b) {
        last->tokens[b] += append->tokens[b];
        last->queries[b] = last->tokens[b];
      }
      split.same_state.back() = {i, split.scenario.steps.size() - 1};
    } else {
      split.scenario.steps.push_back(scenario.steps[i]);
      split.same_state.emplace_back(i, split.scenario.steps.size() - 1);
    }
  }
  return split;
}

/// Cuts an append into parts of 1 to shortest - 1 tokens, as long as every entry keeps a token;
/// the last part has what is left of each entry.
void cut(Append rest, rc::Random random, std::vector<model::Step>& parts) {
  Draw draw(random);
  for (;;) {
    const std::int64_t shortest = *std::min_element(rest.tokens.begin(), rest.tokens.end());
    if (shortest < 2) break;
    const std::int64_t count = draw.between(1, shortest - 1);
    Append part = rest;
    for (std::size_t b = 0; b < rest.tokens.size(); ++b) {
      part.tokens[b] = part.queries[b] = count;
      rest.tokens[b] = rest.queries[b] -= count;
    }
    parts.emplace_back(std::move(part));
  }
  parts.emplace_back(std::move(rest));
}

/// Neighbouring appends as one, cut anew at places that depend on the scenario's seed.
Split cut_anew(const Scenario& scenario) {
  const Split whole = merged(scenario);
  Split split{scenario, {}, "cut at random"};
  split.scenario.steps.clear();
  std::vector<std::size_t> last_part;
  for (std::size_t i = 0; i < whole.scenario.steps.size(); ++i) {
    const auto* append = std::get_if<Append>(&whole.scenario.steps[i]);
    if (append && splittable(*append)) {
      cut(*append, rc::Random(scenario.fill.seed + i), split.scenario.steps);
    } else {
      split.scenario.steps.push_back(whole.scenario.steps[i]);
    }
    last_part.push_back(split.scenario.steps.size() - 1);
  }
  for (const auto& [here, there] : whole.same_state) {
    split.same_state.emplace_back(here, last_part[there]);
  }
  return split;
}

Judgement compare(Case& c, const Split& split) {
  const model::Timeline timeline(split.scenario);
  const model::Fill fill(split.scenario, timeline);
  const Execution run = execute(c.target(), split.scenario, timeline, fill);
  if (!run.complete) return Judgement::skipped(broke_off(split.scenario, run));
  const OtherRun other{split.scenario, timeline, run};
  const bool bits = c.capabilities().has("split_bits");
  for (const auto& [here, there] : split.same_state) {
    if (!c.timeline().steps()[here].defined) break;
    if (auto difference = compare_rows(c, other, here, there, bits)) {
      return Judgement::failed(
          Kind::split_difference,
          fmt::format("the same tokens {}: {}", split.words, difference->sentence),
          difference->hint);
    }
  }
  if (auto difference = compare_outputs(c, other, bits)) {
    Judgement judgement = Judgement::failed(
        Kind::split_difference,
        fmt::format("the same tokens {}: {}", split.words, difference->sentence), difference->hint);
    judgement.max_ratio = difference->ratio;
    return judgement;
  }
  return {};
}

Judgement judge(Case& c) {
  if (!c.execution().complete) return Judgement::skipped(broke_off(c.scenario(), c.execution()));
  std::string reason = "no step can be split in another way";
  bool compared = false;
  std::vector<Scenario> seen{c.scenario()};
  for (const Split& split :
       {one_by_one(c.scenario()), merged(c.scenario()), cut_anew(c.scenario())}) {
    if (std::find(seen.begin(), seen.end(), split.scenario) != seen.end()) continue;
    seen.push_back(split.scenario);
    if (const std::string why = cannot_run(c.target(), split.scenario); !why.empty()) {
      reason = why;
      continue;
    }
    const Judgement judgement = compare(c, split);
    if (judgement.verdict == Verdict::failed) return judgement;
    if (judgement.verdict == Verdict::passed)
      compared = true;
    else
      reason = judgement.text;
  }
  return compared ? Judgement{} : Judgement::skipped(reason);
}

std::string inapplicable(const Scenario& scenario, const kernels::Capabilities&) {
  if (!scenario.causal) return "without a causal mask early queries see later tokens of their step";
  return fixed_data_reason(scenario);
}

}  // namespace

Property split_invariance_property() {
  return {
      "cache.split_invariance",
      "Any split of the same tokens into steps leaves the same rows and outputs: equal bits "
      "where the target promises them; else outputs within twice the bound, and rows that differ "
      "only as far as the target computes them.",
      "multi-token paths that evict, stage, append or mask unlike single-token ones", inapplicable,
      judge};
}

}  // namespace kvcheck::properties
