// What the checks of a scenario share: a rule that does not hold adds a refusal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/scenario.h"

namespace kvcheck::model {

/// A step or one of its fields, for example "steps[2].append".
struct StepField {
  std::size_t step = 0;
  std::string_view part = "";

  StepField of(std::string_view name) const { return {step, name}; }
};

/// The texts of a refusal are made only where it is needed: most scenarios are sound.
class RefusalCollector {
 protected:
  template <class Field, class T>
  void require(bool ok, const Field& field, const T& value, std::string_view remedy) {
    if (!ok) add(field, value, remedy);
  }

  template <class Field, class T, class First, class... Rest>
  void require(bool ok, const Field& field, const T& value,
               fmt::format_string<const First&, const Rest&...> remedy, const First& first,
               const Rest&... rest) {
    if (!ok) add_formatted(field, value, remedy, first, rest...);
  }

  std::vector<Refusal> refusals_;

 private:
  // Cold: kept away from the code that sound scenarios run.
  template <class Field, class T>
  [[gnu::cold]] void add(const Field& field, const T& value, std::string_view remedy) {
    refusals_.push_back({text_of(field), fmt::format("{}", value), std::string(remedy)});
  }
  template <class Field, class T, class... Values>
  [[gnu::cold]] void add_formatted(const Field& field, const T& value,
                                   fmt::format_string<const Values&...> remedy,
                                   const Values&... values) {
    add(field, value, fmt::format(remedy, values...));
  }

  static std::string text_of(std::string_view field) { return std::string(field); }
  static std::string text_of(const StepField& field) {
    return fmt::format("steps[{}]{}", field.step, field.part);
  }
};

}  // namespace kvcheck::model
