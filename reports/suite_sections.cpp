// Hero and table of properties.
#include "reports/suite_sections.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/scenario_json.h"
#include "reports/figures.h"
#include "reports/finding_section.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::PropertyRecord;
using properties::RunRecord;
using properties::Verdict;

std::string_view glyph_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "✓";
    case Verdict::failed:
      return "✗";
    case Verdict::errored:
      return "!";
    case Verdict::blind:
      return "◌";
    case Verdict::skipped:
      return "–";
  }
  return "";
}

std::string upper(std::string_view word) {
  std::string out(word);
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::string eyebrow_of(const RunRecord& record) {
  std::string out = record.tool.empty() ? "kvcheck" : record.tool;
  if (!record.started.empty()) out += " · " + record.started;
  out += " · " + counted(record.scenarios, "scenario") + ", " + counted(record.verdicts, "verdict");
  out += fmt::format(" in {:.1f} s · seed {}", record.seconds, record.seed);
  return out;
}

Element counts_of(const RunSummary& run) {
  Element list("ul");
  list.cls("counts");
  for (const Verdict verdict :
       {Verdict::failed, Verdict::errored, Verdict::blind, Verdict::passed, Verdict::skipped}) {
    const std::int64_t count = run.count(verdict);
    Element item("li");
    item.cls(fmt::format("v-{}{}", to_string(verdict), count == 0 ? " none" : ""));
    item.add(Element("span").set("aria-hidden", "true").text(glyph_of(verdict)));
    item.text(" ").add(Element("b").text(grouped(count))).text(" ").text(to_string(verdict));
    list.add(item);
  }
  return list;
}

/// What a run without findings has to show: how close it came, and what it never met.
Element margins(const RunRecord& record) {
  Element words("p");
  words.cls("summary");
  const PropertyRecord* closest = nullptr;
  for (const PropertyRecord& property : record.properties) {
    if (property.max_bound_ratio > (closest ? closest->max_bound_ratio : 0)) closest = &property;
  }
  if (closest) {
    words.text(fmt::format("Largest error: {} of what rounding can explain ({} on {}). ",
                           ratio_text(closest->max_bound_ratio), closest->property,
                           closest->target));
  }
  const auto unreached = std::count_if(record.coverage.begin(), record.coverage.end(),
                                       [](const auto& row) { return row.hits <= 0; });
  if (unreached > 0) {
    words.add(Element("a")
                  .link_to("coverage")
                  .text(counted(unreached, "situation was", "situations were") + " never reached"));
    words.text(".");
  }
  return words;
}

Element first_finding(const RunRecord& record, const std::vector<std::string>& ids) {
  const properties::FindingRecord& finding = record.findings.front();
  const CaseView view = make_case_view(finding);
  const std::optional<Element> picture = glance(finding, view, "glance");
  Element grid("div");
  grid.cls(picture ? "hero-grid" : "hero-grid alone");
  Element words("div");
  words.add(Element("p").cls("headline").text(headline(finding.kind)));
  words.add(Element("p").cls("summary").text(finding.summary));
  words.add(signature_chips(finding)).add(replay_block(finding, "hero", false));
  Element more("p");
  more.cls("more").add(Element("a").link_to(ids.front()).text("Read how it fails"));
  constexpr std::size_t kNamed = 4;
  if (ids.size() > 1) {
    more.text(
        fmt::format(" · {}: ", counted(static_cast<std::int64_t>(ids.size()) - 1, "more finding")));
  }
  for (std::size_t i = 1; i < ids.size() && i <= kNamed; ++i) {
    const auto& other = record.findings[i];
    if (i > 1) more.text(", ");
    more.add(Element("a").link_to(ids[i]).text(
        fmt::format("{} ({})", to_string(other.kind), other.property)));
  }
  if (ids.size() > kNamed + 1) more.text(", ...");
  grid.add(words.add(more));
  if (picture) {
    grid.add(Element("div").cls("glance").add(Element("div").cls("scroll").add(*picture)));
  }
  return grid;
}

bool is_green(const PropertyRecord& property) {
  return property.status == Verdict::passed || property.status == Verdict::skipped;
}

Element property_row(const RunRecord& record, const PropertyRecord& property,
                     const std::vector<std::string>& ids) {
  Element row("tr");
  if (!is_green(property)) row.cls("bad");
  row.add(Element("td").add(verdict_badge(to_string(property.status))));
  Element name("th");
  name.set("scope", "row").add(Element("code").text(property.property));
  if (!property.statement.empty()) {
    name.add(Element("span").cls("statement").text(property.statement));
  }
  row.add(name).add(cell(property.target));
  for (const std::int64_t count :
       {property.scenarios, property.failed, property.skipped, property.blind, property.errored}) {
    row.add(number_cell(grouped(count)));
  }
  row.add(number_cell(property.max_bound_ratio > 0 || property.max_bound_ratio < 0
                          ? ratio_text(property.max_bound_ratio)
                          : ""));
  Element last("td");
  const auto findings = findings_of(record, property);
  constexpr std::size_t kLinks = 6;
  for (std::size_t i = 0; i < findings.size() && i < kLinks; ++i) {
    if (i > 0) last.text(", ");
    last.add(Element("a")
                 .link_to(ids[findings[i]])
                 .text(fmt::format("{} {}", findings[i] + 1,
                                   to_string(record.findings[findings[i]].kind))));
  }
  if (findings.size() > kLinks) last.text(fmt::format(", {} in all", findings.size()));
  // A finding tells its own story; the reason would only repeat it.
  const bool told = !findings.empty() && property.status == Verdict::failed;
  if (!property.reason.empty() && !told)
    last.text(findings.empty() ? "" : " ").text(property.reason);
  return row.add(last);
}

Element property_table(const RunRecord& record, const std::vector<const PropertyRecord*>& rows,
                       const std::vector<std::string>& ids, std::string_view caption,
                       std::size_t max_rows) {
  const Shown shown = {0, std::min(max_rows, rows.size()), rows.size()};
  Element table = table_head(caption,
                             {"verdict", "property", "target", "judged", "failed", "skipped",
                              "blind", "errored", "max ratio", "finding or reason"},
                             "   nnnnnn ");
  table.cls("properties");
  Element body("tbody");
  for (std::size_t i = 0; i < shown.end; ++i) body.add(property_row(record, *rows[i], ids));
  Element box("div");
  box.add(boxed(table.add(body), caption));
  if (!shown.all()) box.add(note(shown.note("checks")));
  return box;
}

}  // namespace

Element hero(const RunRecord& record, const RunSummary& run,
             const std::vector<std::string>& finding_ids) {
  Element head("header");
  const std::string verdict(to_string(run.verdict));
  head.cls("hero is-" + verdict);
  head.add(Element("p").cls("eyebrow").text(eyebrow_of(record)));
  Element title("h1");
  title.add(
      Element("span").cls("stamp").text(std::string(glyph_of(run.verdict)) + " " + upper(verdict)));
  head.add(title.text(" ").add(Element("span").text(run.sentence)));
  if (!record.findings.empty()) {
    head.add(first_finding(record, finding_ids));
  } else if (const Element words = margins(record); !words.empty()) {
    head.add(words);
  }
  head.add(counts_of(run));
  for (const std::string& remark : run.remarks) head.add(note(remark));
  return head;
}

Element property_section(const RunRecord& record, const std::vector<std::string>& finding_ids,
                         std::size_t detailed, std::size_t max_rows) {
  Element section("section");
  section.id("properties").cls("card").add(Element("h2").text("Properties"));
  std::vector<const PropertyRecord*> broken, green;
  for (const PropertyRecord& property : record.properties) {
    (is_green(property) ? green : broken).push_back(&property);
  }
  std::stable_sort(broken.begin(), broken.end(),
                   [](const auto* a, const auto* b) { return a->status > b->status; });
  std::stable_sort(green.begin(), green.end(),
                   [](const auto* a, const auto* b) { return a->status < b->status; });
  std::vector<std::string> ids = finding_ids;
  for (std::size_t i = detailed; i < ids.size(); ++i) ids[i] = "further";
  if (record.properties.empty()) return section.add(note("The record holds no properties."));
  if (!broken.empty()) {
    section.add(property_table(record, broken, ids, "Checks that need attention", max_rows));
  }
  if (!green.empty()) {
    Element rest =
        details(counted(static_cast<std::int64_t>(green.size()), "check") + " passed or skipped",
                broken.empty());
    section.add(rest.add(
        property_table(record, green, ids, "Checks that passed or were skipped", max_rows)));
  }
  return section;
}

Element further_findings(const RunRecord& record, const std::vector<std::string>& finding_ids,
                         std::size_t detailed) {
  Element section("section");
  if (record.findings.size() <= detailed) return section;
  constexpr std::size_t kMost = 100;
  const std::size_t end = std::min(record.findings.size(), detailed + kMost);
  section.id("further").cls("card").add(Element("h2").text("Further findings"));
  section.add(
      note(fmt::format("The first {} of {} findings are shown in full; {} of the others are listed "
                       "here, and all are "
                       "in run.json.",
                       detailed, record.findings.size(), end - detailed)));
  Element table = table_head("Further findings",
                             {"#", "kind", "property", "target", "what", "replay"}, "n     ");
  Element body("tbody");
  for (std::size_t i = detailed; i < end; ++i) {
    const auto& finding = record.findings[i];
    Element row("tr");
    row.id(finding_ids[i]).add(row_head(std::to_string(i + 1)).cls("n"));
    row.add(cell(to_string(finding.kind))).add(cell(finding.property)).add(cell(finding.target));
    row.add(cell(finding.summary));
    body.add(row.add(Element("td").add(Element("code").text(replay_command(finding)))));
  }
  return section.add(boxed(table.add(body), "Further findings"));
}

}  // namespace kvcheck::reports
