// Scenarios are valid by construction, within the capabilities, and reach every class.
#include "properties/generator.h"

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/Random.h>
#include <rapidcheck/Shrinkable.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/convert.h"
#include "properties/coverage.h"
#include "tests/properties/model_target.h"

namespace kvcheck::properties {
namespace {

/// What ONNX Runtime 1.32 claims, as far as drawing is concerned.
kernels::Capabilities foreign_capabilities() {
  kernels::Capabilities c;
  c.name = "foreign";
  c.operators = {"gqa", "attention"};
  c.opsets = {23, 24};
  c.element_types = {"f32", "f16"};
  c.layouts = {"full", "block"};
  c.head_size_multiple = 8;
  c.features = {"mask_boolean",   "mask_additive",    "nonpad_kv_seqlen",
                "queries_differ", "separate_buffers", "ragged_prompt",
                "load",           "rollback"};
  return c;
}

model::Scenario draw(const rc::Gen<model::Scenario>& generator, std::uint64_t seed, int size) {
  return generator(rc::Random(seed), size).value();
}

void expect_drawable(const kernels::Capabilities& capabilities) {
  const auto generator = scenario_generator(capabilities);
  std::map<std::string, int> unsupported;
  int supported = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const auto scenario = draw(generator, i, static_cast<int>(i % 101));
    const auto refusals = model::validate(scenario);
    ASSERT_TRUE(refusals.empty()) << refusals.front().message() << "\n"
                                  << model::canonical_text(scenario);
    EXPECT_EQ(model::normalise(scenario), scenario);
    const std::string reason = unsupported_reason(capabilities, scenario);
    if (reason.empty())
      ++supported;
    else
      ++unsupported[reason];
  }
  // A few draws fall outside and are passed over; many would waste the budget.
  EXPECT_GT(supported, 4750) << (unsupported.empty() ? "" : unsupported.begin()->first);
}

TEST(Generator, DrawsValidScenariosWithinTheCapabilitiesOfCpuNaive) {
  expect_drawable(kernels::make_cpu_naive()->capabilities());
}

TEST(Generator, DrawsValidScenariosWithinNarrowCapabilities) {
  expect_drawable(foreign_capabilities());
}

TEST(Generator, DrawsValidScenariosOfEveryFeature) { expect_drawable(all_capabilities()); }

TEST(Generator, DrawsQuantisedCachesAloneWhereNoOthersAreTaken) {
  kernels::Capabilities c = foreign_capabilities();
  c.operators = {"gqa"};
  c.features.insert({"cache_int8", "cache_quantised_only"});
  expect_drawable(c);
  for (const auto& scenario : lattice(c)) {
    EXPECT_EQ(scenario.cache.quantisation.kind, model::QuantisationKind::int8);
  }
  EXPECT_GT(lattice(c).size(), 50u);
}

TEST(Generator, DependsOnTheSeedAlone) {
  const auto generator = scenario_generator(foreign_capabilities());
  EXPECT_EQ(draw(generator, 7, 50), draw(generator, 7, 50));
  EXPECT_NE(model::canonical_text(draw(generator, 7, 50)),
            model::canonical_text(draw(generator, 8, 50)));
}

TEST(Generator, KeepsToTheFocus) {
  const auto generator = scenario_generator(foreign_capabilities(), {true, false, false, false});
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto scenario = draw(generator, i, 50);
    EXPECT_EQ(scenario.op, model::Operator::gqa);
    EXPECT_EQ(scenario.cache.layout, model::LayoutKind::block);
  }
}

TEST(Generator, ReachesEveryCoverageClass) {
  for (const auto& capabilities :
       {kernels::make_cpu_naive()->capabilities(), foreign_capabilities(), all_capabilities()}) {
    const auto generator = scenario_generator(capabilities);
    std::map<std::string, int> hits;
    for (std::uint64_t i = 0; i < 4000; ++i) {
      const auto scenario = draw(generator, i, static_cast<int>(i % 101));
      const model::Timeline timeline(scenario);
      for (const auto& item : coverage_classes())
        hits[item.name] += item.reached(scenario, timeline);
    }
    for (const auto& item : coverage_classes()) {
      if (!item.reachable(capabilities)) continue;
      EXPECT_GT(hits[item.name], 8) << item.name;
    }
  }
}

TEST(Lattice, HoldsEveryFeature) {
  std::map<std::string, int> hits;
  for (const auto& scenario : lattice(all_capabilities())) {
    ASSERT_TRUE(model::validate(scenario).empty());
    const model::Timeline timeline(scenario);
    for (const auto& item : coverage_classes()) hits[item.name] += item.reached(scenario, timeline);
  }
  for (const char* name :
       {"softcap", "attention sink", "rotary embedding", "position_ids", "norm of queries and keys",
        "intermediate handed out", "softmax precision", "window to the right", "queries alone",
        "quantised cache", "scales by channel", "quantised cache, eviction"}) {
    EXPECT_GT(hits[name], 0) << name;
  }
}

TEST(Lattice, HoldsTheCausalCellOfThread34226) {
  bool found = false;
  for (const auto& scenario : lattice(foreign_capabilities())) {
    ASSERT_TRUE(model::validate(scenario).empty());
    if (scenario.op != model::Operator::attention || scenario.nonpad_kv_seqlen) continue;
    const auto* past = std::get_if<model::Past>(&scenario.steps.front());
    const auto* append = std::get_if<model::Append>(&scenario.steps.back());
    found = found || (past && append && past->tokens[0] > 0 && append->queries[0] == 1 &&
                      append->tokens[0] >= 2);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace kvcheck::properties
