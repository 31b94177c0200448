// cache.split_invariance: any split of the same tokens leaves the same rows and outputs.
#include <algorithm>

#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/draw.h"
#include "properties/split.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Scenario;

constexpr const char* kPromise = "split_bits";

Variant with_words(const Variant& way, const char* words) {
  Variant result = way;
  result.words = words;
  result.scenario.steps.clear();
  return result;
}

Variant one_by_one(const Variant& way) {
  return one_token_at_a_time(way, [](std::size_t) { return true; });
}

/// Neighbouring appends as one; `moved` = where each step went.
Variant merged(const Variant& way, std::vector<StepPair>& moved) {
  const Scenario& scenario = way.scenario;
  Variant split = with_words(way, "neighbouring steps as one");
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
      moved.back() = {i, split.scenario.steps.size() - 1};
    } else {
      split.scenario.steps.push_back(scenario.steps[i]);
      moved.emplace_back(i, split.scenario.steps.size() - 1);
    }
  }
  follow(split.same_state, moved);
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
Variant cut_anew(const Variant& way) {
  const Scenario& scenario = way.scenario;
  std::vector<StepPair> joined, moved;
  const Variant whole = merged(way, joined);
  Variant split = with_words(way, "cut at random");
  for (std::size_t i = 0; i < whole.scenario.steps.size(); ++i) {
    const auto* append = std::get_if<Append>(&whole.scenario.steps[i]);
    if (append && splittable(*append)) {
      cut(*append, rc::Random(scenario.fill.seed + i), split.scenario.steps);
    } else {
      split.scenario.steps.push_back(whole.scenario.steps[i]);
    }
    moved.emplace_back(i, split.scenario.steps.size() - 1);
  }
  follow(joined, moved);
  follow(split.same_state, joined);
  return split;
}

constexpr std::size_t kSplits = 3;

/// The variant split in one of kSplits ways.
Variant split_by(std::size_t how, const Variant& way) {
  std::vector<StepPair> moved;
  return how == 0 ? one_by_one(way) : how == 1 ? merged(way, moved) : cut_anew(way);
}

/// Every other split of a variant.
std::vector<Variant> splits(const Variant& way) {
  std::vector<Variant> others;
  for (std::size_t how = 0; how < kSplits; ++how) {
    Variant split = split_by(how, way);
    const auto same = [&](const Variant& other) { return other.scenario == split.scenario; };
    if (split.scenario == way.scenario || std::any_of(others.begin(), others.end(), same)) continue;
    others.push_back(std::move(split));
  }
  return others;
}

Judgement judge(Case& c) {
  VariantJudging judging;
  judging.kind = Kind::split_difference;
  judging.bitwise = c.capabilities().has(kPromise);
  judging.rows_suffice = true;
  judging.none = "no step can be split in another way";
  judging.subject = "the same tokens";
  return judge_variants(c, splits(unchanged(c)), judging);
}

bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  std::vector<Variant> turned;
  for (const Variant& way : ways) {
    const auto first = static_cast<std::size_t>(draw.between(0, kSplits - 1));
    for (std::size_t i = 0; i < kSplits; ++i) {
      Variant other = split_by((first + i) % kSplits, way);
      if (other.scenario == way.scenario || !cannot_run(c.target(), other.scenario).empty()) {
        continue;
      }
      turned.push_back(std::move(other));
      break;
    }
  }
  if (turned.size() != ways.size()) return false;
  ways = std::move(turned);
  return true;
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
      "multi-token paths that evict, stage, append or mask unlike single-token ones",
      inapplicable,
      judge,
      "",
      {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
