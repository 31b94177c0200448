// calls.refused, calls.accepted, calls.extreme_lengths: calls of the operator itself, changed in
// one way, against its rules.
//
// Let c be the call that the last step amounts to, c' the call after the scenario's change, and R
// the rules of model/calls. R(c') broken: refused, and nothing else (no crash, no hang). R(c')
// holds: answered; where only the layout of an input changed, with the outputs of c bit for bit.
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "model/calls/attention_rules.h"
#include "model/calls/gqa_rules.h"
#include "properties/calls/call_changes.h"
#include "properties/calls/call_of.h"
#include "properties/catalog.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;
using kernels::CallResult;
using kernels::OperatorCall;

constexpr const char* kFeature = "operator_calls";

/// What the rules say of a call.
struct Ruling {
  bool broken = false;
  bool either = false;  ///< The operator takes it, its CPU kernel need not.
  std::string rule;     ///< Name of the first broken rule.
  std::string message;
};

template <class Breaks>
void note(const Breaks& breaks, Ruling& ruling) {
  if (breaks.empty()) return;
  ruling.rule = to_string(breaks.front().rule);
  ruling.message = breaks.front().message();
}

Ruling rule_on(const OperatorCall& call) {
  Ruling ruling;
  if (call.op == "gqa") {
    const auto breaks = model::check(gqa_call_info(call));
    ruling.broken = !breaks.empty();
    note(breaks, ruling);
    return ruling;
  }
  const model::AttentionCall info = attention_call_info(call);
  const auto breaks = model::check(info, model::Strictness::operator_contract);
  ruling.broken = !breaks.empty();
  note(breaks, ruling);
  if (ruling.broken) return ruling;
  const auto besides = model::check(info, model::Strictness::onnxruntime_cpu);
  ruling.either = !besides.empty();
  note(besides, ruling);
  return ruling;
}

Judgement failed(Kind kind, const std::string& rule, std::string sentence) {
  Judgement judgement = Judgement::failed(kind, std::move(sentence));
  judgement.rule = rule;
  return judgement;
}

Judgement broke(const kernels::Failure& failure, const ChangedCall& changed,
                const std::string& rule) {
  const Kind kind = to_kind(failure.kind);
  return failed(kind, rule,
                fmt::format("the call with {} broke the target: {}", changed.name, failure.detail));
}

/// The bytes of an output, without rows of the present cache that the contract leaves unspecified.
std::vector<std::byte> specified_bytes(const Case& c, const OperatorCall::Input& output) {
  const kernels::Tensor& tensor = output.tensor;
  if (!output.name.starts_with("present_") || tensor.shape.size() != 4) return tensor.bytes;
  const auto& entries = c.timeline().steps().back().entries;
  const auto heads = tensor.shape[1], rows = tensor.shape[2];
  const auto lines = static_cast<std::size_t>(tensor.shape[0] * heads * rows);
  const std::size_t width = lines > 0 ? tensor.bytes.size() / lines : 0;
  std::vector<std::byte> bytes;
  for (std::size_t line = 0; line < lines; ++line) {
    const auto row = static_cast<std::int64_t>(line) % rows;
    const auto entry = line / static_cast<std::size_t>(heads * rows);
    if (row >= entries[entry].resident) continue;
    const auto first = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(line * width);
    bytes.insert(bytes.end(), first, first + static_cast<std::ptrdiff_t>(width));
  }
  return bytes;
}

/// First output of `changed` that differs from that of `plain`; empty = none.
std::string different_output(const Case& c, const CallResult& plain, const CallResult& changed) {
  for (const auto& output : plain.outputs) {
    for (const auto& other : changed.outputs) {
      if (other.name == output.name && specified_bytes(c, other) != specified_bytes(c, output)) {
        return output.name;
      }
    }
  }
  return "";
}

Judgement judge_sound(Case& c, const OperatorCall& call, const ChangedCall& changed,
                      const Answer<CallResult>& answer) {
  if (const auto* refusal = std::get_if<kernels::Refusal>(&answer)) {
    return failed(Kind::wrongly_refused, changed.name,
                  fmt::format("refused the call with {}, which keeps every rule: {}", changed.name,
                              refusal->reason));
  }
  if (!changed.same_meaning) return {};
  const Answer<CallResult> plain = c.target().call(call);
  const auto* right = std::get_if<CallResult>(&plain);
  if (right == nullptr) return Judgement::skipped("the unchanged call was not answered");
  const std::string output = different_output(c, *right, std::get<CallResult>(answer));
  if (output.empty()) return {};
  return failed(Kind::influence, changed.name,
                fmt::format("{} differs with {}, which says the same", output, changed.name));
}

enum class Part { broken, sound, extreme };

Judgement judge(Case& c, Part part) {
  const auto made = operator_call_of(c.scenario());
  if (const auto* none = std::get_if<NoCall>(&made)) return Judgement::skipped(none->reason);
  const auto& call = std::get<OperatorCall>(made);
  const auto changed = changed_call(call, c.scenario().call_change);
  if (!changed) return Judgement::skipped("the call has nothing to change in this way");
  const Ruling ruling = rule_on(changed->call);
  if (ruling.either) return Judgement::skipped("the rules leave it open: " + ruling.message);
  if (part == Part::sound && ruling.broken) return Judgement::skipped("breaks " + ruling.rule);
  if (part == Part::broken && !ruling.broken) return Judgement::skipped("keeps every rule");
  const Answer<CallResult> answer = c.target().call(changed->call);
  if (const auto* failure = std::get_if<kernels::Failure>(&answer)) {
    return broke(*failure, *changed, ruling.broken ? ruling.rule : changed->name);
  }
  if (!ruling.broken) return judge_sound(c, call, *changed, answer);
  if (std::holds_alternative<kernels::Refusal>(answer)) return {};
  return failed(Kind::wrongly_accepted, ruling.rule,
                fmt::format("took the call with {}, which breaks the rule {}: {}", changed->name,
                            ruling.rule, ruling.message));
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target,
                         bool extreme) {
  if (scenario.call_change.empty()) return "the scenario makes no operator call";
  if (auto reason = unpromised(target, kFeature); !reason.empty()) return reason;
  if (is_extreme(scenario.call_change) == extreme) return "";
  return extreme ? "no length is extreme" : "a length is extreme: calls.extreme_lengths judges it";
}

std::string with_usual_lengths(const model::Scenario& scenario,
                               const kernels::Capabilities& target) {
  return inapplicable(scenario, target, false);
}

std::string with_extreme_lengths(const model::Scenario& scenario,
                                 const kernels::Capabilities& target) {
  return inapplicable(scenario, target, true);
}

}  // namespace

Property refused_calls_property() {
  return {"calls.refused",
          "A call that breaks a rule of its operator is refused, and nothing else comes of it.",
          "missing or wrong checks of attributes, types, shapes, lengths and presence; crashes",
          with_usual_lengths,
          [](Case& c) { return judge(c, Part::broken); },
          kFeature};
}

Property accepted_calls_property() {
  return {"calls.accepted",
          "A call that keeps every rule of its operator is answered, and an input laid out in "
          "another permitted shape gives the same bits.",
          "checks that are too tight, shapes read as another one",
          with_usual_lengths,
          [](Case& c) { return judge(c, Part::sound); },
          kFeature};
}

Property extreme_lengths_property() {
  return {"calls.extreme_lengths",
          "Lengths and positions near the ends of their integer types are refused where they "
          "break a rule and answered where they keep all, without a crash.",
          "sums of lengths that wrap, checks after the narrowing, sizes of allocations",
          with_extreme_lengths,
          [](Case& c) { return judge(c, Part::extreme); },
          kFeature};
}

}  // namespace kvcheck::properties
