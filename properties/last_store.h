// Where a wrong number was made: the store of a kernel that left it, for the sentence of a finding.
#pragma once

#include <string>

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/case.h"

namespace kvcheck::properties {

/// The sentence of a failed judgement, and behind it which store left the number that is wrong, of
/// targets that record stores (feature last_store): "...; after step 1 lane 3 of the output (batch
/// entry 0, query 0, head 1) was stored at kernels/cuda/decode.cuh:214 by ...". Runs the scenario
/// once more, up to the step of the judgement's hint. The number is the judgement's element; where
/// it has none, of the entry and head of the hint, the first row that holds something else than its
/// token, in the first step after which one does; else the output that is farthest from the exact
/// one. The sentence alone for other targets, for failures without a place, and for those that are
/// no numbers.
std::string with_last_store(kernels::Target& target, const model::Scenario& scenario,
                            const Judgement& judgement);

}  // namespace kvcheck::properties
