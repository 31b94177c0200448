// Step by step through a scenario.
#include "properties/execution.h"

#include <algorithm>
#include <utility>

#include "properties/convert.h"
#include "properties/requests.h"
#include "properties/told_target.h"

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

/// Changes are undone in the opposite order.
template <class Undo>
void undo(const TensorChanges& changes, const Undo& one) {
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) one(**change);
}

/// A session with what is done to its requests and answers.
class Run {
 public:
  Run(const TensorChanges& changes, const Interposer* interposer)
      : changes_(changes), interposer_(interposer) {}

  bool open(kernels::Target& target, kernels::SessionConfig&& config, StepAnswer& out) {
    for (const auto& change : changes_) change->config(config);
    if (interposer_ && interposer_->config) interposer_->config(config);
    return take(target.open(config), out,
                [&](std::unique_ptr<kernels::Session>&& opened) { session_ = std::move(opened); });
  }

  bool read_rows(StepAnswer& out) {
    return take(session_->present(), out, [&](kernels::CacheRows&& rows) {
      undo(changes_, [&](const TensorChange& change) { change.rows(rows); });
      out.result.rows = std::move(rows);
    });
  }

  /// Changes the request.
  bool append(std::size_t step, kernels::StepRequest& request, StepAnswer& out) {
    for (const auto& change : changes_) change->step(request);
    begin(step);
    if (interposer_ && interposer_->append) interposer_->append(step, request);
    return take(session_->step(request), out, [&](kernels::StepResult&& result) {
      undo(changes_, [&](const TensorChange& change) {
        change.answer(result);
        if (result.rows) change.rows(*result.rows);
      });
      out.result = std::move(result);
    });
  }

  /// Changes the request.
  bool load(std::size_t step, kernels::LoadRequest& request, StepAnswer& out) {
    for (const auto& change : changes_) change->load(request);
    begin(step);
    if (interposer_ && interposer_->load) interposer_->load(step, request);
    return take(session_->load(request), out, [](std::monostate) {});
  }

  bool roll_back(std::size_t step, std::vector<std::int64_t> tokens, StepAnswer& out) {
    for (const auto& change : changes_) change->rollback(tokens);
    begin(step);
    return take(session_->rollback(tokens), out, [](std::monostate) {});
  }

  void end(std::size_t step, const StepAnswer& out) {
    if (interposer_ && interposer_->after) interposer_->after(step, *session_, out.result);
  }

 private:
  void begin(std::size_t step) {
    if (interposer_ && interposer_->before) interposer_->before(step, *session_);
  }

  const TensorChanges& changes_;
  const Interposer* interposer_;
  std::unique_ptr<kernels::Session> session_;
};

/// Requests of one thread: each run uses the memory of the one before.
struct RequestMemory {
  kernels::StepRequest append;
  kernels::LoadRequest load;
};
thread_local RequestMemory last_requests;

/// Larger memory is given back.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

/// Requests of one run, made here or by its interposer.
class RequestSource {
 public:
  RequestSource(const model::Scenario& scenario, const model::Timeline& timeline,
                const model::Fill& fill, const ExecuteOptions& options)
      : scenario_(scenario),
        timeline_(timeline),
        fill_(fill),
        interposer_(options.interposer),
        memory_(std::exchange(last_requests, {})) {
    if (interposer_ && interposer_->make_append) return;
    const bool shared = options.rows && options.rows->fit(scenario);
    rows_ = shared ? options.rows : &own_.emplace(scenario);
  }

  RequestSource(const RequestSource&) = delete;
  RequestSource& operator=(const RequestSource&) = delete;
  ~RequestSource() {
    std::size_t bytes = 0;
    for (const kernels::Tensor* tensor :
         {&memory_.append.query, &memory_.append.key, &memory_.append.value, &memory_.load.rows.key,
          &memory_.load.rows.value}) {
      bytes += tensor->bytes.capacity();
    }
    if (memory_.append.mask) bytes += memory_.append.mask->bytes.capacity();
    if (bytes <= kMostKept) last_requests = std::move(memory_);
  }

  /// Each is valid until the next call.
  kernels::StepRequest& append(std::size_t step) {
    if (rows_) {
      step_request(scenario_, timeline_, fill_, step, *rows_, memory_.append);
    } else {
      interposer_->make_append(step, memory_.append);
    }
    return memory_.append;
  }

  kernels::LoadRequest& load(std::size_t step) {
    if (rows_) {
      load_request(scenario_, timeline_, fill_, step, *rows_, memory_.load);
    } else {
      interposer_->make_load(step, memory_.load);
    }
    return memory_.load;
  }

 private:
  const model::Scenario& scenario_;
  const model::Timeline& timeline_;
  const model::Fill& fill_;
  const Interposer* interposer_;
  std::optional<DrawnRows> own_;
  DrawnRows* rows_ = nullptr;  // Null where the interposer makes the requests.
  RequestMemory memory_;
};

/// An inexact rollback asked of a target that promises to refuse it.
void try_inexact_rollback(Run& run, std::size_t step, const model::Rollback& rollback,
                          StepAnswer& out, Execution& execution) {
  StepAnswer before, after;
  if (!run.read_rows(before)) {
    out = before;
    return;
  }
  if (run.roll_back(step, rollback.tokens, out)) return;
  if (out.status != StepAnswer::Status::refused) return;
  if (!run.read_rows(after)) {
    out = after;
    return;
  }
  execution.refusal_kept_state = before.result.rows->key.bytes == after.result.rows->key.bytes &&
                                 before.result.rows->value.bytes == after.result.rows->value.bytes;
}

}  // namespace

Kind to_kind(kernels::Failure::Kind kind) {
  switch (kind) {
    case kernels::Failure::Kind::crash:
      return Kind::crash;
    case kernels::Failure::Kind::hang:
      return Kind::hang;
    case kernels::Failure::Kind::defect:
      return Kind::defect;
    case kernels::Failure::Kind::nonsense:
      break;
  }
  return Kind::nonsense;
}

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
  auto config = session_config(scenario, timeline, fill.poison(scenario.poison));
  config.threads = options.threads;
  config.isa = options.isa;
  auto* told = dynamic_cast<ToldTarget*>(&target);
  if (told) told->tell(scenario);
  // What answers from the scenario sees no tensors.
  const TensorChanges none;
  Run run(told ? none : options.changes, options.interposer);
  if (!run.open(target, std::move(config), execution.open)) return execution;
  RequestSource source(scenario, timeline, fill, options);
  const bool shows_rows = options.want_rows && target.capabilities().rows;
  const std::size_t count = std::min(scenario.steps.size(), options.step_count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool rows = shows_rows && (options.rows_at.empty() || options.rows_at[i]);
    StepAnswer& out = execution.steps[i];
    const model::Step& step = scenario.steps[i];
    if (!timeline.steps()[i].defined) {
      execution.complete = true;
      if (const auto* rollback = std::get_if<model::Rollback>(&step);
          rollback && target.capabilities().has("checks_rollback")) {
        try_inexact_rollback(run, i, *rollback, out, execution);
        execution.complete = out.status != StepAnswer::Status::broke;
      }
      return execution;
    }
    bool answered = false;
    if (std::holds_alternative<model::Append>(step)) {
      kernels::StepRequest& request = source.append(i);
      request.want_rows = rows;
      answered = run.append(i, request, out);
    } else if (std::holds_alternative<model::Past>(step)) {
      answered = run.load(i, source.load(i), out);
    } else {
      answered = run.roll_back(i, std::get<model::Rollback>(step).tokens, out);
    }
    if (answered && rows && !out.result.rows) answered = run.read_rows(out);
    if (!answered) return execution;
    run.end(i, out);
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

void output_row(const kernels::Tensor& output, std::int64_t entry, std::int64_t query,
                std::int64_t head, std::span<double> row) {
  const std::int64_t first =
      ((entry * output.shape[1] + query) * output.shape[2] + head) * output.shape[3];
  model::load_elements(
      to_model(output.type),
      output.bytes.data() + static_cast<std::size_t>(first) * kernels::element_bytes(output.type),
      row);
}

double output_at(const kernels::Tensor& output, std::int64_t entry, std::int64_t query,
                 std::int64_t head, std::int64_t lane) {
  return element(
      output,
      ((entry * output.shape[1] + query) * output.shape[2] + head) * output.shape[3] + lane);
}

}  // namespace kvcheck::properties
