// The catalog of properties: what every target is held to.
#pragma once

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
};

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

}  // namespace kvcheck::properties
