// What the checks of a scenario share: a rule that does not hold adds a refusal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/scenario.h"

namespace kvcheck::model {

class RefusalCollector {
 protected:
  template <class T>
  void require(bool ok, std::string_view field, const T& value, std::string_view remedy) {
    if (ok) return;
    refusals_.push_back({std::string(field), fmt::format("{}", value), std::string(remedy)});
  }

  /// The text of the remedy is made only where it is needed: most scenarios are sound.
  template <class T, class First, class... Rest>
  void require(bool ok, std::string_view field, const T& value,
               fmt::format_string<const First&, const Rest&...> remedy, const First& first,
               const Rest&... rest) {
    if (!ok) require(false, field, value, fmt::format(remedy, first, rest...));
  }

  std::vector<Refusal> refusals_;
};

}  // namespace kvcheck::model
