// cache.shared_buffers: past and present in one buffer or in two give the same.
#include "properties/catalog.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "format_bits";

void flip(model::Scenario& s) { s.share_buffers = !s.share_buffers; }

/// out(past and present in one buffer) = out(each in its own).
Judgement judge(Case& c) {
  Variant other = unchanged(c);
  flip(other.scenario);
  other.words = c.scenario().share_buffers ? "with separate buffers" : "with shared buffers";
  VariantJudging judging;
  judging.bitwise = c.capabilities().has(kPromise);
  judging.rows_suffice = true;
  if (!judging.bitwise) judging.kind = Kind::influence;
  return judge_variants(c, {other}, judging);
}

bool turn(Case& c, std::vector<Variant>& ways, Draw&) {
  model::Scenario other = c.scenario();
  flip(other);
  if (!cannot_run(c.target(), other).empty()) return false;
  for (Variant& way : ways) flip(way.scenario);
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (scenario.op != model::Operator::gqa) return "the operator has no shared buffers";
  return target.has("separate_buffers") ? "" : "the target takes shared buffers alone";
}

}  // namespace

Property shared_buffers_property() {
  return {
      "cache.shared_buffers",
      "Past and present in one buffer or in two give the same rows and outputs: equal bits where "
      "the target promises them, else within twice the bound.",
      "rows not copied, or copied from where they are overwritten; aliasing; a compaction in one "
      "of "
      "the two alone",
      inapplicable,
      judge,
      "",
      {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
