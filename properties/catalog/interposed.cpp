// Runs with changed requests.
#include "properties/catalog/interposed.h"

#include "model/element_type.h"
#include "properties/convert.h"
#include "properties/told_target.h"

namespace kvcheck::properties {
Execution execute_interposed(Case& c, const model::Scenario& scenario,
                             const model::Timeline& timeline, const model::Fill& fill,
                             const Interposer& interposer, const ExecuteOptions& options) {
  if (dynamic_cast<ToldTarget*>(&c.target()) != nullptr) {
    Execution none;
    none.steps.resize(scenario.steps.size());
    none.open.status = StepAnswer::Status::refused;
    none.open.reason = "the target answers from the scenario, whatever the requests say";
    return none;
  }
  ExecuteOptions with = options;
  with.interposer = &interposer;
  with.rows = &c.rows();
  return execute(c.target(), scenario, timeline, fill, with);
}

Execution execute_interposed(Case& c, const Interposer& interposer, const ExecuteOptions& options) {
  return execute_interposed(c, c.scenario(), c.timeline(), c.fill(), interposer, options);
}

void put_row(kernels::Tensor& tensor, std::int64_t row, std::span<const double> values) {
  const auto type = to_model(tensor.type);
  const std::size_t width = model::element_bytes(type);
  model::store_elements(
      type, values, tensor.bytes.data() + static_cast<std::size_t>(row) * values.size() * width);
}

}  // namespace kvcheck::properties
