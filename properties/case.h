// A case: one scenario on one target, executed once and judged by every property that applies.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernels/target.h"
#include "model/oracle.h"
#include "model/scenario.h"
#include "properties/drawn_rows.h"
#include "properties/execution.h"
#include "properties/verdict.h"
#include "shrinkers/shrink.h"

namespace kvcheck::properties {

/// What a property says of one case.
struct Judgement {
  Verdict verdict = Verdict::passed;
  Kind kind = Kind::over_bound;  ///< Of a failure.
  std::string text;              ///< Of a failure the sentence, otherwise the reason.
  shrinkers::Hint hint;          ///< Where it failed.
  double max_ratio = 0;          ///< Largest bound ratio, where values were compared.
  /// The rule that was broken, where findings of one property and kind differ by it; part of the
  /// signature.
  std::string rule{};
  /// The number that is wrong after the step of the hint, where a run of another kind showed it.
  std::optional<kernels::ElementPlace> element{};

  static Judgement skipped(std::string reason) {
    return {Verdict::skipped, Kind::over_bound, std::move(reason), {}, 0};
  }
  static Judgement blind(std::string reason) {
    return {Verdict::blind, Kind::over_bound, std::move(reason), {}, 0};
  }
  static Judgement failed(Kind kind, std::string sentence, shrinkers::Hint hint = {}) {
    return {Verdict::failed, kind, std::move(sentence), hint, 0};
  }
};

/// Receives the bound ratios that a property computes, row by row; for error statistics.
using RatioSink = std::function<void(std::span<const double>)>;

class Bundle;
class DigitLaunches;

class Case {
 public:
  /// How properties that compare two ways to run the case are judged: each alone, with runs of its
  /// own and in every way that it knows; or bundled, by runs that differ in many of these ways at
  /// once, and alone only where such a run shows a difference (see bundle.h).
  enum class Mode { alone, bundled };

  /// \pre validate(scenario) is empty, unsupported_reason(target, scenario) is empty
  Case(kernels::Target& target, const model::Scenario& scenario, Mode mode = Mode::alone);
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  ~Case();

  Mode mode() const { return mode_; }

  kernels::Target& target() { return target_; }
  const kernels::Capabilities& capabilities() const { return target_.capabilities(); }
  const model::Scenario& scenario() const { return oracle_.scenario(); }
  const model::Timeline& timeline() const { return oracle_.timeline(); }
  const model::Fill& fill() const { return oracle_.fill(); }
  model::Oracle& oracle() { return oracle_; }
  /// Unit roundoff of the arithmetic that the target declares for the scenario.
  double roundoff() const;

  /// The one execution that all properties share.
  const Execution& execution();
  bool executed() const { return execution_.has_value(); }

  /// Queries, keys and values that runs of the case share.
  DrawnRows& rows() { return rows_; }

  /// The runs that differ in many ways at once; made on first use, in either mode.
  Bundle& bundle();

  /// The launches that show digits of positions. \pre as DigitLaunches
  DigitLaunches& digits();

  RatioSink ratio_sink;

 private:
  kernels::Target& target_;
  model::Oracle oracle_;
  Mode mode_;
  DrawnRows rows_;
  std::optional<Execution> execution_;
  std::unique_ptr<Bundle> bundle_;
  std::unique_ptr<DigitLaunches> digits_;
};

/// Why a derived scenario cannot be run on the target; empty = it can.
std::string cannot_run(const kernels::Target& target, const model::Scenario& scenario);

/// "the run broke off at step 2 (append 3): refused: ..." for a derived or main execution.
std::string broke_off(const model::Scenario& scenario, const Execution& execution);

}  // namespace kvcheck::properties
