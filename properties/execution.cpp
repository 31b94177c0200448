// Step by step through a scenario.
#include "properties/execution.h"

#include <algorithm>
#include <memory>
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

/// What an assignment does, in far less code where nothing is replaced.
void renew(kernels::StepResult& old, kernels::StepResult&& result) {
  std::destroy_at(&old);
  std::construct_at(&old, std::move(result));
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

  bool append(std::size_t step, const kernels::StepRequest& request, StepAnswer& out) {
    begin(step);
    return take(session_->step(request), out, [&](kernels::StepResult&& result) {
      undo(changes_, [&](const TensorChange& change) {
        change.answer(result);
        if (result.rows) change.rows(*result.rows);
      });
      renew(out.result, std::move(result));
    });
  }

  bool load(std::size_t step, const kernels::LoadRequest& request, StepAnswer& out) {
    begin(step);
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

/// Requests of one thread, by step: each run uses the memory of the one before.
struct RequestMemory {
  std::vector<kernels::StepRequest> appends;
  std::vector<kernels::LoadRequest> loads;
};
thread_local std::unique_ptr<RequestMemory> last_requests;

/// The memory of a run that asks for more is given back.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

/// Requests of one run, made and changed before the first is asked, so that the code that makes
/// them and the code that answers them do not push each other out of the caches at every step.
class RequestSource {
 public:
  /// \param count steps that are run
  RequestSource(const model::Scenario& scenario, const model::Timeline& timeline,
                const model::Fill& fill, const ExecuteOptions& options,
                const TensorChanges& changes, std::size_t count)
      : changes_(changes),
        interposer_(options.interposer),
        memory_(last_requests ? std::move(last_requests) : std::make_unique<RequestMemory>()) {
    if (memory_->appends.size() < count) memory_->appends.resize(count);
    if (memory_->loads.size() < count) memory_->loads.resize(count);
    std::optional<DrawnRows> own;
    DrawnRows* rows = nullptr;  // Where the interposer makes the requests.
    if (!(interposer_ && interposer_->make_append)) {
      const bool shared = options.rows && options.rows->fit(scenario);
      rows = shared ? options.rows : &own.emplace(scenario);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (std::holds_alternative<model::Append>(scenario.steps[i])) {
        if (rows) {
          step_request(scenario, timeline, fill, i, *rows, append(i));
        } else {
          interposer_->make_append(i, append(i));
        }
        change(i, append(i));
      } else if (std::holds_alternative<model::Past>(scenario.steps[i])) {
        if (rows) {
          load_request(scenario, timeline, fill, i, *rows, load(i));
        } else {
          interposer_->make_load(i, load(i));
        }
        change(i, load(i));
      }
    }
  }

  RequestSource(const RequestSource&) = delete;
  RequestSource& operator=(const RequestSource&) = delete;
  ~RequestSource() {
    if (bytes_ <= kMostKept) last_requests = std::move(memory_);
  }

  /// \pre the step is an append, or a load
  kernels::StepRequest& append(std::size_t step) { return memory_->appends[step]; }
  kernels::LoadRequest& load(std::size_t step) { return memory_->loads[step]; }

 private:
  void change(std::size_t step, kernels::StepRequest& request) {
    for (const auto& one : changes_) one->step(request);
    if (interposer_ && interposer_->append) interposer_->append(step, request);
    bytes_ += request.query.bytes.size() + request.key.bytes.size() + request.value.bytes.size() +
              (request.mask ? request.mask->bytes.size() : 0);
  }

  void change(std::size_t step, kernels::LoadRequest& request) {
    for (const auto& one : changes_) one->load(request);
    if (interposer_ && interposer_->load) interposer_->load(step, request);
    bytes_ += request.rows.key.bytes.size() + request.rows.value.bytes.size();
  }

  const TensorChanges& changes_;
  const Interposer* interposer_;
  std::unique_ptr<RequestMemory> memory_;
  std::size_t bytes_ = 0;  // Of all requests.
};

/// How many of the first `count` steps come before one that the contract leaves undefined.
std::size_t defined_steps(const model::Timeline& timeline, std::size_t count) {
  const auto& steps = timeline.steps();
  const auto end = steps.begin() + static_cast<std::ptrdiff_t>(count);
  return static_cast<std::size_t>(
      std::find_if(steps.begin(), end, [](const auto& step) { return !step.defined; }) -
      steps.begin());
}

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
  const TensorChanges& changes = told ? none : options.changes;
  Run run(changes, options.interposer);
  if (!run.open(target, std::move(config), execution.open)) return execution;
  const bool shows_rows = options.want_rows && target.capabilities().rows;
  const std::size_t count = std::min(scenario.steps.size(), options.step_count);
  RequestSource source(scenario, timeline, fill, options, changes, defined_steps(timeline, count));
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
