// Operator calls that keep all rules, and for each rule calls that break it and no other. Shared by
// the tests of the rules and by the program that hands them to ONNX Runtime.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/calls/attention_rules.h"
#include "model/calls/gqa_rules.h"

namespace kvcheck::model {

/// What ONNX Runtime 1.32.0 does with a call.
enum class OnnxRuntime {
  agrees,   ///< Accepts it where no rule is broken, else refuses it with the phrase.
  accepts,  ///< Accepts it although a rule is broken.
  ends,     ///< Ends the process.
  unasked   ///< The shapes are not to be had, or it reads what it should not.
};

template <class Call, class Rule>
struct CallCase {
  std::string name;
  Call call;
  std::optional<Rule> broken;  ///< Empty = none.
  OnnxRuntime answer = OnnxRuntime::agrees;
  std::string phrase;  ///< Of its refusal.
};

using GqaCase = CallCase<GqaCall, GqaRule>;
using AttentionCase = CallCase<AttentionCall, AttentionRule>;

std::vector<GqaCase> gqa_cases();
std::vector<AttentionCase> attention_cases();

/// The strictness that an Attention case is about: that of its rule; for valid ones both hold.
Strictness strictness_of(const AttentionCase& tested);

/// All cases as a JSON list; see tests/tool/call_worker.py for the form of a call.
std::string call_cases_json();

}  // namespace kvcheck::model
