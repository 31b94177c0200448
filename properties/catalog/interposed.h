// Interposed: a case run with its requests changed on the way to the target.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/target.h"
#include "properties/case.h"
#include "properties/execution.h"

namespace kvcheck::properties {

/// Runs `scenario` on the case's target in the way of execute(). A target that answers from the
/// scenario (told_target.h) has no requests to change: nothing is run.
/// \pre validate(scenario) is empty
Execution execute_interposed(Case& c, const model::Scenario& scenario,
                             const model::Timeline& timeline, const model::Fill& fill,
                             const Interposer& interposer, const ExecuteOptions& options = {});

/// The same for the case's own scenario.
Execution execute_interposed(Case& c, const Interposer& interposer,
                             const ExecuteOptions& options = {});

/// Writes `values` into row `row` of a tensor of rows, each of as many elements: rounded to the
/// type of the tensor.
/// \pre the type is f32, f16, bf16 or f64
void put_row(kernels::Tensor& tensor, std::int64_t row, std::span<const double> values);

}  // namespace kvcheck::properties
