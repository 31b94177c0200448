// Explanation of a minimal scenario.
#include "shrinkers/explain.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "model/scenario_json.h"
#include "shrinkers/fields.h"
#include "shrinkers/variations.h"

namespace kvcheck::shrinkers {
namespace {

auto cost(const Variation& v) { return std::tuple(v.dragged, v.distance, v.area); }

/// Asks each distinct scenario once, as long as the budget lasts.
class Judge {
 public:
  Judge(const StillFails& still_fails, std::int64_t budget, const Judged& known)
      : still_fails_(still_fails), budget_(budget), known_(known) {}

  /// Empty when the budget is spent.
  std::optional<bool> fails(const model::Scenario& scenario) {
    const std::string hash = model::content_hash(scenario);
    if (const auto it = known_.find(hash); it != known_.end()) return it->second;
    if (evaluations_ >= budget_) return std::nullopt;
    ++evaluations_;
    return known_.emplace(hash, still_fails_(scenario)).first->second;
  }

  std::int64_t evaluations() const { return evaluations_; }

 private:
  const StillFails& still_fails_;
  std::int64_t budget_;
  Judged known_;
  std::int64_t evaluations_ = 0;
};

void add_word(std::string& list, const std::string& word) {
  list += (list.empty() ? "" : ", ") + word;
}

FieldVerdict& verdict_for(std::vector<FieldVerdict>& fields, const Variation& variation) {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const FieldVerdict& verdict) {
    return verdict.field == variation.field;
  });
  if (it != fields.end()) return *it;
  return fields.emplace_back(FieldVerdict{variation.field, variation.value, false, "", ""});
}

std::string words_for(const model::Scenario& minimal, const Variation& variation) {
  if (variation.other != "removed") return difference(minimal, variation.scenario);
  const std::string rest = difference(minimal, variation.scenario, false);
  return fmt::format("{} ({}) removed{}{}", variation.field, variation.value,
                     rest.empty() ? "" : ", ", rest);
}

}  // namespace

Explanation explain(const model::Scenario& minimal, const StillFails& still_fails,
                    std::int64_t evaluations, const Judged& known) {
  const std::vector<Variation> all = variations(minimal);
  Explanation result;
  for (const Variation& variation : all) verdict_for(result.fields, variation);

  // The cheapest edits are asked first, so that a short budget still finds the nearest one.
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return cost(all[a]) < cost(all[b]); });
  Judge judge(still_fails, evaluations, known);
  for (const std::size_t i : order) {
    const auto fails = judge.fails(all[i].scenario);
    if (!fails) continue;
    FieldVerdict& verdict = verdict_for(result.fields, all[i]);
    add_word(verdict.tried, all[i].other);
    if (*fails) continue;
    verdict.matters = true;
    add_word(verdict.passing, all[i].other);
    if (!result.nearest_passing) {
      result.nearest_passing = all[i].scenario;
      result.nearest_change = words_for(minimal, all[i]);
    }
  }
  result.evaluations = judge.evaluations();
  return result;
}

}  // namespace kvcheck::shrinkers
