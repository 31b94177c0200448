// The operator call that a scenario's last step amounts to, as a caller of the library makes it.
#pragma once

#include <string>
#include <variant>

#include "kernels/target.h"
#include "model/calls/attention_call.h"
#include "model/calls/gqa_call.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// Why a scenario has no such call (its steps are ragged, it asks no query, ...).
struct NoCall {
  std::string reason;
};

/// The last append of `scenario` as one call: what was there before it is the past, with the data
/// of a loaded cache. Sound by the rules of the operator.
std::variant<kernels::OperatorCall, NoCall> operator_call_of(const model::Scenario& scenario);

/// Types, shapes, lengths and attributes of a call, for the rules of model/calls.
/// \pre call.op is "gqa"
model::GqaCall gqa_call_info(const kernels::OperatorCall& call);
/// \pre call.op is "attention"
model::AttentionCall attention_call_info(const kernels::OperatorCall& call);

}  // namespace kvcheck::properties
