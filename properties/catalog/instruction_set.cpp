// target.instruction_set: every instruction set gives the same bits.
#include "properties/catalog.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "isa_bits";

/// out(isa) = out(the widest), for every isa of Capabilities::isas.
Judgement judge(Case& c) {
  std::vector<Variant> variants;
  for (const std::string& isa : c.capabilities().isas) {
    Variant variant{c.scenario(), {}, "with instruction set " + isa};
    variant.options.isa = isa;
    variants.push_back(variant);
  }
  return judge_variants(c, variants, Kind::bits_difference);
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
          2};
}

}  // namespace kvcheck::properties
