// The section of one finding.
#include "reports/finding_section.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "reports/figures.h"
#include "reports/run_summary.h"
#include "reports/step_table.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::FindingRecord;
using properties::Kind;

constexpr std::size_t kMaxLines = 60;        // Of any list of sentences.
constexpr std::size_t kMaxCase = 256 << 10;  // Bytes of a case that the page carries.

/// At most kMaxLines of `lines` as a list; says how many there are.
Element sentence_list(const std::vector<std::string>& lines, Name tag) {
  Element list(tag);
  for (std::size_t i = 0; i < lines.size() && i < kMaxLines; ++i) {
    list.add(Element("li").text(lines[i]));
  }
  if (lines.size() > kMaxLines) {
    list.add(Element("li").text(
        fmt::format("({} of {} shown; all are in run.json)", kMaxLines, lines.size())));
  }
  return list;
}

Element heading(std::string_view id, std::string_view text) {
  return Element("h3").id(id).add(Element("a").cls("anchor").link_to(id).text(text));
}

/// The script of the case: its steps, the failing one marked.
Element script_of(const CaseView& view, const std::string& id) {
  constexpr std::size_t kMost = 12;
  const Shown shown = window_around(view.steps.size(), view.failing, kMost);
  Element list("ol");
  list.cls("script").set("start", shown.begin);
  for (std::size_t i = shown.begin; i < shown.end; ++i) {
    Element item("li");
    if (view.is_failing(i)) item.cls("bad");
    item.add(Element("code").text(view.steps[i].what));
    if (view.is_failing(i)) {
      item.text(" ").add(Element("strong").cls("v-failed").text("✗ first divergence"));
    }
    list.add(item);
  }
  Element box("div");
  box.id(id + "-script").add(list);
  if (!shown.all()) box.add(note(shown.note("steps")));
  return box;
}

Element facts_of(const model::Scenario& scenario) {
  Element list("dl");
  list.cls("facts");
  for (const auto& [name, value] : shape_facts(scenario)) {
    list.add(Element("div").add(Element("dt").text(name)).add(Element("dd").text(value)));
  }
  return list;
}

void add_story(Element& parent, const FindingRecord& finding, const CaseView& view,
               const std::string& id) {
  parent.add(heading(id + "-story", "What happened"));
  if (!finding.evidence.words.empty()) {
    parent.add(sentence_list(finding.evidence.words, "ol").cls("words"));
  } else {
    parent.add(Element("p").text(finding.summary));
  }
  Element pair("div");
  pair.cls("pair");
  Element left("div"), right("div");
  left.add(Element("h4").text("The steps, from 0")).add(script_of(view, id));
  right.add(Element("h4").text("The case")).add(facts_of(finding.minimal));
  parent.add(pair.add(left).add(right));
  for (const std::string& text : finding.evidence.notes) {
    if (&text - finding.evidence.notes.data() >= static_cast<std::ptrdiff_t>(kMaxLines)) break;
    parent.add(note(text));
  }
}

/// Entries to draw: those that differ first, then the others.
std::vector<std::size_t> entries_to_draw(const CaseView& view, std::size_t limit) {
  std::vector<std::size_t> order;
  const auto take = [&](std::int64_t entry) {
    if (entry < 0 || entry >= view.batch) return;
    const auto b = static_cast<std::size_t>(entry);
    if (std::find(order.begin(), order.end(), b) == order.end()) order.push_back(b);
  };
  if (const StepView* step = view.failing_step(); step && step->evidence) {
    for (const auto& query : step->evidence->visibility) {
      if (query.measured && query.expected != query.observed) take(query.entry);
    }
    for (const auto& row : step->evidence->rows) take(row.entry);
    for (const auto& element : step->evidence->elements) {
      if (!(element.ratio <= 1)) take(element.entry);
    }
  }
  for (std::int64_t b = 0; b < view.batch; ++b) take(b);
  if (order.size() > limit) order.resize(limit);
  return order;
}

/// Whether two entries would be drawn alike.
bool same_timeline(const CaseView& view, std::size_t a, std::size_t b) {
  for (const StepView& step : view.steps) {
    if (step.entries[a] != step.entries[b]) return false;
    if (!step.evidence) continue;
    for (const auto& row : step.evidence->rows) {
      if (row.entry == static_cast<std::int64_t>(a) || row.entry == static_cast<std::int64_t>(b)) {
        return false;
      }
    }
  }
  return true;
}

void add_timeline(Element& parent, const CaseView& view, const std::string& id,
                  const SectionLimits& limits) {
  parent.add(heading(id + "-1", "1 Timeline"));
  if (view.batch == 0 || view.steps.empty()) {
    parent.add(note(view.no_timeline.empty() ? "The record holds no steps." : view.no_timeline));
    return;
  }
  const auto entries = entries_to_draw(view, limits.entries);
  const Shown shown = window_around(view.steps.size(), view.failing, limits.timeline_steps);
  std::vector<std::size_t> drawn;
  for (const std::size_t entry : entries) {
    const auto twin = std::find_if(drawn.begin(), drawn.end(), [&](std::size_t other) {
      return same_timeline(view, entry, other);
    });
    if (twin != drawn.end()) {
      parent.add(note(fmt::format("Batch entry {} has the timeline of entry {}.", entry, *twin)));
      continue;
    }
    drawn.push_back(entry);
    parent.add(timeline_figure(view, entry, shown, id));
  }
  if (static_cast<std::int64_t>(entries.size()) < view.batch) {
    parent.add(
        note(fmt::format("{} of {} are looked at here, those that differ first.", entries.size(),
                         counted(view.batch, "batch entry", "batch entries"))));
  }
  for (const StepView& step : view.steps) {
    if (step.defined) continue;
    parent.add(note("The contract does not say what the rows hold from here on: " +
                    step.undefined_reason + "."));
    break;
  }
}

void add_observed(Element& parent, const CaseView& view, const std::string& id) {
  parent.add(heading(id + "-2", "2 Expected against observed"));
  const StepView* step = view.failing_step();
  bool any = false;
  if (step && step->evidence) {
    if (step->evidence->answer != "ok") {
      Element answer("p");
      parent.add(answer.cls("lead")
                     .text("The target answered: ")
                     .add(Element("code").text(step->evidence->answer)));
      any = true;
    }
    const VisibilityGrid grid = make_visibility_grid(*step->evidence);
    if (!grid.rows.empty()) parent.add(visibility_figure(grid, view, id)), any = true;
    if (!step->evidence->rows.empty()) parent.add(rows_figure(view, id)), any = true;
  }
  if (!any) {
    parent.add(note(step ? "Visibility and rows were not read at the failing step, or they agree."
                         : "No single step diverges, so there is no grid to show."));
  }
}

void add_errors(Element& parent, const properties::RunRecord& record, const FindingRecord& finding,
                const CaseView& view, const std::string& id) {
  parent.add(heading(id + "-3", "3 Error against bound"));
  const StepView* step = view.failing_step();
  const bool elements = step && step->evidence && !step->evidence->elements.empty();
  if (elements) {
    const auto& worst = step->evidence->elements;
    if (!(worst.front().ratio <= 1)) {
      parent.add(figure(
          id + "-worst", gauge_svg(worst.front(), id + "-worst"),
          fmt::format("Entry {}, head {}, query at {}, lane {}.", worst.front().entry,
                      worst.front().head, worst.front().query_position, worst.front().lane)));
    }
    parent.add(element_table(worst, id));
  } else {
    parent.add(note("No output element was compared at the failing step."));
  }
  constexpr std::size_t kMost = 3;
  std::size_t shown = 0;
  for (const auto& errors : record.errors) {
    if (errors.target != finding.target || shown == kMost) continue;
    parent.add(histogram_figure(errors, fmt::format("{}-errors-{}", id, shown++)));
  }
}

void add_trail(Element& parent, const FindingRecord& finding, const std::string& id) {
  parent.add(heading(id + "-5", "5 How the case was shrunk, and what matters in it"));
  if (!finding.nearest_passing.empty()) {
    Element nearest("p");
    nearest.cls("nearest").add(Element("strong").cls("v-ok").text("✓ Nearest case that passes: "));
    parent.add(nearest.text(finding.nearest_passing));
  }
  if (!finding.explain.empty()) {
    Element table = table_head("Each field alone", {"field", "what other values do"}, "  ");
    Element body("tbody");
    for (std::size_t i = 0; i < finding.explain.size() && i < kMaxLines; ++i) {
      const std::string& line = finding.explain[i];
      const std::size_t colon = line.find(": ");
      Element row("tr");
      row.add(row_head(line.substr(0, colon)));
      body.add(row.add(cell(colon == std::string::npos ? "" : line.substr(colon + 2))));
    }
    parent.add(boxed(table.add(body), "Each field alone"));
    if (finding.explain.size() > kMaxLines) {
      parent.add(note(Shown{0, kMaxLines, finding.explain.size()}.note("fields")));
    }
  }
  if (finding.trail.empty()) {
    parent.add(note("The first case found is already the smallest one."));
    return;
  }
  constexpr std::size_t kMost = 60;
  const Shown shown = {0, std::min(kMost, finding.trail.size()), finding.trail.size()};
  Element table =
      table_head("Reductions that kept the failure", {"#", "pass", "change", "evaluation"}, "n  n");
  Element body("tbody");
  for (std::size_t i = 0; i < shown.end; ++i) {
    Element row("tr");
    row.add(row_head(std::to_string(i + 1)).cls("n")).add(cell(finding.trail[i].pass));
    row.add(cell(finding.trail[i].change));
    body.add(row.add(number_cell(grouped(finding.trail[i].evaluation))));
  }
  Element box =
      details(counted(static_cast<std::int64_t>(shown.total), "reduction"), shown.total <= 12);
  box.add(boxed(table.add(body), "Reductions"));
  if (!shown.all()) box.add(note(shown.note("reductions")));
  parent.add(box);
}

}  // namespace

std::vector<std::string> finding_ids(const properties::RunRecord& record) {
  std::vector<std::string> ids;
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < record.findings.size(); ++i) {
    const std::string& hash = record.findings[i].hash;
    const std::string id = "finding-" + (hash.empty() ? std::to_string(i) : id_part(hash));
    const int times = ++seen[id];
    // "." is in no id_part, so a numbered id cannot meet another hash.
    ids.push_back(times == 1 ? id : fmt::format("{}.{}", id, times));
  }
  return ids;
}

Element replay_block(const FindingRecord& finding, const std::string& id, bool with_case) {
  Element block("div");
  block.cls("replay");
  const std::string code = id + "-command";
  block.add(Element("span").cls("label").text("Replay"));
  block.add(Element("code").id(code).text(replay_command(finding)));
  Element button("button");
  button.set("type", "button").set("data-copy", code).flag("hidden");
  block.add(button.text("Copy"));
  if (!with_case) return block;
  const std::string text = model::canonical_text(finding.minimal) + "\n";
  if (text.size() > kMaxCase) {
    return block.add(Element("span").cls("note").text(
        fmt::format("The case is too large for this page ({} bytes); it is in {}.",
                    grouped(static_cast<std::int64_t>(text.size())),
                    finding.file.empty() ? "run.json" : finding.file)));
  }
  Element link("a");
  link.download(id_part(finding.hash.empty() ? "case" : finding.hash) + ".json", "application/json",
                text);
  return block.add(link.text("Download the case"));
}

Element signature_chips(const FindingRecord& finding) {
  Element list("ul");
  list.cls("chips");
  const auto add = [&](std::string_view name, const std::string& value) {
    Element item("li");
    item.add(Element("span").cls("label").text(name)).text(" ");
    list.add(item.add(Element("b").text(value)));
  };
  add("property", finding.property);
  add("target", finding.target_version.empty() ? finding.target
                                               : finding.target + " " + finding.target_version);
  add("kind", std::string(to_string(finding.kind)));
  add("type", std::string(model::to_string(finding.minimal.element_type)));
  return list;
}

std::optional<Element> glance(const FindingRecord& finding, const CaseView& view,
                              const std::string& prefix) {
  const StepView* step = view.failing_step();
  if (!step || !step->evidence) return std::nullopt;
  const bool rows_first = finding.kind == Kind::wrong_row || finding.kind == Kind::stale_row;
  const VisibilityGrid grid = make_visibility_grid(*step->evidence);
  if (grid.differs() && !(rows_first && !step->evidence->rows.empty())) {
    return visibility_svg(grid, view, prefix, 440);
  }
  if (!step->evidence->rows.empty()) return rows_svg(view, prefix);
  if (!step->evidence->elements.empty()) {
    const auto& worst = step->evidence->elements.front();
    if (!(worst.ratio <= 1)) return gauge_svg(worst, prefix);
  }
  return std::nullopt;
}

Element finding_section(const properties::RunRecord& record, std::size_t index,
                        const std::string& id, bool open, const SectionLimits& limits) {
  const FindingRecord& finding = record.findings[index];
  const CaseView view = make_case_view(finding);
  Element box("details");
  if (open) box.flag("open");
  Element title("h2");
  title.add(Element("span").cls("v-failed").set("aria-hidden", "true").text("✗"));
  title.text(fmt::format(" Finding {}: ", index + 1)).text(headline(finding.kind));
  box.add(Element("summary").add(title));
  box.add(Element("p").cls("summary").text(finding.summary));
  box.add(signature_chips(finding)).add(replay_block(finding, id, true));
  box.add(note(finding_facts(finding)));
  add_story(box, finding, view, id);
  add_timeline(box, view, id, limits);
  add_observed(box, view, id);
  add_errors(box, record, finding, view, id);
  box.add(heading(id + "-4", "4 Steps"));
  if (view.steps.empty()) {
    box.add(note("The record holds no steps."));
  } else {
    box.add(
        step_table(view, window_around(view.steps.size(), view.failing, limits.table_steps), id));
  }
  add_trail(box, finding, id);
  return Element("section").id(id).cls("card finding").add(box);
}

}  // namespace kvcheck::reports
