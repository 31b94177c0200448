// Changes of a sound operator call: attributes, lengths, types, shapes and presence, one at a time.
//
// A change has a name that does not depend on the sizes of the call ("seqlens_k[last]=rows+1",
// "query.dim[2]-1", "num_heads=0", "without past_key"), so that a scenario that carries one can
// shrink. Whether a changed call is still sound is for the rules of model/calls to say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/target.h"

namespace kvcheck::properties {

struct ChangedCall {
  std::string name;
  kernels::OperatorCall call;
  /// Only how an input is laid out differs: a sound call of this kind has the same outputs.
  bool same_meaning = false;
};

/// Every change of `call` that differs from it, in an order that depends on the call alone. All
/// tensors stay small; new elements are 0.
std::vector<ChangedCall> changed_calls(const kernels::OperatorCall& call);

/// The change of that name; nothing where the call has none, or is the same with it.
std::optional<ChangedCall> changed_call(const kernels::OperatorCall& call, std::string_view name);

/// Whether the change sets a length or a position beyond what any buffer here can hold.
bool is_extreme(std::string_view change);

}  // namespace kvcheck::properties
