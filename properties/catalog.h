// The catalog of properties: what every target is held to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "properties/case.h"

namespace kvcheck::properties {

class Draw;
struct Variant;

/// How the other way to run a case, of a property that compares two, joins those of other
/// properties in one run; see bundle.h.
struct Axis {
  /// Runs in which everything that may change at once changes: `together` with everything else that
  /// is so marked; `apart` for ways that would hide another's, or leave out entries or queries;
  /// `either` with those apart where there are any, else together.
  enum class Run { none, together, apart, either };
  Run run = Run::none;
  /// Changes every one of `ways`, by choices from `draw`, or puts several in the place of one.
  /// False = the case has no such way, or none that others can join; `ways` is then as it was.
  bool (*turn)(Case&, std::vector<Variant>& ways, Draw& draw) = nullptr;
  /// The feature with which bits are compared, else twice the bound; empty = always bits.
  std::string bits = {};
};

struct Property {
  std::string id;         ///< "topic.sentence", stable; used in commands, records and pages.
  std::string statement;  ///< One sentence that is true of every healthy target.
  std::string faults;     ///< What kinds of fault it sees.
  /// Why the property has nothing to say of this scenario on this target; empty = it applies.
  std::string (*inapplicable)(const model::Scenario&, const kernels::Capabilities&);
  Judgement (*judge)(Case&);
  /// The feature without which the property has nothing to say of a target; empty = none.
  /// Several with | between them: any of them will do.
  std::string promise = {};
  /// Of properties that run a case in another way.
  Axis axis = {};
};

/// "the target does not promise threads_bits", "... claim qk_output"; empty where it does, or
/// `promise` is empty.
std::string unpromised(const kernels::Capabilities& target, std::string_view promise);

const std::vector<Property>& catalog();

/// What a property says of a case. Of a bundled one it passes where it joined runs that show no
/// difference, and is judged alone otherwise.
/// \pre property.inapplicable(scenario, capabilities) is empty
Judgement judge(Case& c, const Property& property);

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
Property schedules_property();
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
Property refused_calls_property();
Property accepted_calls_property();
Property extreme_lengths_property();
Property combined_ways_property();
Property batch_padding_property();
Property batch_permutation_property();
Property heads_permutation_property();
Property staged_property();
Property shared_buffers_property();
Property packed_property();
Property rank_three_property();
Property power_of_two_property();
Property qk_output_is_free_property();

}  // namespace kvcheck::properties
