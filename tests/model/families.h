// Scenarios in which every wrong model differs, at a chosen number of visible keys.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::model {

struct Family {
  const char* name;
  Scenario scenario;
};

/// Each family with about n visible keys for its last query. All are valid for n >= 2.
std::vector<Family> families(std::int64_t n, FillSpec fill, ElementType type);

}  // namespace kvcheck::model
