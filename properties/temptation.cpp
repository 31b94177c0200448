// Asking for too much.
#include "properties/temptation.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "properties/convert.h"
#include "properties/execution.h"

namespace kvcheck::properties {
namespace {

using kernels::Tensor;
using model::Scenario;

/// Keeps the request that is too long within reason.
constexpr std::int64_t kMostTokens = 2048;

bool has_buffer(const Scenario& s) { return s.op == model::Operator::gqa || s.nonpad_kv_seqlen; }

bool keeps_every_token(const Scenario& s) {
  return has_buffer(s) && s.cache.layout == model::LayoutKind::full;
}

bool checks_rollback(const kernels::Capabilities& target) {
  return target.has("rollback") && target.has("checks_rollback");
}

}  // namespace

std::optional<std::size_t> Temptation::place_of(const Scenario& scenario,
                                                const model::Timeline& timeline) {
  std::size_t defined = 0;
  while (defined < scenario.steps.size() && timeline.steps()[defined].defined) ++defined;
  if (defined < 2) return std::nullopt;
  return 1 + model::counter_hash(scenario.fill.seed, defined) % (defined - 1);
}

bool Temptation::has_questions(const kernels::Capabilities& target, const Scenario& scenario) {
  return keeps_every_token(scenario) || checks_rollback(target);
}

Temptation::Temptation(const kernels::Capabilities& target, const Scenario& scenario,
                       const model::Timeline& timeline, const TensorChanges& changes)
    : target_(target),
      scenario_(scenario),
      timeline_(timeline),
      changes_(changes),
      place_(place_of(scenario, timeline)) {
  if (!place_) return;
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    const auto e = static_cast<std::size_t>(b);
    const auto& state = timeline.steps()[*place_].entries[e];
    const auto* rollback = std::get_if<model::Rollback>(&scenario.steps[*place_]);
    lengths_.push_back(rollback ? state.length + rollback->tokens[e] : state.past);
  }
}

void Temptation::ask(std::size_t step, kernels::Session& session) {
  if (!place_ || step != *place_) return;
  if (checks_rollback(target_)) ask_rollback(session);
  if (!keeps_every_token(scenario_)) return;
  ask_append(session);
  if (target_.has("load")) ask_load(session);
}

void Temptation::ask_rollback(kernels::Session& session) {
  const auto ask = [&](std::vector<std::int64_t> tokens, const std::string& what) {
    for (const auto& change : changes_) change->rollback(tokens);
    judge(session.rollback(tokens), what);
  };
  std::vector<std::int64_t> tokens = lengths_;
  for (auto& n : tokens) ++n;
  ask(tokens, fmt::format("a rollback of {} tokens", tokens.front()));
  if (tokens.size() < 2) return;
  // The last entry alone asks too much, after others that a target may have taken by then.
  for (std::size_t b = 0; b + 1 < tokens.size(); ++b) {
    tokens[b] = std::min<std::int64_t>(1, lengths_[b]);
  }
  ask(tokens, fmt::format("a rollback of {} tokens of the last entry alone", tokens.back()));
}

void Temptation::ask_append(kernels::Session& session) {
  const auto& s = scenario_;
  const std::int64_t rows = timeline_.buffer_rows();
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
  for (const auto& change : changes_) change->step(request);
  judge(session.step(request), fmt::format("{} tokens for {} rows", tokens, rows));
}

void Temptation::ask_load(kernels::Session& session) {
  const auto& s = scenario_;
  const std::int64_t rows = timeline_.buffer_rows();
  const auto type = storage_type(s);
  kernels::LoadRequest request;
  request.lengths.assign(static_cast<std::size_t>(s.batch), rows + 1);
  request.rows.key = Tensor::zeros(type, {s.batch, s.kv_heads, rows, stored_lanes(s, s.head_size)});
  request.rows.value =
      Tensor::zeros(type, {s.batch, s.kv_heads, rows, stored_lanes(s, s.value_head_size)});
  for (const auto& change : changes_) change->load(request);
  judge(session.load(request), fmt::format("a past of {} tokens for {} rows", rows + 1, rows));
}

template <class T>
void Temptation::judge(const kernels::Answer<T>& answer, const std::string& what) {
  ++asked_;
  if (failure_ || std::holds_alternative<kernels::Refusal>(answer)) return;
  const std::string where =
      fmt::format("before step {} (T={}), asked for {}", *place_, lengths_.front(), what);
  if (const auto* broke = std::get_if<kernels::Failure>(&answer)) {
    failure_ =
        Judgement::failed(to_kind(broke->kind), where + ", the target breaks: " + broke->detail);
  } else {
    failure_ = Judgement::failed(Kind::wrongly_accepted,
                                 where + ", the target does it in place of a refusal");
  }
  failure_->hint.step = static_cast<std::int64_t>(*place_);
}

}  // namespace kvcheck::properties
