// The catalog of properties: what every target is held to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "properties/case.h"

namespace kvcheck::properties {

struct Property {
  std::string id;         ///< "topic.sentence", stable; used in commands, records and pages.
  std::string statement;  ///< One sentence that is true of every healthy target.
  std::string faults;     ///< What kinds of fault it sees.
  /// Why the property has nothing to say of this scenario on this target; empty = it applies.
  std::string (*inapplicable)(const model::Scenario&, const kernels::Capabilities&);
  Judgement (*judge)(Case&);
  /// The feature without which the property has nothing to say of a target; empty = none.
  std::string promise = {};
  /// Random scenarios of a search are judged one in so many, by their content: for properties
  /// that run a case several times more. Everything else is judged always.
  std::uint64_t one_in = 1;
};

/// "the target does not promise threads_bits", "... claim qk_output"; empty where it does, or
/// `promise` is empty.
std::string unpromised(const kernels::Capabilities& target, std::string_view promise);

const std::vector<Property>& catalog();

/// Null when there is none of that id.
const Property* find_property(std::string_view id);

// One file each.
Property answers_property();
Property resident_range_property();
Property visible_set_property();
Property values_property();
Property qk_output_property();
Property split_invariance_property();
Property rollback_exactness_property();
Property unspecified_rows_property();
Property batch_company_property();
Property window_equals_full_property();
Property any_capacity_property();
Property thread_count_property();
Property instruction_set_property();
Property repeat_property();
Property empty_rows_property();
Property finite_values_property();
Property surviving_rows_property();
Property hidden_keys_property();
Property bias_columns_property();
Property softcap_order_property();
Property head_map_property();
Property sink_mass_property();
Property quantised_codes_property();
Property drafts_property();
Property out_of_sight_property();
Property refusal_state_property();

}  // namespace kvcheck::properties
