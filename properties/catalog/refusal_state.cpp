// target.refusal_keeps_state: what must be refused is refused, and changes nothing.
// Before one step of the case the target is asked to drop more tokens than there are, to take more
// tokens than the buffer has rows, and to load more rows than fit. It refuses each, and the rest of
// the case gives what it gave without: bit for bit where the target promises to repeat itself, else
// within twice the bound.
#include <algorithm>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "properties/catalog.h"
#include "properties/catalog/interposed.h"
#include "properties/catalog/sampled.h"
#include "properties/compare_runs.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kId = "target.refusal_keeps_state";

using kernels::Tensor;
using model::Scenario;

/// Keeps the request that is too long within reason.
constexpr std::int64_t kMostTokens = 2048;

bool has_buffer(const Scenario& s) { return s.op == model::Operator::gqa || s.nonpad_kv_seqlen; }

/// Asks what must be refused and remembers what was not.
class Temptation {
 public:
  Temptation(Case& c, std::size_t step) : c_(c), step_(step) {
    const auto& s = c.scenario();
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
      const bool drops = std::holds_alternative<model::Rollback>(s.steps[step]);
      lengths_.push_back(
          drops ? state.length +
                      std::get<model::Rollback>(s.steps[step]).tokens[static_cast<std::size_t>(b)]
                : state.past);
    }
  }

  void ask(kernels::Session& session) {
    ask_rollback(session);
    if (!keeps_every_token()) return;
    ask_append(session);
    ask_load(session);
  }

  std::int64_t asked() const { return asked_; }
  /// What was accepted, or broke the target; empty where all was refused.
  const std::optional<Judgement>& failure() const { return failure_; }

 private:
  bool keeps_every_token() const {
    return has_buffer(c_.scenario()) && c_.scenario().cache.layout == model::LayoutKind::full;
  }

  void ask_rollback(kernels::Session& session) {
    if (!c_.capabilities().has("rollback") || !c_.capabilities().has("checks_rollback")) return;
    std::vector<std::int64_t> tokens = lengths_;
    for (auto& n : tokens) ++n;
    judge(session.rollback(tokens), fmt::format("a rollback of {} tokens", tokens.front()));
    if (tokens.size() < 2) return;
    // The last entry alone asks too much, after others that a target may have taken by then.
    for (std::size_t b = 0; b + 1 < tokens.size(); ++b) {
      tokens[b] = std::min<std::int64_t>(1, lengths_[b]);
    }
    judge(session.rollback(tokens),
          fmt::format("a rollback of {} tokens of the last entry alone", tokens.back()));
  }

  void ask_append(kernels::Session& session) {
    const auto& s = c_.scenario();
    const std::int64_t rows = c_.timeline().buffer_rows();
    const std::int64_t tokens = rows - *std::ranges::min_element(lengths_) + 1;
    if (s.mask.kind != model::MaskKind::none || (s.rotary && s.rotary->position_ids)) return;
    if (tokens > kMostTokens) return;
    const auto type = to_kernel(s.element_type);
    kernels::StepRequest request;
    request.tokens.assign(static_cast<std::size_t>(s.batch), tokens);
    request.queries = request.tokens;
    request.query = Tensor::zeros(type, {s.batch, tokens, s.query_heads, s.head_size});
    request.key = Tensor::zeros(type, {s.batch, tokens, s.kv_heads, s.head_size});
    request.value = Tensor::zeros(type, {s.batch, tokens, s.kv_heads, s.value_head_size});
    judge(session.step(request), fmt::format("{} tokens for {} rows", tokens, rows));
  }

  void ask_load(kernels::Session& session) {
    if (!c_.capabilities().has("load")) return;
    const auto& s = c_.scenario();
    const std::int64_t rows = c_.timeline().buffer_rows();
    const auto type = storage_type(s);
    kernels::LoadRequest request;
    request.lengths.assign(static_cast<std::size_t>(s.batch), rows + 1);
    request.rows.key =
        Tensor::zeros(type, {s.batch, s.kv_heads, rows, stored_lanes(s, s.head_size)});
    request.rows.value =
        Tensor::zeros(type, {s.batch, s.kv_heads, rows, stored_lanes(s, s.value_head_size)});
    judge(session.load(request), fmt::format("a past of {} tokens for {} rows", rows + 1, rows));
  }

  template <class T>
  void judge(const kernels::Answer<T>& answer, const std::string& what) {
    ++asked_;
    if (failure_ || std::holds_alternative<kernels::Refusal>(answer)) return;
    const std::string where =
        fmt::format("before step {} (T={}), asked for {}", step_, lengths_.front(), what);
    if (const auto* broke = std::get_if<kernels::Failure>(&answer)) {
      failure_ =
          Judgement::failed(to_kind(broke->kind), where + ", the target breaks: " + broke->detail);
    } else {
      failure_ = Judgement::failed(Kind::wrongly_accepted,
                                   where + ", the target does it in place of a refusal");
    }
    failure_->hint.step = static_cast<std::int64_t>(step_);
  }

  Case& c_;
  std::size_t step_;
  std::vector<std::int64_t> lengths_;  // Of every entry before the step.
  std::int64_t asked_ = 0;
  std::optional<Judgement> failure_;
};

/// A step to ask before, by the content of the scenario: not the first, where nothing could change.
std::optional<std::size_t> place_of(const Case& c) {
  std::size_t defined = 0;
  while (defined < c.scenario().steps.size() && c.timeline().steps()[defined].defined) ++defined;
  if (defined < 2) return std::nullopt;
  return 1 + model::counter_hash(c.scenario().fill.seed, defined) % (defined - 1);
}

Judgement judge_case(Case& c) {
  if (const std::string why = passed_over(c, kId, 4); !why.empty()) {
    return Judgement::skipped(why);
  }
  const Execution& execution = c.execution();
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  const auto place = place_of(c);
  if (!place) return Judgement::skipped("nothing comes after the first step");
  Temptation temptation(c, *place);
  Interposer interposer;
  interposer.before = [&](std::size_t step, kernels::Session& session) {
    if (step == *place) temptation.ask(session);
  };
  const Execution run = execute_interposed(c, interposer);
  if (temptation.failure()) return *temptation.failure();
  if (temptation.asked() == 0) return Judgement::skipped("there is nothing that must be refused");
  if (!run.complete) {
    return Judgement::failed(Kind::influence, fmt::format("after refusals before step {} {}",
                                                          *place, broke_off(c.scenario(), run)));
  }
  const OtherRun other{c.scenario(), c.timeline(), run};
  const bool bits = c.capabilities().has("repeat_bits");
  std::optional<Difference> difference;
  for (std::size_t i = *place; i < execution.steps.size() && !difference; ++i) {
    if (c.timeline().steps()[i].defined) difference = compare_rows(c, other, i, i, bits);
  }
  if (!difference) difference = compare_outputs(c, other, bits, *place);
  if (!difference) return {};
  return Judgement::failed(
      Kind::influence,
      fmt::format("after refusals before step {} the case gives something else: {}", *place,
                  difference->sentence),
      difference->hint);
}

std::string inapplicable(const Scenario& scenario, const kernels::Capabilities& target) {
  if (scenario.steps.size() < 2) return "the scenario has one step";
  const bool full = has_buffer(scenario) && scenario.cache.layout == model::LayoutKind::full;
  if (full || (target.has("rollback") && target.has("checks_rollback"))) return "";
  return "there is nothing that must be refused";
}

}  // namespace

Property refusal_state_property() {
  return {kId,
          "Asked for what cannot be, to drop more tokens than there are or to take or "
          "load more than the buffer has rows, the target refuses, and everything after "
          "it is as without the question.",
          "checks that come after the first change, wrapped lengths, buffers overrun, "
          "counters that move before the refusal",
          inapplicable, judge_case};
}

}  // namespace kvcheck::properties
