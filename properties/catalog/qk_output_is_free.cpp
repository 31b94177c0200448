// values.qk_output_is_free: asking for more changes no output.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "properties/bundle.h"
#include "properties/catalog.h"
#include "properties/draw.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

using model::QkOutput;

constexpr const char* kId = "values.qk_output_is_free";
constexpr const char* kPromise = "format_bits";

constexpr QkOutput kAll[] = {QkOutput::none, QkOutput::raw, QkOutput::softcapped, QkOutput::biased,
                             QkOutput::probabilities};

/// Other intermediates that the case could ask for, or none; of kAll from `first` on, the first
/// `most`.
std::vector<QkOutput> others(Case& c, std::size_t first, std::size_t most) {
  std::vector<QkOutput> result;
  if (!c.capabilities().has("qk_output") && c.scenario().qk_output == QkOutput::none) return result;
  model::Scenario other = c.scenario();
  for (std::size_t i = 0; i < std::size(kAll) && result.size() < most; ++i) {
    const QkOutput asked = kAll[(first + i) % std::size(kAll)];
    other.qk_output = asked;
    if (asked == c.scenario().qk_output || !cannot_run(c.target(), other).empty()) continue;
    result.push_back(asked);
  }
  return result;
}

/// The intermediate to try first on a random scenario, the same alone and in a bundle.
std::size_t first_of(Draw& draw) {
  return static_cast<std::size_t>(draw.between(0, std::size(kAll) - 1));
}

/// out(and nothing else) = out(and an intermediate) = out(and the rows of the cache). Of the many
/// intermediates a random scenario is asked for one.
Judgement judge(Case& c) {
  const bool one = c.mode() == Case::Mode::bundled;
  Draw draw = axis_draw(c.scenario(), kId);
  const auto asks = one ? others(c, first_of(draw), 1) : others(c, 0, std::size(kAll));
  std::vector<Variant> variants;
  for (const QkOutput asked : asks) {
    variants.push_back(unchanged(c));
    variants.back().words = fmt::format("with qk_output {}", to_string(asked));
    variants.back().scenario.qk_output = asked;
  }
  if (c.capabilities().rows) {
    variants.push_back(unchanged(c));
    variants.back().words = "without asking for the rows of the cache";
    variants.back().options.want_rows = false;
  }
  VariantJudging judging;
  judging.bitwise = c.capabilities().has(kPromise);
  if (!judging.bitwise) judging.kind = Kind::influence;
  return judge_variants(c, variants, judging);
}

/// Where the case asks for an intermediate, other ways need it to be compared.
bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  if (c.scenario().qk_output != QkOutput::none) return false;
  for (const QkOutput asked : others(c, first_of(draw), 1)) {
    for (Variant& way : ways) way.scenario.qk_output = asked;
  }
  // Rows are asked for behind about every other step, and behind the last.
  for (Variant& way : ways) {
    std::vector<StepPair> kept;
    for (const StepPair& pair : way.same_state) {
      if (pair == way.same_state.back() || draw.percent(50)) kept.push_back(pair);
    }
    way.same_state = std::move(kept);
  }
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  if (target.rows || target.has("qk_output") || scenario.qk_output != QkOutput::none) return "";
  return "the target hands out nothing else";
}

}  // namespace

Property qk_output_is_free_property() {
  return {kId,
          "Asking for an intermediate or for the rows of the cache changes no output: equal bits "
          "where the target promises them, else within twice the bound.",
          "a path of its own when intermediates are asked for, buffers shared between them and "
          "the outputs, rows read before they are settled",
          inapplicable,
          judge,
          "",
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
