// Errors, coverage, provenance and how to read the page.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reports/case_view.h"
#include "reports/figures.h"
#include "reports/suite_sections.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::RunRecord;

Element section_of(Name id_of, std::string_view title) {
  Element section("section");
  return section.id(id_of.text()).cls("card").add(Element("h2").text(title));
}

Element coverage_row(const properties::CoverageRecord& record, std::size_t index) {
  const std::int64_t hits = std::max<std::int64_t>(0, record.hits);
  const std::int64_t cases = std::max<std::int64_t>(0, record.cases);
  const double share =
      cases == 0 ? 0 : std::min(1.0, static_cast<double>(hits) / static_cast<double>(cases));
  // A situation that was reached must not read as 0 %, nor a rare miss as 100 %.
  std::string percent = fmt::format("{:.0f} %", 100 * share);
  if (hits > 0 && share < .005) percent = "< 1 %";
  if (hits < cases && share > .995) percent = "> 99 %";
  Element svg = svg_frame(fmt::format("coverage-{}", index), 122, 12, "Share of cases",
                          fmt::format("{} of the cases reach it", percent));
  svg.add(stroked(Path().rect(.5, .5, 120, 11), "hairline", 1));
  if (hits > 0) {
    svg.add(filled(Path().rect(1, 1, std::max(2.0, 119 * share), 10), "resident"));
  }
  Element row("tr");
  if (hits == 0 || record.status == "unmet") row.cls("warn");
  row.add(row_head(record.name)).add(cell(record.target));
  row.add(number_cell(grouped(record.hits))).add(number_cell(grouped(record.cases)));
  row.add(number_cell(percent));
  Element bar("td");
  if (hits == 0) {
    bar.add(Element("strong").cls("v-blind").text("◌ never reached"));
  } else {
    bar.add(svg);
  }
  if (record.status == "unmet") {
    bar.add(Element("strong").cls("v-blind").text(
        fmt::format(" unmet: {:.2g} % required", 100 * record.required)));
  }
  return row.add(bar);
}

void add_fact(Element& list, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  list.add(Element("div").add(Element("dt").text(name)).add(Element("dd").text(value)));
}

Element target_table(const RunRecord& record) {
  constexpr std::size_t kMost = 50;
  Element table =
      table_head("Targets", {"target", "version", "here", "arithmetic, or why not"}, "    ");
  Element body("tbody");
  for (std::size_t i = 0; i < record.targets.size() && i < kMost; ++i) {
    const auto& target = record.targets[i];
    Element row("tr");
    row.add(row_head(target.name)).add(cell(target.version));
    row.add(cell(target.available ? "✓ ran" : "– not available"));
    body.add(row.add(cell(target.available ? target.arithmetic : target.reason)));
  }
  return boxed(table.add(body), "Targets");
}

Element phase_table(const RunRecord& record) {
  constexpr std::size_t kMost = 60;
  Element table = table_head(
      "Phases", {"phase", "target", "cases", "rejected", "drawing", "judging", "ended by"},
      "  nnnn ");
  Element body("tbody");
  for (std::size_t i = 0; i < record.phases.size() && i < kMost; ++i) {
    const auto& phase = record.phases[i];
    Element row("tr");
    row.add(row_head(phase.phase)).add(cell(phase.target));
    row.add(number_cell(grouped(phase.cases))).add(number_cell(grouped(phase.rejected)));
    row.add(number_cell(fmt::format("{:.1f} s", phase.draw_seconds)));
    row.add(number_cell(fmt::format("{:.1f} s", phase.judge_seconds)));
    body.add(row.add(cell(phase.stop)));
  }
  return boxed(table.add(body), "Phases");
}

}  // namespace

Element error_section(const RunRecord& record) {
  constexpr std::size_t kMost = 6;
  Element section = section_of("errors", "Error against bound, the whole run");
  const Shown shown = {0, std::min(kMost, record.errors.size()), record.errors.size()};
  if (record.errors.empty()) return section.add(note("No output values were compared."));
  Element grid("div");
  grid.cls("multiples");
  for (std::size_t i = 0; i < shown.end; ++i) {
    grid.add(histogram_figure(record.errors[i], fmt::format("errors-{}", i)));
  }
  section.add(grid);
  if (!shown.all()) section.add(note(shown.note("distributions")));
  return section;
}

Element coverage_section(const RunRecord& record, std::size_t max_rows) {
  Element section = section_of("coverage", "Coverage");
  if (record.coverage.empty()) return section.add(note("No coverage was recorded."));
  std::vector<const properties::CoverageRecord*> rows;
  for (const auto& row : record.coverage) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return (a->hits == 0) > (b->hits == 0); });
  const Shown shown = {0, std::min(max_rows, rows.size()), rows.size()};
  const auto unreached =
      std::count_if(rows.begin(), rows.end(), [](const auto* row) { return row->hits == 0; });
  section.add(Element("p").text(
      unreached == 0
          ? fmt::format("Every one of {} was reached.",
                        counted(static_cast<std::int64_t>(rows.size()), "situation"))
          : fmt::format(
                "{} of {} never reached; the run says nothing about {}.", grouped(unreached),
                counted(static_cast<std::int64_t>(rows.size()), "situation was", "situations were"),
                unreached == 1 ? "it" : "them")));
  Element table =
      table_head("How often each class of situation was reached, unreached first",
                 {"situation", "target", "hits", "cases", "share", "of the cases"}, "  nnn ");
  Element body("tbody");
  for (std::size_t i = 0; i < shown.end; ++i) body.add(coverage_row(*rows[i], i));
  section.add(boxed(table.add(body), "Coverage"));
  if (!shown.all()) section.add(note(shown.note("situations")));
  return section;
}

Element provenance_section(const RunRecord& record) {
  Element section = section_of("provenance", "Provenance");
  Element list("dl");
  list.cls("facts");
  add_fact(list, "tool", record.tool);
  add_fact(list, "started", record.started);
  add_fact(list, "duration", fmt::format("{:.1f} s", record.seconds));
  add_fact(list, "ended by", record.stop);
  add_fact(list, "seed", fmt::format("{}", record.seed));
  add_fact(list, "workers", grouped(record.workers));
  add_fact(list, "arguments", record.arguments);
  add_fact(list, "machine", record.machine);
  add_fact(list, "compiler", record.compiler);
  add_fact(list, "flags", record.flags);
  add_fact(list, "record schema", fmt::format("{}", record.schema));
  section.add(list);
  if (!record.targets.empty()) section.add(target_table(record));
  if (!record.phases.empty()) section.add(phase_table(record));
  constexpr std::size_t kMost = 60;
  for (std::size_t i = 0; i < record.notes.size() && i < kMost; ++i) {
    section.add(note(record.notes[i]));
  }
  if (record.notes.size() > kMost) {
    section.add(note(Shown{0, kMost, record.notes.size()}.note("notes")));
  }
  return section;
}

Element reading_section() {
  Element section = section_of("reading", "How to read this");
  Element list("dl");
  const auto add = [&](std::string_view word, std::string_view meaning) {
    list.add(Element("dt").text(word)).add(Element("dd").text(meaning));
  };
  add("verdict",
      "passed: every judged scenario held. failed: a counterexample is shown. blind: the check "
      "could "
      "not have failed on this data, so it proves nothing. skipped: not applicable, with the "
      "reason. "
      "errored: kvcheck itself failed. Blind and errored are not green.");
  add("error / bound",
      "The distance of an output from the exact result, over the largest distance that rounding "
      "can "
      "explain for that very element. Up to 1 holds, above 1 fails.");
  add("position, row, generation",
      "A position is the absolute index of a token, from 0. A row is a place in the cache buffer. "
      "After a rollback a position is written again; its generation, shown as a prime, tells the "
      "two "
      "tokens apart.");
  add("window", "The number of keys that a query may see, itself included.");
  add("capacity", "Rows of the cache buffer. When they run out, the oldest positions are evicted.");
  add("staged",
      "The step would evict rows that its own first query still reads, so it must run on a "
      "temporary "
      "buffer.");
  add("step", "Steps are counted from 0, as in the scenario: step 2 is steps[2].");
  add("minimal case",
      "The smallest case found that fails in the same way: same property, target and kind. The "
      "hash "
      "names it; replay runs it again.");
  return section.add(list);
}

}  // namespace kvcheck::reports
