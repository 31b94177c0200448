// Joins the model's timeline of a scenario with the evidence of its run.
#include "reports/case_view.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::FindingRecord;

std::int64_t at_or_zero(const std::vector<std::int64_t>& numbers, std::size_t i) {
  return i < numbers.size() ? numbers[i] : 0;
}

/// Event, words, and what each entry gains and loses, from the step itself.
StepView view_of(const model::Step& step, std::size_t batch) {
  StepView view;
  view.what = model::describe(step);
  view.entries.resize(batch);
  for (std::size_t b = 0; b < batch; ++b) {
    if (const auto* append = std::get_if<model::Append>(&step)) {
      view.entries[b].appended = at_or_zero(append->tokens, b);
      view.entries[b].queries = at_or_zero(append->queries, b);
    } else if (const auto* past = std::get_if<model::Past>(&step)) {
      view.event = StepView::Event::past;
      view.entries[b].appended = at_or_zero(past->tokens, b);
    } else {
      view.event = StepView::Event::rollback;
      view.entries[b].rolled_back = at_or_zero(std::get<model::Rollback>(step).tokens, b);
    }
  }
  return view;
}

void take_timeline(CaseView& view) {
  for (std::size_t i = 0; i < view.steps.size(); ++i) {
    const model::TimelineStep& from = view.timeline->steps()[i];
    StepView& step = view.steps[i];
    step.defined = from.defined;
    step.undefined_reason = from.undefined_reason;
    for (std::size_t b = 0; b < step.entries.size(); ++b) {
      const model::EntryStep& entry = from.entries[b];
      step.entries[b].length = entry.length;
      step.entries[b].resident = entry.resident;
      step.entries[b].first_position = entry.first_position.value;
      step.entries[b].evicted = entry.evicted;
      step.entries[b].staged = entry.staged;
    }
  }
}

/// The lengths that were recorded, where the model has no answer.
void take_evidence(CaseView& view) {
  view.batch = 0;
  for (StepView& step : view.steps) {
    if (!step.evidence || step.evidence->entries.empty()) {
      step.entries.clear();
      continue;
    }
    step.entries.resize(step.evidence->entries.size());
    for (std::size_t b = 0; b < step.entries.size(); ++b) {
      const properties::EntryEvidence& entry = step.evidence->entries[b];
      step.entries[b].length = entry.length;
      step.entries[b].resident = entry.resident;
      step.entries[b].first_position = entry.first_position;
      step.entries[b].evicted = entry.evicted;
      step.entries[b].staged = entry.staged;
      view.buffer_rows = std::max(view.buffer_rows, entry.resident);
    }
  }
}

}  // namespace

const StepView* CaseView::failing_step() const {
  return failing >= 0 && failing < static_cast<std::int64_t>(steps.size())
             ? &steps[static_cast<std::size_t>(failing)]
             : nullptr;
}

CaseView make_case_view(const FindingRecord& finding) {
  const model::Scenario& scenario = finding.minimal;
  CaseView view;
  view.failing = finding.evidence.failing_step;
  view.capacity = scenario.cache.capacity;
  view.window = scenario.cache.window_size.value_or(0);
  const auto refusals = model::validate(scenario);
  const bool known = refusals.empty();
  view.batch = known ? scenario.batch : 0;
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    view.steps.push_back(view_of(scenario.steps[i], static_cast<std::size_t>(view.batch)));
    if (i < finding.evidence.steps.size()) view.steps[i].evidence = &finding.evidence.steps[i];
  }
  if (known) {
    view.timeline.emplace(scenario);
    view.buffer_rows = view.timeline->buffer_rows();
    take_timeline(view);
  } else {
    view.no_timeline = "The contract refuses this case: " + refusals.front().message() + ".";
    take_evidence(view);
  }
  return view;
}

std::string Shown::note(std::string_view what) const {
  if (all()) return "";
  if (begin == 0) {
    return fmt::format("The first {} of {} {} are shown; all are in run.json.",
                       grouped(static_cast<std::int64_t>(end)),
                       grouped(static_cast<std::int64_t>(total)), what);
  }
  return fmt::format("Shown: {} {} to {} of {}, around the first divergence; all are in run.json.",
                     what, grouped(static_cast<std::int64_t>(begin)),
                     grouped(static_cast<std::int64_t>(end) - 1),
                     grouped(static_cast<std::int64_t>(total)));
}

Shown window_around(std::size_t total, std::int64_t center, std::size_t limit) {
  if (total <= limit) return {0, total, total};
  const auto middle = static_cast<std::size_t>(
      std::clamp<std::int64_t>(center, 0, static_cast<std::int64_t>(total) - 1));
  const std::size_t begin = std::min(middle - std::min(middle, limit / 2), total - limit);
  return {begin, begin + limit, total};
}

std::vector<std::pair<std::string, std::string>> shape_facts(const model::Scenario& s) {
  std::vector<std::pair<std::string, std::string>> facts;
  const bool gqa = s.op == model::Operator::gqa;
  facts.emplace_back("operator",
                     gqa ? "GroupQueryAttention" : fmt::format("Attention, opset {}", s.opset));
  facts.emplace_back("element type", model::to_string(s.element_type));
  facts.emplace_back("batch", grouped(s.batch));
  facts.emplace_back("heads", fmt::format("{} query, {} KV", s.query_heads, s.kv_heads));
  facts.emplace_back("head size",
                     s.value_head_size == s.head_size
                         ? grouped(s.head_size)
                         : fmt::format("{}, values {}", s.head_size, s.value_head_size));
  std::string cache(model::to_string(s.cache.layout));
  if (s.cache.capacity > 0) cache += fmt::format(", capacity {}", s.cache.capacity);
  if (s.cache.window_size) cache += fmt::format(", window {}", *s.cache.window_size);
  facts.emplace_back("cache", cache);
  if (!gqa) facts.emplace_back("causal", s.causal ? "yes" : "no");
  if (s.nonpad_kv_seqlen) facts.emplace_back("lengths", "by nonpad_kv_seqlen");
  if (s.mask.kind != model::MaskKind::none) {
    facts.emplace_back(
        "mask", fmt::format("{}, rank {}, {} % hidden", model::to_string(s.mask.kind), s.mask.rank,
                            s.mask.hidden_percent));
  }
  if (s.scale) facts.emplace_back("scale", exact(*s.scale));
  facts.emplace_back("data",
                     fmt::format("{}, seed {}", model::to_string(s.fill.kind), s.fill.seed));
  facts.emplace_back("unused rows hold", std::string(model::to_string(s.poison)));
  return facts;
}

std::string replay_command(const FindingRecord& finding) {
  const std::string name = clean_text(finding.hash.empty() ? finding.file : finding.hash);
  return name.empty() ? "./kvcheck replay last" : "./kvcheck replay " + shell_quoted(name);
}

}  // namespace kvcheck::reports
