// Which findings name which kind of fault.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "properties/verdict.h"

namespace kvcheck::properties {

/// Kinds of finding by which a property names a kind of fault.
struct Naming {
  std::string_view
      property;  ///< An id; "*" = any property, for findings that speak for themselves.
  std::vector<Kind> kinds;
};

/// One kind of fault. A finding names it when it tells a reader where to look: which keys, which
/// rows, which lengths, which arithmetic. A crash names none of them.
struct FaultKind {
  std::string_view kind;
  std::string_view reason;  ///< Why these findings name it.
  std::vector<Naming> named_by;
};

std::span<const FaultKind> fault_kinds();

/// Whether a finding of `property` names faults of `fault_kind`; false for a kind without a row.
bool names(std::string_view fault_kind, std::string_view property, Kind finding);

}  // namespace kvcheck::properties
