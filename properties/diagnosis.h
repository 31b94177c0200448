// Diagnosis: which wrong reading of the contract explains what a target answered.
#pragma once

#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/row_explanation.h"
#include "model/scenario.h"
#include "properties/case.h"

namespace kvcheck::properties {

/// What `execution` of the case's scenario answered, row by row: how many rows the contract
/// explains, and how many each wrong reading (model/wrong_models.h). Cheap where all is right;
/// about an oracle for each reading where rows fail, and that of one where `options.first` explains
/// all.
model::RowExplanation explain_rows(Case& c, const Execution& execution,
                                   const model::ExplainOptions& options = {});

/// One sentence without a full stop: "explained on every row if it leaves the causal rule out
/// (causal.skipped, largest bound ratio 0.4); the contract explains 3 % of the rows". Where no
/// reading explains every row, it says which comes nearest. Empty where no row fails.
std::string explanation_words(const model::RowExplanation& explanation);

/// Runs `scenario` once and puts its explanation into words: nothing where the outputs are right or
/// the target answers none. Where outputs are not finite, the measured mask (read_back.h) is
/// compared with the readings' visible sets as well. `what` names the scenario: "as first found".
std::vector<std::string> diagnosis_words(kernels::Target& target, const model::Scenario& scenario,
                                         const std::string& what = "as first found");

}  // namespace kvcheck::properties
