// One broken rule of an operator call.
#pragma once

#include <string>

namespace kvcheck::model {

template <class Rule>
struct RuleBreak {
  Rule rule;
  std::string field;   ///< Input or attribute as the operator spells it, e.g. "seqlens_k[1]".
  std::string value;   ///< As found.
  std::string remedy;  ///< What it must be instead.
  /// "seqlens_k[1] = 9: must be between 0 and 7".
  std::string message() const { return field + " = " + value + ": " + remedy; }
};

}  // namespace kvcheck::model
