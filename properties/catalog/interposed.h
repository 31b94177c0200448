// Interposed: a case run with its requests changed on the way to the target.
#pragma once

#include <cstddef>
#include <functional>

#include "kernels/target.h"
#include "properties/case.h"
#include "properties/execution.h"

namespace kvcheck::properties {

/// What is done between the harness and the target; empty members do nothing. Steps are those of
/// the scenario.
struct Interposer {
  std::function<void(kernels::SessionConfig&)> config;
  std::function<void(std::size_t step, kernels::StepRequest&)> append;
  std::function<void(std::size_t step, kernels::LoadRequest&)> load;
  /// Before the step is asked: may ask the target other things.
  std::function<void(std::size_t step, kernels::Session&)> before;
};

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
