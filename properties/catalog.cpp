// The order of the catalog is the order of judgement: cheap and telling first.
#include "properties/catalog.h"

#include <algorithm>

#include "properties/bundle.h"

namespace kvcheck::properties {

const std::vector<Property>& catalog() {
  static const std::vector<Property> properties = {
      answers_property(),
      resident_range_property(),
      visible_set_property(),
      values_property(),
      qk_output_property(),
      split_invariance_property(),
      rollback_exactness_property(),
      unspecified_rows_property(),
      batch_company_property(),
      window_equals_full_property(),
      any_capacity_property(),
      thread_count_property(),
      instruction_set_property(),
      refused_calls_property(),
      accepted_calls_property(),
      extreme_lengths_property(),
      // Last, so that much has happened since the first run.
      repeat_property(),
      combined_ways_property(),
  };
  return properties;
}

Judgement judge(Case& c, const Property& property) {
  if (c.mode() == Case::Mode::alone || property.axis.run == Axis::Run::none) {
    return property.judge(c);
  }
  return c.bundle().settles(property) ? Judgement{} : c.bundle().judge_alone(property);
}

const Property* find_property(std::string_view id) {
  const auto& all = catalog();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const Property& p) { return p.id == id; });
  return it == all.end() ? nullptr : &*it;
}

std::string unpromised(const kernels::Capabilities& target, std::string_view promise) {
  if (promise.empty() || target.has(promise)) return "";
  const char* verb = promise.ends_with("_bits") ? "promise " : "claim ";
  return "the target does not " + (verb + std::string(promise));
}

}  // namespace kvcheck::properties
