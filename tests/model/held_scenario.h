// A valid scenario with its timeline and its data, which stay where they are.
#pragma once

#include <utility>

#include <gtest/gtest.h>

#include "model/fill.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

struct HeldScenario {
  explicit HeldScenario(Scenario given)
      : scenario(std::move(given)), timeline(scenario), fill(scenario, timeline) {
    EXPECT_TRUE(validate(scenario).empty());
  }
  HeldScenario(const HeldScenario&) = delete;
  HeldScenario& operator=(const HeldScenario&) = delete;

  Scenario scenario;
  Timeline timeline;
  Fill fill;
};

}  // namespace kvcheck::model
