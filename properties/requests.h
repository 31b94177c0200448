// Requests: the tensors that a target is given for one step of a scenario.
#pragma once

#include "kernels/target.h"
#include "model/fill.h"
#include "model/scenario.h"
#include "model/timeline.h"
#include "properties/drawn_rows.h"

namespace kvcheck::properties {

/// The request of an Append. Padding rows of ragged steps hold the scenario's poison.
/// \pre scenario.steps[step] is an Append
kernels::StepRequest step_request(const model::Scenario& scenario, const model::Timeline& timeline,
                                  const model::Fill& fill, std::size_t step);
/// The same with rows that other runs have drawn. \pre rows.fit(scenario), or `rows` is made of it.
/// Into `request`, whose memory is used again.
void step_request(const model::Scenario& scenario, const model::Timeline& timeline,
                  const model::Fill& fill, std::size_t step, DrawnRows& rows,
                  kernels::StepRequest& request);

/// The content of a Past as the cache stores it: resident rows in place, the others poisoned.
/// \pre scenario.steps[step] is a Past
kernels::LoadRequest load_request(const model::Scenario& scenario, const model::Timeline& timeline,
                                  const model::Fill& fill, std::size_t step);
/// The same with rows that other runs have drawn, into `request`, whose memory is used again.
/// The scenario is that of the fill with `in_front` tokens more in front: position p holds the
/// fill's token p - in_front, and the first ones tokens that the fill's scenario does not have.
/// \pre `rows` fits the scenario of `fill`, or is made of it
void load_request(const model::Scenario& scenario, const model::Timeline& timeline,
                  const model::Fill& fill, std::size_t step, DrawnRows& rows,
                  kernels::LoadRequest& request, std::int64_t in_front = 0);

}  // namespace kvcheck::properties
