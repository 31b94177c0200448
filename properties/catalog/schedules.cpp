// target.schedules: the order in which a device runs its threads changes no bit, and shows no
// defect.
#include <fmt/format.h>

#include "model/launch.h"
#include "properties/catalog.h"
#include "properties/draw.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

using model::LaunchOrder;

constexpr const char* kPromise = "schedule_bits";

/// The case under another order of its threads.
void reorder(Variant& way, LaunchOrder order, std::uint64_t seed) {
  if (!way.scenario.launch) way.scenario.launch.emplace();
  way.scenario.launch->order = order;
  way.scenario.launch->seed = seed;
}

std::uint64_t other_seed(const Case& c) {
  return c.scenario().launch ? c.scenario().launch->seed + 1 : 1;
}

/// out(every order) = out(the scenario's own), each under a seed that the main run did not have.
Judgement judge(Case& c) {
  std::vector<Variant> variants;
  for (const LaunchOrder order : {LaunchOrder::lockstep, LaunchOrder::random, LaunchOrder::reverse,
                                  LaunchOrder::priority, LaunchOrder::starve}) {
    Variant variant = unchanged(c);
    variant.words = fmt::format("with threads in the order {}", to_string(order));
    reorder(variant, order, other_seed(c));
    variants.push_back(std::move(variant));
  }
  return judge_variants(c, variants, {});
}

bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  const auto order =
      draw.pick(std::vector{LaunchOrder::lockstep, LaunchOrder::random, LaunchOrder::reverse,
                            LaunchOrder::priority, LaunchOrder::starve});
  for (Variant& way : ways) reorder(way, order, other_seed(c));
  return true;
}

std::string inapplicable(const model::Scenario&, const kernels::Capabilities& target) {
  return unpromised(target, kPromise);
}

}  // namespace

Property schedules_property() {
  return {"target.schedules",
          "Every order in which a device may run its threads gives the same bits and no defect.",
          "missing barriers, warps that are taken to run in step, waits that are not waited for, "
          "sums in the order of arrival",
          inapplicable,
          judge,
          kPromise,
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
