// Variants: the same case run in another way that must not matter.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "properties/case.h"
#include "properties/compare_runs.h"
#include "properties/execution.h"

namespace kvcheck::properties {

/// A step of the case and one of a variant after which both hold the same tokens.
using StepPair = std::pair<std::size_t, std::size_t>;

/// Another way to run a case.
struct Variant {
  model::Scenario scenario;
  ExecuteOptions options;
  std::string words;  ///< How it differs: "with 3 threads".
  /// The steps whose rows are compared.
  std::vector<StepPair> same_state;
  std::int64_t first_entry = 0;  ///< As OtherRun's.
  double smallest = 0;           ///< As OtherRun's.
  std::size_t first_step = 0;    ///< Of the case: outputs are compared from there on.
  bool asks_refusals = false;    ///< In between the target is asked what it must refuse.
};

/// The case as it is, every step paired with itself.
Variant unchanged(const Case& c);

/// Pairs the case with the steps that `moved` says a variant's steps have become.
void follow(std::vector<StepPair>& same_state, const std::vector<StepPair>& moved);

/// What a variant's run shows beside the main one.
struct Comparison {
  std::optional<Difference> difference;
  std::string broke;             ///< Why the variant's run broke off; empty = it did not.
  std::optional<Kind> broke_as;  ///< Where the target broke, rather than refused.
  bool shares_queries = false;
  bool shares_rows = false;
  bool spared = false;  ///< Outputs below Variant::smallest differ.
};

/// Runs a variant and compares it with the main run: rows of the positions that both caches hold,
/// outputs and intermediates; bit for bit or within
/// twice the bound, as compare_rows and compare_outputs have it.
/// \pre cannot_run(target, variant.scenario) is empty, the case's own execution is complete
Comparison compare_variant(Case& c, const Variant& variant, bool bitwise);

/// Judges a case in `count` ways, one after the other: the first failure, else passed where any way
/// passed, else skipped with the reason of the last one; `none` = the reason where there is no way.
/// \pre the case's own execution is complete, else it is skipped
Judgement judge_each(Case& c, std::size_t count, std::string none,
                     const std::function<Judgement(std::size_t)>& judge);

/// How judge_variants judges.
struct VariantJudging {
  Kind kind = Kind::bits_difference;  ///< Of a failure.
  bool bitwise = true;
  bool rows_suffice = false;  ///< Two runs that share rows and no query say something as well.
  std::string none = "there is no other way to run the scenario";  ///< As judge_each's.
  /// Start of the sentence of a failure, before the variant's words.
  std::string subject = "the same case";
};

/// Runs the case in each of the ways and compares it with the main run. Skipped when no variant
/// could be compared, with the reason of the last one.
Judgement judge_variants(Case& c, const std::vector<Variant>& variants,
                         const VariantJudging& judging);

/// A poison unlike the scenario's own; NaN only for targets that promise to bear it.
model::Poison other_poison(const Case& c);

}  // namespace kvcheck::properties
