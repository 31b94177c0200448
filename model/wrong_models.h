// Wrong models: plausible wrong readings of the contract, each right but for one thing.
//
// They serve three ends. Blindness: can a scenario tell the reading from the right one
// (blindness.h)? Diagnosis: which reading explains what a target answered? Tests of the model: each
// must change the answer where it says that it does.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/reading.h"
#include "model/scenario.h"

namespace kvcheck::model {

struct WrongModel {
  std::string_view name;       ///< "window.one_more": what is read wrong, and how.
  std::string_view statement;  ///< What a target that reads so does, as a sentence without subject.
  /// Whether the scenario has what the reading is about; it is asked of no other.
  bool (*concerns)(const Scenario&);
  Reading reading;
};

/// All of them, in an order that does not change with additions at the end of a group.
std::span<const WrongModel> wrong_models();

/// The wrong model of that name; null if there is none.
const WrongModel* find_wrong_model(std::string_view name);

// The groups, one file each in readings/.
std::vector<WrongModel> wrong_causality();  ///< Which keys the causal rule and the lengths leave.
std::vector<WrongModel> wrong_windows();    ///< Which keys the window leaves.
std::vector<WrongModel> wrong_masks();      ///< How attn_mask and attention_bias are read.
std::vector<WrongModel> wrong_rows();       ///< Which row, head or entry is read.
std::vector<WrongModel> wrong_logits();     ///< Scale, softcap, sinks and sums.
std::vector<WrongModel> wrong_operands();   ///< Rotary embedding, norm, quantisation.

}  // namespace kvcheck::model
