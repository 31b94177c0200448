// target.instruction_set: every instruction set gives the same bits.
#include "properties/catalog.h"
#include "properties/draw.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "isa_bits";

/// out(isa) = out(the widest), for every isa of Capabilities::isas.
Judgement judge(Case& c) {
  std::vector<Variant> variants;
  for (const std::string& isa : c.capabilities().isas) {
    Variant variant = unchanged(c);
    variant.words = "with instruction set " + isa;
    variant.options.isa = isa;
    variants.push_back(variant);
  }
  return judge_variants(c, variants, {});
}

bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  const auto& isas = c.capabilities().isas;  // The first is the main run's.
  const auto last = static_cast<std::int64_t>(isas.size()) - 1;
  // Often the next narrower one: the last is code without vectors, several times slower.
  const std::int64_t at = draw.percent(60) ? 1 : draw.between(1, last);
  const std::string& isa = isas[static_cast<std::size_t>(at)];
  for (Variant& way : ways) way.options.isa = isa;
  return true;
}

std::string inapplicable(const model::Scenario&, const kernels::Capabilities& target) {
  if (auto reason = unpromised(target, kPromise); !reason.empty()) return reason;
  return target.isas.size() < 2 ? "fewer than two instruction sets can run here" : "";
}

}  // namespace

Property instruction_set_property() {
  return {"target.instruction_set",
          "Every instruction set that the target names gives the same bits.",
          "sums by vector width, fused and separate multiply-add, tails, an exp of its own",
          inapplicable,
          judge,
          kPromise,
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
