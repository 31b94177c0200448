// Choosing by content.
#include "properties/catalog/sampled.h"

#include <fmt/format.h>

#include "properties/bundle.h"

namespace kvcheck::properties {

std::string passed_over(const Case& c, std::string_view property, std::uint64_t of) {
  if (c.mode() == Case::Mode::alone) return "";
  if (axis_draw(c.scenario(), property).bits() % of == 0) return "";
  return fmt::format("judged on one random scenario in {}", of);
}

}  // namespace kvcheck::properties
