// The table of steps with its filter box.
#include "reports/step_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reports/svg.h"
#include "reports/text.h"
#include "reports/visibility_grid.h"

namespace kvcheck::reports {
namespace {

/// One number per batch entry, as one text.
std::string of_entries(const StepView& step, std::int64_t EntryView::*field) {
  std::vector<std::int64_t> numbers;
  for (const EntryView& entry : step.entries) numbers.push_back(entry.*field);
  return numbers.empty() ? "" : list_text(numbers);
}

std::string visibility_text(const StepView& step) {
  if (!step.evidence || step.evidence->visibility.empty()) return "";
  std::int64_t leaked = 0, missing = 0, unmeasured = 0;
  for (const auto& query : step.evidence->visibility) {
    if (!query.measured) {
      ++unmeasured;
      continue;
    }
    const auto without = [](std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      std::vector<std::int64_t> rest;
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
      return static_cast<std::int64_t>(rest.size());
    };
    leaked += without(query.observed, query.expected);
    missing += without(query.expected, query.observed);
  }
  std::string out;
  if (leaked > 0) out = fmt::format("✗ {} leaked", grouped(leaked));
  if (missing > 0) out += fmt::format("{}○ {} missing", out.empty() ? "" : ", ", grouped(missing));
  if (out.empty() && unmeasured > 0) return "not read back";
  return out.empty() ? "agrees" : out;
}

std::string event_name(StepView::Event event) {
  switch (event) {
    case StepView::Event::append:
      return "append";
    case StepView::Event::past:
      return "past";
    case StepView::Event::rollback:
      return "rollback";
  }
  return "";
}

std::string verdict_of(const CaseView& view, std::size_t i) {
  if (view.is_failing(i)) return "failed";
  if (!view.steps[i].defined) return "undefined";
  return view.steps[i].evidence ? "ok" : "unrecorded";
}

std::string verdict_words(const std::string& verdict) {
  if (verdict == "failed") return "✗ failed";
  if (verdict == "undefined") return "not judged: the contract does not say";
  return verdict == "ok" ? "✓ ok" : "not recorded";
}

Element step_row(const CaseView& view, std::size_t i, std::string_view prefix) {
  const StepView& step = view.steps[i];
  const std::string id = fmt::format("{}-step-{}", prefix, i);
  const std::string verdict = verdict_of(view, i);
  Element row("tr");
  row.id(id).set("data-step", i).set("data-verdict", verdict);
  row.set("data-event", event_name(step.event));
  if (view.is_failing(i)) row.cls("bad");
  Element head("th");
  head.set("scope", "row").cls("n");
  row.add(head.add(Element("a").link_to(id).text(std::to_string(i))));
  row.add(cell(step.what));
  for (const auto field : {&EntryView::length, &EntryView::resident, &EntryView::first_position,
                           &EntryView::evicted}) {
    row.add(number_cell(of_entries(step, field)));
  }
  const bool staged = std::any_of(step.entries.begin(), step.entries.end(),
                                  [](const EntryView& entry) { return entry.staged; });
  row.add(cell(staged ? "staged" : ""));
  row.add(cell(visibility_text(step)));
  const bool compared = step.evidence && step.evidence->elements_compared > 0;
  row.add(number_cell(compared ? ratio_text(step.evidence->max_ratio) : ""));
  row.add(cell(step.evidence ? step.evidence->answer : ""));
  return row.add(Element("td").cls("v-" + verdict).text(verdict_words(verdict)));
}

Element filter_box(std::string_view prefix) {
  const std::string id = std::string(prefix) + "-filter";
  Element box("p");
  box.cls("filter").flag("hidden");
  box.add(Element("label").set("for", id).text("Filter"));
  Element input("input");
  input.id(id).set("type", "search").set("data-filter", std::string(prefix) + "-steps");
  input.set("placeholder", "verdict:failed  event:rollback  step:10-20  !text");
  input.set("size", 44).set("autocomplete", "off").set("spellcheck", "false");
  box.add(input);
  Element button("button");
  button.set("type", "button").set("data-failed-only", id).set("aria-pressed", "false");
  box.add(button.text("Failed only"));
  return box.add(Element("span").cls("filter-note").set("role", "status"));
}

}  // namespace

Element step_table(const CaseView& view, Shown shown, std::string_view prefix) {
  Element result("div");
  if (shown.total > 1) result.add(filter_box(prefix));
  const std::string caption = fmt::format("Steps of the minimal case, {}",
                                          view.batch > 1 ? "one number per batch entry where they "
                                                           "differ"
                                                         : "numbered as in the scenario");
  Element table = table_head(caption,
                             {"step", "event", "tokens", "resident", "first position", "evicted",
                              "buffer", "visibility", "error / bound", "answer", "verdict"},
                             "n nnnn  n  ");
  table.id(std::string(prefix) + "-steps");
  Element body("tbody");
  for (std::size_t i = shown.begin; i < shown.end; ++i) body.add(step_row(view, i, prefix));
  result.add(boxed(table.add(body), "Steps"));
  if (!shown.all()) result.add(note(shown.note("steps")));
  return result;
}

}  // namespace kvcheck::reports
