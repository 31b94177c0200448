// Step by step through a scenario.
#include "properties/execution.h"

#include "properties/convert.h"
#include "properties/requests.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;

/// Moves an answer into `out`; true when it was given.
template <class T, class Take>
bool take(Answer<T>&& answer, StepAnswer& out, Take&& take_value) {
  if (auto* value = std::get_if<T>(&answer)) {
    out.status = StepAnswer::Status::ok;
    take_value(std::move(*value));
    return true;
  }
  if (auto* refusal = std::get_if<kernels::Refusal>(&answer)) {
    out.status = StepAnswer::Status::refused;
    out.reason = std::move(refusal->reason);
    return false;
  }
  auto& failure = std::get<kernels::Failure>(answer);
  out.status = StepAnswer::Status::broke;
  out.broke_as = failure.kind;
  out.reason = std::move(failure.detail);
  return false;
}

bool read_rows(kernels::Session& session, StepAnswer& out) {
  return take(session.present(), out,
              [&](kernels::CacheRows&& rows) { out.result.rows = std::move(rows); });
}

/// An inexact rollback asked of a target that promises to refuse it.
void try_inexact_rollback(kernels::Session& session, const model::Rollback& rollback,
                          StepAnswer& out, Execution& execution) {
  StepAnswer before, after;
  if (!read_rows(session, before)) {
    out = before;
    return;
  }
  if (take(session.rollback(rollback.tokens), out, [](std::monostate) {})) return;
  if (out.status != StepAnswer::Status::refused) return;
  if (!read_rows(session, after)) {
    out = after;
    return;
  }
  execution.refusal_kept_state = before.result.rows->key.bytes == after.result.rows->key.bytes &&
                                 before.result.rows->value.bytes == after.result.rows->value.bytes;
}

}  // namespace

std::optional<std::int64_t> Execution::first_problem() const {
  const auto bad = [](const StepAnswer& answer) {
    return answer.status == StepAnswer::Status::refused ||
           answer.status == StepAnswer::Status::broke;
  };
  if (bad(open)) return -1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (bad(steps[i])) return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

Execution execute(kernels::Target& target, const model::Scenario& scenario,
                  const model::Timeline& timeline, const model::Fill& fill,
                  const ExecuteOptions& options) {
  Execution execution;
  execution.steps.resize(scenario.steps.size());
  std::unique_ptr<kernels::Session> session;
  auto config = session_config(scenario, timeline, fill.poison(scenario.poison));
  config.threads = options.threads;
  config.isa = options.isa;
  if (!take(target.open(config), execution.open,
            [&](std::unique_ptr<kernels::Session>&& opened) { session = std::move(opened); })) {
    return execution;
  }
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    const bool rows = options.want_rows && target.capabilities().rows &&
                      (options.rows_at.empty() || options.rows_at[i]);
    StepAnswer& out = execution.steps[i];
    const model::Step& step = scenario.steps[i];
    if (!timeline.steps()[i].defined) {
      if (const auto* rollback = std::get_if<model::Rollback>(&step);
          rollback && target.capabilities().has("checks_rollback")) {
        try_inexact_rollback(*session, *rollback, out, execution);
        execution.complete = out.status != StepAnswer::Status::broke;
      } else {
        execution.complete = true;
      }
      return execution;
    }
    bool answered = false;
    if (std::holds_alternative<model::Append>(step)) {
      auto request = step_request(scenario, timeline, fill, i);
      request.want_rows = rows;
      answered = take(session->step(request), out,
                      [&](kernels::StepResult&& result) { out.result = std::move(result); });
    } else if (std::holds_alternative<model::Past>(step)) {
      answered = take(session->load(load_request(scenario, timeline, fill, i)), out,
                      [](std::monostate) {});
    } else {
      answered = take(session->rollback(std::get<model::Rollback>(step).tokens), out,
                      [](std::monostate) {});
    }
    if (answered && rows && !out.result.rows) answered = read_rows(*session, out);
    if (!answered) return execution;
  }
  execution.complete = true;
  return execution;
}

double element(const kernels::Tensor& tensor, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  if (tensor.type == kernels::ElementType::boolean) return std::to_integer<int>(tensor.bytes[at]);
  return model::load_element(to_model(tensor.type),
                             tensor.bytes.data() + at * kernels::element_bytes(tensor.type));
}

double output_at(const kernels::Tensor& output, std::int64_t entry, std::int64_t query,
                 std::int64_t head, std::int64_t lane) {
  return element(
      output,
      ((entry * output.shape[1] + query) * output.shape[2] + head) * output.shape[3] + lane);
}

}  // namespace kvcheck::properties
