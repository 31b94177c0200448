// Execution: one scenario run on one target, step by step, with everything it answered.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/fill.h"
#include "model/scenario.h"
#include "model/timeline.h"
#include "properties/drawn_rows.h"
#include "properties/tensor_change.h"
#include "properties/verdict.h"

namespace kvcheck::properties {

/// What the target said to one step.
struct StepAnswer {
  enum class Status { not_run, ok, refused, broke };
  Status status = Status::not_run;
  std::string reason;  ///< Of a refusal or a break.
  kernels::Failure::Kind broke_as = kernels::Failure::Kind::crash;
  kernels::StepResult result;  ///< Of an append; rows also after a rollback or a past.
};

/// What a break is called in a finding.
Kind to_kind(kernels::Failure::Kind kind);

struct Execution {
  StepAnswer open;
  std::vector<StepAnswer> steps;
  /// True when the open and every step whose result the contract defines was answered.
  bool complete = false;
  /// After a refused inexact rollback: whether the rows were still what they had been.
  bool refusal_kept_state = true;

  /// Index of the first step that was refused or broke, -1 for the open; empty = none.
  std::optional<std::int64_t> first_problem() const;
};

/// What is done to requests on their way to the target; empty members do nothing. Steps are those
/// of the scenario. All requests of a run are made and changed before the first is asked.
struct Interposer {
  std::function<void(kernels::SessionConfig&)> config;
  /// Both or none: make the requests in place of the scenario's own, into memory that is used
  /// again. The fill of the run is then asked for its poison alone.
  std::function<void(std::size_t step, kernels::StepRequest&)> make_append;
  std::function<void(std::size_t step, kernels::LoadRequest&)> make_load;
  std::function<void(std::size_t step, kernels::StepRequest&)> append;
  std::function<void(std::size_t step, kernels::LoadRequest&)> load;
  /// Before the step is asked: may ask the target other things.
  std::function<void(std::size_t step, kernels::Session&)> before;
  /// After the step was answered, with its result: may ask the target other things.
  std::function<void(std::size_t step, kernels::Session&, const kernels::StepResult&)> after;
};

struct ExecuteOptions {
  bool want_rows = true;
  std::vector<bool> rows_at = {};  ///< Of each step whether rows are wanted; empty = of all.
  /// Of what the target is given, first to last; what it answers is changed back.
  TensorChanges changes = {};
  /// Steps to run; those behind are as if the scenario ended before them.
  std::size_t step_count = std::numeric_limits<std::size_t>::max();
  int threads = 0;       ///< SessionConfig::threads; 0 = as many as the target likes.
  std::string isa = {};  ///< SessionConfig::isa; empty = the target's widest.
  const Interposer* interposer = nullptr;  ///< Comes after the changes.
  /// Rows that other runs have drawn and this one may add to; used where they fit the scenario.
  DrawnRows* rows = nullptr;
};

/// Runs the scenario. Stops at the first refusal or break, and before the first step that the
/// contract leaves undefined; an inexact rollback itself is asked of targets that check it.
/// \pre validate(scenario) is empty
Execution execute(kernels::Target& target, const model::Scenario& scenario,
                  const model::Timeline& timeline, const model::Fill& fill,
                  const ExecuteOptions& options = {});

/// Value of one element of a dense tensor, as double. Booleans read as 0 or 1.
double element(const kernels::Tensor& tensor, std::int64_t index);

/// Reads output (entry, query, head, lane) of an answer of the shape [B,S,Nq,Hv].
double output_at(const kernels::Tensor& output, std::int64_t entry, std::int64_t query,
                 std::int64_t head, std::int64_t lane);

/// The same of the first lanes of one row, as many as fit.
void output_row(const kernels::Tensor& output, std::int64_t entry, std::int64_t query,
                std::int64_t head, std::span<double> row);

}  // namespace kvcheck::properties
