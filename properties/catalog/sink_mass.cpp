// sinks.mass: a sink has the weight of one more key and no value.
// Q = 0 and V = 1: n keys of weight 1 and a sink of weight e = exp(its logit) give n / (n + e),
// e = 1 under smooth softmax, which a head sink of 0 equals.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/error_bound.h"
#include "model/parameters.h"
#include "model/visibility.h"
#include "properties/catalog.h"
#include "properties/catalog/value_launch.h"
#include "properties/convert.h"
#include "properties/digit_check.h"

namespace kvcheck::properties {
namespace {

/// The output of n keys and a sink, and how far a target may be from it.
struct Share {
  double output = 0, bound = 0;
};

Share share(const model::ArithmeticProfile& profile, std::int64_t head_size, std::int64_t keys,
            double sink_logit) {
  if (keys == 0) return {};
  const auto n = static_cast<double>(keys);
  const double sink = std::exp(sink_logit);
  Share result;
  result.output = n / (n + sink);
  std::vector<model::KeyTerm> terms(static_cast<std::size_t>(keys) + 1);
  for (auto& term : terms) term.weight = 1 / (n + sink);
  auto& last = terms.back();
  last.product = last.score = sink_logit;
  last.weight = sink / (n + sink);
  model::RowBound row(profile);
  row.set_row(head_size, terms, (n + sink) / std::exp(std::max(0.0, sink_logit)));
  model::LaneSums sums;
  const double o = result.output;
  for (std::size_t j = 0; j < terms.size(); ++j) {
    const double value = j + 1 < terms.size() ? 1 : 0;
    sums.spread += terms[j].weight * std::abs(value - o) * row.growth()[j];
  }
  sums.magnitude = o;
  sums.values = n;
  sums.widest = std::max(o, 1 - o);
  sums.widest_error = 0;
  result.bound = row.terms(sums, o).total();
  return result;
}

Judgement compare(Case& c, const model::Scenario& launch, const Execution& run,
                  bool smooth_as_zero) {
  const auto profile = arithmetic_profile(c.capabilities(), launch);
  bool any = false;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (run.steps[i].status != StepAnswer::Status::ok || !run.steps[i].result.output) continue;
    for (std::int64_t b = 0; b < launch.batch; ++b) {
      const auto& state = c.timeline().steps()[i].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; q < state.queries; ++q) {
        for (std::int64_t h = 0; h < launch.query_heads; ++h) {
          any = true;
          const auto keys = static_cast<std::int64_t>(
              model::visible_positions(launch, c.timeline(), i, b, h, q).size());
          const double logit = launch.head_sink ? model::sink_logit(launch, h) : 0;
          const Share expected = share(profile, launch.head_size, keys, logit);
          for (std::int64_t l = 0; l < launch.value_head_size; ++l) {
            const double observed = output_at(*run.steps[i].result.output, b, q, h, l);
            if (std::abs(observed - expected.output) <= expected.bound) continue;
            shrinkers::Hint hint;
            hint.step = static_cast<std::int64_t>(i);
            hint.entry = b;
            hint.query_head = h;
            return Judgement::failed(
                Kind::over_bound,
                fmt::format("step {} ({}), batch entry {}, head {}, query at position {}: {} keys "
                            "of logit 0 beside a sink of logit {:.6g}{} have the mass {:.9g}, "
                            "found {:.9g}",
                            i, model::describe(launch.steps[i]), b, h, state.origin.value + q, keys,
                            logit, smooth_as_zero ? " in place of smooth softmax" : "",
                            expected.output, observed),
                hint);
          }
        }
      }
    }
  }
  if (!run.complete) return Judgement::skipped(broke_off(launch, run));
  return any ? Judgement{} : Judgement::skipped("the scenario asks no query");
}

/// Whether the launches that show positions show the mass as well: each of their lanes is a part of
/// n / (n + e).
bool shown_by_digits(Case& c) {
  return c.mode() == Case::Mode::bundled && c.digits().check().clear();
}

/// All values 1, and what else is changed.
class OnesLaunch {
 public:
  explicit OnesLaunch(Case& c)
      : c_(c),
        launch_(with_position_fill(c.scenario(), model::FillKind::position_code, 0)),
        fill_(launch_, c.timeline()),
        interposer_(value_interposer(
            c, launch_, [](std::int64_t, std::int64_t, std::int64_t) { return 1.0; })) {}

  Judgement judge() const { return run(interposer_, false); }

  Judgement judge_with_zero_sink() const {
    Interposer zero = interposer_;
    zero.config = [this](kernels::SessionConfig& config) {
      interposer_.config(config);
      config.smooth_softmax = false;
      config.head_sink = kernels::Tensor::zeros(config.element_type, {config.query_heads});
    };
    return run(zero, true);
  }

 private:
  Judgement run(const Interposer& interposer, bool smooth_as_zero) const {
    const Execution execution =
        execute_interposed(c_, launch_, c_.timeline(), fill_, interposer, {.want_rows = false});
    return compare(c_, launch_, execution, smooth_as_zero);
  }

  Case& c_;
  model::Scenario launch_;
  model::Fill fill_;
  Interposer interposer_;
};

Judgement judge(Case& c) {
  const bool shown = shown_by_digits(c);
  const bool zero_sink =
      c.scenario().smooth_softmax && !c.scenario().head_sink && c.capabilities().has("head_sink");
  if (shown && !zero_sink) return {};
  const OnesLaunch launch(c);
  Judgement judgement = shown ? Judgement{} : launch.judge();
  if (judgement.verdict != Verdict::passed || !zero_sink) return judgement;
  Judgement zero = launch.judge_with_zero_sink();
  return shown && zero.verdict == Verdict::skipped ? judgement : zero;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  if (!scenario.head_sink && !scenario.smooth_softmax) return "the scenario has no sink";
  return fixed_tensors_reason(scenario);
}

}  // namespace

Property sink_mass_property() {
  return {"sinks.mass",
          "With logits of 0 and values of 1 the output is n/(n+e), e what the sink of the head "
          "weighs; smooth softmax is a head sink of 0.",
          "sinks left out, counted as a key with a value, scaled, of another head, in every split",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
