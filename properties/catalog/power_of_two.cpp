// values.power_of_two: powers of two pass through to the last bit.
#include "model/element_type.h"
#include "properties/catalog.h"
#include "properties/draw.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "scaling_bits";

/// Outputs below it were rounded where the scaled ones are not: twice the smallest normal number of
/// f16, to which the largest subnormal one may round; elsewhere well above what an f32 sum rounds
/// as a subnormal number.
double smallest_exact(const model::Scenario& scenario) {
  return scenario.element_type == model::ElementType::f16 ? 0x1p-13 : 0x1p-100;
}

void scale_values_of(Variant& way, int exponent) {
  way.options.changes.push_back(scale_values(way.scenario, exponent));
  way.smallest = smallest_exact(way.scenario);
}

/// A norm divides the factor out again.
bool may_scale_queries(const model::Scenario& scenario) { return !scenario.qk_norm; }

/// out(2^k V) = 2^k out(V), and out(2^k Q, 2^-k scale) = out(Q, scale). Exponents of queries are
/// even, so that a scale may be applied by its root to either side.
Judgement judge(Case& c) {
  std::vector<Variant> variants{unchanged(c)};
  variants.front().words = "with values times 8 and outputs over 8";
  scale_values_of(variants.front(), 3);
  if (may_scale_queries(c.scenario())) {
    variants.push_back(unchanged(c));
    variants.back().words = "with queries times 4 and the scale over 4";
    variants.back().options.changes = {scale_queries(2)};
  }
  VariantJudging judging;
  judging.bitwise = c.capabilities().has(kPromise);
  if (!judging.bitwise) judging.kind = Kind::influence;
  return judge_variants(c, variants, judging);
}

bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  const int values = static_cast<int>(draw.between(1, 3));
  const int queries = static_cast<int>(2 * draw.between(1, 2));
  for (Variant& way : ways) {
    scale_values_of(way, values);
    if (may_scale_queries(c.scenario())) way.options.changes.push_back(scale_queries(queries));
  }
  return true;
}

/// Whether the data is far from the ends of the element type's range.
bool moderate(const model::FillSpec& fill) {
  return fill.kind == model::FillKind::random || fill.kind == model::FillKind::needles ||
         model::is_position_fill(fill.kind);
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  return moderate(scenario.fill) ? "" : "the data may overflow when it is scaled";
}

}  // namespace

Property power_of_two_property() {
  return {"values.power_of_two",
          "Values times 2^k give outputs times 2^k, and queries times 2^k with the scale times "
          "2^-k the same outputs: the same bits where the target promises them and nothing "
          "underflows, else within twice the bound.",
          "constants added to values or weights, thresholds on magnitudes, sums in fixed point, a "
          "scale left out, clamped or rounded",
          inapplicable,
          judge,
          "",
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
