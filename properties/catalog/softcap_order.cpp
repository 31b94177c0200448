// softcap.order: scale, softcap, bias, mask, in this order.
// s_j = c * tanh(scale * q.k_j / c) + bias_j, and a hidden key has no weight whatever c is. The
// case is run with c = 0.5, where biases of up to 2 and logits of the size of 1 lie beyond the cap:
// each wrong order moves most outputs by far more than their bounds.
//
// Scenarios of a search are run up to one step, drawn by content, whose outputs are judged; others,
// and those that do not hold there, are judged whole.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "properties/bundle.h"
#include "properties/catalog.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kId = "softcap.order";

using model::Scenario;

constexpr double kCap = 0.5;
constexpr double kScale = 0.75;

Scenario capped(const Scenario& scenario) {
  Scenario s = scenario;
  s.softcap = kCap;
  s.scale = kScale;
  s.fill.kind = model::FillKind::random;
  if (s.mask.kind == model::MaskKind::none) {
    s.mask.kind = model::MaskKind::additive;
    s.mask.rank = s.op == model::Operator::gqa ? 4 : 2;
  }
  return model::normalise(s);
}

/// The appends that ask queries, of the steps that are defined.
std::vector<std::size_t> asking_steps(const Scenario& scenario, const model::Timeline& timeline) {
  std::vector<std::size_t> steps;
  for (std::size_t i = 0; i < scenario.steps.size() && timeline.steps()[i].defined; ++i) {
    const auto* append = std::get_if<model::Append>(&scenario.steps[i]);
    if (append && *std::ranges::max_element(append->queries) > 0) steps.push_back(i);
  }
  return steps;
}

/// The largest bound ratio of one step's outputs.
double largest_ratio(model::Oracle& oracle, std::size_t step, const kernels::Tensor& output) {
  const auto& s = oracle.scenario();
  double largest = 0;
  std::vector<double> observed(static_cast<std::size_t>(s.value_head_size));
  std::vector<double> ratios(observed.size());
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = oracle.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t q = 0; q < state.queries; ++q) {
      for (std::int64_t h = 0; h < s.query_heads; ++h) {
        output_row(output, b, q, h, observed);
        oracle.bound_ratios(step, b, q, h, observed, ratios);
        largest = std::max(largest, *std::ranges::max_element(ratios));
      }
    }
  }
  return largest;
}

/// Judges one step, drawn by content, of a run that ends there; empty where it does not hold.
std::optional<Judgement> judge_one_step(Case& c, const Scenario& s) {
  const auto steps = asking_steps(s, c.timeline());
  if (steps.empty()) return Judgement::skipped("the scenario asks no query");
  const std::size_t step = steps[axis_draw(c.scenario(), kId).bits() % steps.size()];
  model::Oracle oracle(s, arithmetic_profile(c.capabilities(), s));
  const Execution run = execute(c.target(), s, oracle.timeline(), oracle.fill(),
                                {.want_rows = false, .step_count = step + 1, .rows = &c.rows()});
  const auto& output = run.steps[step].result.output;
  if (!run.complete || !output) return std::nullopt;
  Judgement passed;
  passed.max_ratio = largest_ratio(oracle, step, *output);
  if (!(passed.max_ratio <= 1)) return std::nullopt;
  return passed;
}

Judgement judge(Case& c) {
  Scenario s = capped(c.scenario());
  if (!cannot_run(c.target(), s).empty()) {  // The order of scale and softcap alone.
    s.mask = {};
    s = model::normalise(s);
  }
  if (const std::string why = cannot_run(c.target(), s); !why.empty()) {
    return Judgement::skipped(why);
  }
  if (c.mode() == Case::Mode::bundled) {
    if (auto judgement = judge_one_step(c, s)) return *judgement;
  }
  Case other(c.target(), s);
  Judgement judgement = values_property().judge(other);
  if (judgement.verdict == Verdict::failed) {
    judgement.text = fmt::format("with softcap {}, scale {} and mask {}: {}", kCap, kScale,
                                 to_string(s.mask.kind), judgement.text);
  }
  return judgement;
}

std::string inapplicable(const Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  if (!target.has("softcap")) return "the target does not claim softcap";
  if (scenario.softcap == 0) return "the scenario has no softcap";
  return fixed_tensors_reason(scenario);
}

}  // namespace

Property softcap_order_property() {
  return {kId,
          "Logits are scaled, then capped, then biased, then hidden: outputs stay within "
          "their bounds under a cap that biases and logits exceed.",
          "a cap after the bias or before the scale, a cap left out, hidden keys that a "
          "cap brings back",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
