// Candidates from a sample, then one try of each candidate on every diverging configuration.
#include "properties/sweep/readings.h"

#include <algorithm>
#include <map>
#include <optional>

#include "model/blindness.h"
#include "model/counter_hash.h"
#include "properties/case.h"
#include "properties/convert.h"
#include "properties/diagnosis.h"

namespace kvcheck::properties {
namespace {

/// Configurations on which every reading is tried before the others get the candidates alone.
constexpr std::size_t kSample = 48;
/// Agreeing configurations that a candidate is held against.
constexpr std::size_t kElsewhere = 192;
/// Beyond this many outputs an explanation would take longer than the sweep.
constexpr double kMostOutputs = 1 << 17;

/// At most `most` of the items, one out of each of as many equal parts. Which one is hashed: equal
/// strides would meet the same values of the axes again and again.
std::vector<std::int64_t> spread(const std::vector<std::int64_t>& items, std::size_t most) {
  if (items.size() <= most) return items;
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t first = i * items.size() / most, end = (i + 1) * items.size() / most;
    chosen.push_back(items[first + model::counter_hash(i, first, end) % (end - first)]);
  }
  return chosen;
}

/// What a target answered to one scenario.
class Answer {
 public:
  Answer(kernels::Target& target, const model::Scenario& scenario)
      : case_(target, scenario),
        profile_(arithmetic_profile(target.capabilities(), scenario)),
        execution_(case_.execution()) {}

  /// Whether every output keeps its bound under the reading; the largest ratio. Nothing where it
  /// does not, or where there is no output.
  std::optional<double> ratio_under(const model::WrongModel& model) {
    const model::Scenario& s = case_.scenario();
    if (!model.concerns(s)) return {};
    model::Oracle wrong(s, profile_, model.reading);
    double worst = -1;
    for (std::size_t step = 0; step < execution_.steps.size(); ++step) {
      const StepAnswer& answer = execution_.steps[step];
      if (answer.status != StepAnswer::Status::ok || !answer.result.output) continue;
      const auto& entries = case_.timeline().steps()[step].entries;
      for (std::int64_t b = 0; b < s.batch; ++b) {
        for (std::int64_t q = 0; q < entries[static_cast<std::size_t>(b)].queries; ++q) {
          const double ratio = worst_of_query(wrong, step, b, q, *answer.result.output);
          if (!(ratio <= 1)) return {};
          worst = std::max(worst, ratio);
        }
      }
    }
    return worst < 0 ? std::nullopt : std::optional(worst);
  }

  /// The readings that explain every row of it.
  std::vector<const model::WrongModel*> all_readings() {
    std::vector<const model::WrongModel*> found;
    if (outputs() > kMostOutputs) return found;
    const model::RowExplanation explained = explain_rows(case_, execution_);
    for (const model::ReadingShare& share : explained.readings) {
      if (share.rows == explained.rows && share.failing == explained.failing) {
        found.push_back(share.model);
      }
    }
    return found;
  }

  std::string nearest() {
    if (outputs() > kMostOutputs) return "";
    const model::RowExplanation explained = explain_rows(case_, execution_);
    return explained.failing == 0 ? "" : explanation_words(explained);
  }

  bool told_apart(const model::WrongModel& model) {
    return model::separation(case_.oracle(), profile_, model).ratio > 1;
  }

 private:
  double worst_of_query(model::Oracle& wrong, std::size_t step, std::int64_t entry,
                        std::int64_t query, const kernels::Tensor& output) const {
    const model::Scenario& s = wrong.scenario();
    double worst = 0;
    for (std::int64_t h = 0; h < s.query_heads && worst <= 1; ++h) {
      for (std::int64_t l = 0; l < s.value_head_size && worst <= 1; ++l) {
        worst = std::max(worst, wrong.bound_ratio(step, entry, query, h, l,
                                                  output_at(output, entry, query, h, l)));
      }
    }
    return worst;
  }

  double outputs() const {
    double queries = 0;
    for (const auto& step : case_.timeline().steps()) {
      for (const auto& entry : step.entries) queries += static_cast<double>(entry.queries);
    }
    return queries *
           static_cast<double>(case_.scenario().query_heads * case_.scenario().value_head_size);
  }

  Case case_;
  model::ArithmeticProfile profile_;
  const Execution& execution_;
};

class Explainer {
 public:
  Explainer(Workers& workers, const Grid& grid, const std::vector<std::int64_t>& diverging,
            const std::vector<std::int64_t>& agreeing, bool of_against,
            const std::function<void(std::int64_t)>& watch)
      : watch_(watch),
        workers_(workers),
        grid_(grid),
        diverging_(diverging),
        agreeing_(spread(agreeing, kElsewhere)),
        of_against_(of_against) {
    result_.found.resize(diverging.size());
    for (std::size_t i = 0; i < diverging.size(); ++i) {
      unexplained_.push_back(static_cast<std::int64_t>(i));
    }
  }

  /// Each round takes a new sample of what is left, until a sample brings no reading.
  Explanations run() {
    while (!unexplained_.empty() && !workers_.interrupted()) {
      const auto candidates = ranked(readings_of(spread(unexplained_, kSample)));
      if (candidates.empty()) break;
      if (!apply(candidates)) break;
    }
    return std::move(result_);
  }

 private:
  using Model = const model::WrongModel*;

  kernels::Target& target_of(WorkerTargets& targets) const {
    return of_against_ ? *targets.against : *targets.target;
  }

  /// How many of the sample each reading explains.
  std::map<Model, std::int64_t> readings_of(const std::vector<std::int64_t>& sample) {
    std::vector<std::vector<Model>> found(sample.size());
    workers_.run(std::ssize(sample), [&](WorkerTargets& targets, std::int64_t i) {
      const auto at = static_cast<std::size_t>(sample[static_cast<std::size_t>(i)]);
      found[static_cast<std::size_t>(i)] =
          Answer(target_of(targets), grid_.at(diverging_[at]).scenario).all_readings();
    });
    std::map<Model, std::int64_t> counts;
    for (const auto& readings : found) {
      for (const Model model : readings) ++counts[model];
    }
    return counts;
  }

  /// Best first.
  std::vector<Model> ranked(const std::map<Model, std::int64_t>& counts) {
    std::vector<Model> order;
    for (const auto& [model, count] : counts) order.push_back(model);
    for (const Model model : order) ask_elsewhere(model);
    // Models lie in one array, so that their addresses are in the order of the catalogue.
    std::stable_sort(order.begin(), order.end(), [&](Model a, Model b) {
      if (counts.at(a) != counts.at(b)) return counts.at(a) > counts.at(b);
      return elsewhere(a).differs < elsewhere(b).differs;
    });
    return order;
  }

  const ReadingElsewhere& elsewhere(Model model) const {
    return *std::ranges::find(result_.elsewhere, model, &ReadingElsewhere::model);
  }

  void ask_elsewhere(Model model) {
    if (std::ranges::count(result_.elsewhere, model, &ReadingElsewhere::model) > 0) return;
    std::vector<char> differs(agreeing_.size(), 0);
    workers_.run(std::ssize(agreeing_), [&](WorkerTargets& targets, std::int64_t i) {
      const model::Scenario scenario = grid_.at(agreeing_[static_cast<std::size_t>(i)]).scenario;
      if (!model->concerns(scenario)) return;
      const auto profile = arithmetic_profile(target_of(targets).capabilities(), scenario);
      model::Oracle right(scenario, profile);
      differs[static_cast<std::size_t>(i)] =
          model::separation(right, profile, *model).ratio > model::kSeparationSeen ? 1 : 0;
    });
    result_.elsewhere.push_back(
        {model, std::ssize(agreeing_), std::count(differs.begin(), differs.end(), 1)});
  }

  /// Gives every unexplained configuration the first candidate that explains it. False where none
  /// was explained.
  bool apply(const std::vector<Model>& candidates) {
    workers_.run(
        std::ssize(unexplained_),
        [&](WorkerTargets& targets, std::int64_t i) {
          const auto at = static_cast<std::size_t>(unexplained_[static_cast<std::size_t>(i)]);
          Answer answer(target_of(targets), grid_.at(diverging_[at]).scenario);
          for (const Model model : candidates) {
            const auto ratio = answer.ratio_under(*model);
            if (!ratio || !answer.told_apart(*model)) continue;
            result_.found[at] = {model, *ratio};
            return;
          }
        },
        watch_);
    const auto before = unexplained_.size();
    std::erase_if(unexplained_, [&](std::int64_t i) {
      return result_.found[static_cast<std::size_t>(i)].model != nullptr;
    });
    return unexplained_.size() < before;
  }

  const std::function<void(std::int64_t)>& watch_;
  Workers& workers_;
  const Grid& grid_;
  const std::vector<std::int64_t>& diverging_;
  std::vector<std::int64_t> agreeing_;
  bool of_against_;
  std::vector<std::int64_t> unexplained_;  // Indices into diverging_.
  Explanations result_;
};

}  // namespace

Explanations explain_configurations(Workers& workers, const Grid& grid,
                                    const std::vector<std::int64_t>& diverging,
                                    const std::vector<std::int64_t>& agreeing, bool of_against,
                                    const std::function<void(std::int64_t)>& watch) {
  return Explainer(workers, grid, diverging, agreeing, of_against, watch).run();
}

std::string nearest_reading(Workers& workers, const Grid& grid, std::int64_t index,
                            bool of_against) {
  std::string words;
  workers.run(1, [&](WorkerTargets& targets, std::int64_t) {
    kernels::Target& target = of_against ? *targets.against : *targets.target;
    if (!target.capabilities().outputs) return;
    words = Answer(target, grid.at(index).scenario).nearest();
  });
  return words;
}

}  // namespace kvcheck::properties
