// A target that answers by the exact model under one reading of the contract.
//
// Proves what the suite is worth against misreadings that no own kernel has a fault for.
#pragma once

#include <memory>

#include "kernels/target.h"
#include "model/wrong_models.h"

namespace kvcheck::properties {

/// Claims every feature and every promise of equal bits: an exact answer has none to lose.
kernels::Capabilities modelled_capabilities();

/// Answers by `reading` where it concerns the scenario, by the contract elsewhere; null = always by
/// the contract. Outputs and intermediates are the exact ones rounded to the element type; rows are
/// those that the cache stores. With `one_row`, queries at the positions 3, 8, 13, ... (and -2,
/// -7, ... where a query stands before the first key) of the middle query head of the last entry
/// alone are answered by the reading: at the last head a quotient and a remainder are the same.
/// It answers scenarios that it was told (told_target.h); what a request holds is not looked at.
std::unique_ptr<kernels::Target> make_modelled_target(const model::WrongModel* reading,
                                                      bool one_row = false);

}  // namespace kvcheck::properties
