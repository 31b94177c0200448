// softcap.order: scale, softcap, bias, mask, in this order.
// s_j = c * tanh(scale * q.k_j / c) + bias_j, and a hidden key has no weight whatever c is. The
// case is run with c = 0.5, where biases of up to 2 and logits of the size of 1 lie beyond the cap:
// each wrong order moves most outputs by far more than their bounds.
#include <cmath>

#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/catalog/sampled.h"
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

Judgement judge(Case& c) {
  if (const std::string why = passed_over(c, kId, 4); !why.empty()) {
    return Judgement::skipped(why);
  }
  Scenario s = capped(c.scenario());
  if (!cannot_run(c.target(), s).empty()) {  // The order of scale and softcap alone.
    s.mask = {};
    s = model::normalise(s);
  }
  if (const std::string why = cannot_run(c.target(), s); !why.empty()) {
    return Judgement::skipped(why);
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
