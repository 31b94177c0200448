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
      finite_values_property(),
      empty_rows_property(),
      surviving_rows_property(),
      split_invariance_property(),
      rollback_exactness_property(),
      unspecified_rows_property(),
      batch_padding_property(),
      batch_company_property(),
      batch_permutation_property(),
      heads_permutation_property(),
      window_equals_full_property(),
      // After the full cache, which needs no staging.
      staged_property(),
      any_capacity_property(),
      shared_buffers_property(),
      packed_property(),
      rank_three_property(),
      power_of_two_property(),
      qk_output_is_free_property(),
      thread_count_property(),
      schedules_property(),
      instruction_set_property(),
      hidden_keys_property(),
      bias_columns_property(),
      softcap_order_property(),
      head_map_property(),
      sink_mass_property(),
      quantised_codes_property(),
      drafts_property(),
      out_of_sight_property(),
      refusal_state_property(),
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
  if (promise.empty()) return "";
  for (std::string_view rest = promise; !rest.empty();) {
    const auto end = std::min(rest.find('|'), rest.size());
    if (target.has(rest.substr(0, end))) return "";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const char* verb = promise.ends_with("_bits") ? "promise " : "claim ";
  std::string names(promise);
  for (auto at = names.find('|'); at != std::string::npos; at = names.find('|')) {
    names.replace(at, 1, " or ");
  }
  return "the target does not " + (verb + names);
}

}  // namespace kvcheck::properties
