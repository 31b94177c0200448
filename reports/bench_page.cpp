// One self-contained page from a bench record.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <kainjow/mustache.hpp>

#include "reports/bench_figures.h"
#include "reports/bench_report.h"
#include "reports/page_assets.h"
#include "reports/palette.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::BenchGrowth;
using properties::BenchRecord;
using properties::BenchRow;
using properties::GoalStatus;

constexpr std::size_t kMostRows = 400;  // Of a table.

Element section_of(Name id_of, std::string_view title) {
  Element section("section");
  return section.id(id_of.text()).cls("card").add(Element("h2").text(title));
}

std::string figure_or_none(double value, std::string_view unit = "") {
  return std::isfinite(value) ? brief(value) + std::string(unit) : "–";
}

/// Word and sign, so that no colour is needed.
Element status_cell(GoalStatus status) {
  Element found = cell("");
  std::string_view verdict = "skipped", sign = "–";
  if (status == GoalStatus::reached || status == GoalStatus::aim) verdict = "passed", sign = "✓";
  if (status == GoalStatus::missed) verdict = "failed", sign = "✗";
  Element badge("span");
  badge.cls("badge v-" + std::string(verdict));
  badge.add(Element("span").set("aria-hidden", "true").text(sign));
  return found.add(badge.text(" ").text(to_string(status)));
}

std::string goal_text(double at_least, double aim) {
  return at_least > 0 ? fmt::format("{} / {}", brief(at_least), brief(aim)) : "–";
}

std::string spread_text(const BenchRow& row) {
  if (row.quartiles.size() != 3) return "–";
  return fmt::format("{}–{}{}", brief(row.quartiles[0]), brief(row.quartiles[2]),
                     row.noisy ? " noisy" : "");
}

struct Counts {
  std::int64_t goals = 0, reached = 0, aims = 0, noisy = 0, wrong = 0;
};

Counts counts_of(const BenchRecord& record) {
  Counts counts;
  for (const BenchRow& row : record.rows) {
    counts.goals += row.status != GoalStatus::none;
    counts.aims += row.status == GoalStatus::aim;
    counts.reached += row.status == GoalStatus::reached || row.status == GoalStatus::aim;
    counts.noisy += row.noisy;
    counts.wrong += row.bound_ratio > 1;
  }
  return counts;
}

Element hero(const BenchRecord& record, const Counts& counts) {
  Element section("section");
  const bool good = counts.wrong == 0 && counts.reached == counts.goals && counts.goals > 0;
  section.id("summary").cls(counts.wrong > 0 ? "hero is-failed"
                            : good           ? "hero is-passed"
                                             : "hero is-blind");
  section.add(Element("p").cls("eyebrow").text(
      fmt::format("Benchmarks · {} · {}", record.target, record.machine)));
  section.add(Element("h1").add(Element("span").text(
      counts.wrong > 0 ? fmt::format("{} timed a wrong output", counted(counts.wrong, "row"))
                       : fmt::format("{} of {} reached, {} the aim", counts.reached,
                                     counted(counts.goals, "ratio goal"), counts.aims))));
  return section.add(Element("p").cls("summary").text(
      fmt::format("{} compared with a peer, {} of them noisy. A goal is the peer's time over ours.",
                  counted(record.compared(), "row"), counts.noisy)));
}

Element ratio_section(const BenchRecord& record) {
  Element section = section_of("ratios", "Ratios");
  Element table = table_head("Peer time over ours; times are medians",
                             {"row", "ours, ms", "peer", "peer, ms", "ratio", "quartiles",
                              "at 10 %", "goal / aim", "status"},
                             " n nnnnn ");
  Element body("tbody");
  const std::size_t shown = std::min(kMostRows, record.rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const BenchRow& row = record.rows[i];
    Element line("tr");
    if (row.status == GoalStatus::missed || row.bound_ratio > 1) line.cls("bad");
    line.add(row_head(row.id)).add(number_cell(figure_or_none(row.ours_ms)));
    Element peer = cell(row.peer.empty() ? "–" : row.peer);
    if (!row.why.empty()) peer.add(Element("span").cls("statement").text(row.why));
    if (row.scratch_bytes > 0 && row.peer_scratch_bytes > 0) {
      peer.add(Element("span")
                   .cls("statement")
                   .text(fmt::format("scratch memory {} KiB, of the other {} KiB",
                                     grouped((row.scratch_bytes + 1023) / 1024),
                                     grouped((row.peer_scratch_bytes + 1023) / 1024))));
    }
    line.add(peer).add(number_cell(figure_or_none(row.peer_ms)));
    line.add(number_cell(figure_or_none(row.ratio, "x"))).add(number_cell(spread_text(row)));
    line.add(number_cell(figure_or_none(row.ratio_p10, "x")));
    line.add(number_cell(goal_text(row.at_least, row.aim))).add(status_cell(row.status));
    body.add(line);
  }
  section.add(boxed(table.add(body), "Ratios"));
  if (shown < record.rows.size()) {
    section.add(note(fmt::format("The first {} of {} rows are shown; all are in the record.", shown,
                                 record.rows.size())));
  }
  return section;
}

Element roof_section(const BenchRecord& record) {
  Element section = section_of("roof", "Share of the roof");
  const Element bars = roof_figure(record);
  if (bars.empty()) return section.add(note("No row has a share of the roof."));
  section.add(bars);
  Element table = table_head("Canaries beside each row, and memory",
                             {"row", "roof", "least / aim", "status", "FMA, GFLOP/s", "read, GB/s",
                              "error / bound", "cache, KiB", "scratch, KiB"},
                             " nn nnnnn");
  Element body("tbody");
  std::string id;
  for (const BenchRow& row : record.rows) {
    if (!std::isfinite(row.roof) || row.id == id) continue;
    id = row.id;
    Element line("tr");
    line.add(row_head(row.id)).add(number_cell(figure_or_none(row.roof)));
    line.add(number_cell(goal_text(row.roof_at_least, row.roof_aim)));
    line.add(status_cell(row.roof_status)).add(number_cell(figure_or_none(row.fma_gflops)));
    line.add(number_cell(figure_or_none(row.read_gb_per_s)));
    line.add(number_cell(figure_or_none(row.bound_ratio)));
    for (const std::int64_t bytes : {row.cache_bytes, row.scratch_bytes}) {
      line.add(number_cell(bytes > 0 ? grouped((bytes + 1023) / 1024) : "–"));
    }
    body.add(line);
  }
  return section.add(Element("details")
                         .add(Element("summary").text("The figures as a table"))
                         .add(boxed(table.add(body), "Canaries and memory")));
}

Element growth_section(const BenchRecord& record) {
  Element section = section_of("growth", "Growth and capacity");
  for (const Element& each : time_figures(record)) section.add(each);
  for (const Element& each : capacity_figures(record)) section.add(each);
  if (record.growth.empty()) return section.add(note("Too few lengths were timed for a slope."));
  Element table = table_head("Slope of time over T on logarithmic axes",
                             {"row", "slope", "expected", "lengths T", "status"}, " nn  ");
  Element body("tbody");
  for (const BenchGrowth& growth : record.growth) {
    Element line("tr");
    line.add(row_head(growth.id)).add(number_cell(fmt::format("{:.3f}", growth.slope)));
    line.add(number_cell(fmt::format("{} ± {}", brief(growth.expected), brief(growth.tolerance))));
    line.add(cell(list_text(growth.T))).add(status_cell(growth.status));
    body.add(line);
  }
  return section.add(boxed(table.add(body), "Growth"));
}

Element reading_section(const BenchRecord& record) {
  Element section = section_of("reading", "How this was measured");
  Element list("dl");
  list.cls("facts");
  const auto fact = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    list.add(Element("div").add(Element("dt").text(name)).add(Element("dd").text(value)));
  };
  fact("tool", record.tool);
  fact("target", record.target);
  fact("started", record.started);
  fact("machine", record.machine);
  fact("compiler", record.compiler);
  fact("flags", record.flags);
  fact("seconds", fmt::format("{:.0f}", record.seconds));
  if (record.load.size() == 2) {
    fact("load average", fmt::format("{} at the beginning, {} at the end", brief(record.load[0]),
                                     brief(record.load[1])));
  }
  section.add(list);
  for (const std::string& said : record.notes) section.add(note(said));
  section.add(note(
      "A peer runs in a process of its own and takes turns with ours; own rows alternate in one "
      "process as A B B A. A ratio is the median over these pairs. A row is noisy where the "
      "quartiles of its ratios lie more than 15 % of the median apart. One thread against one "
      "thread unless the row says otherwise. Each timed output was compared with the exact model, "
      "and with the peer's."));
  return section;
}

std::string icon(bool wrong) {
  return "data:image/svg+xml;base64," +
         base64(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect "
                            "x=\"1\" y=\"5\" width=\"14\" height=\"6\" fill=\"{}\"/></svg>",
                            light(wrong ? "failed" : "resident")));
}

}  // namespace

std::string bench_page(const BenchRecord& record) {
  using kainjow::mustache::data;
  const Counts counts = counts_of(record);
  data page;
  page.set("title", escape(fmt::format("Benchmarks of {}: {} of {} reached", record.target,
                                       counts.reached, counted(counts.goals, "goal"))));
  page.set("icon", icon(counts.wrong > 0));
  page.set("palette", palette_css());
  page.set("style", std::string(page_css()));
  page.set("first", "ratios");
  page.set("skip", "Skip to the ratios");
  data links{data::type::list}, sections{data::type::list};
  for (const auto& [id, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"ratios", "Ratios"},
           {"growth", "Growth and capacity"},
           {"roof", "Roof"},
           {"reading", "How this was measured"}}) {
    data link;
    link.set("id", id);
    link.set("name", name);
    links << link;
  }
  for (const Element& each : {hero(record, counts), ratio_section(record), growth_section(record),
                              roof_section(record), reading_section(record)}) {
    data section;
    section.set("html", each.html());
    sections << section;
  }
  page.set("links", links);
  page.set("sections", sections);
  page.set("foot", escape(fmt::format("{} · {} · This page is complete in itself: it loads nothing "
                                      "and works without script.",
                                      record.tool, record.started)));
  page.set("json", "{}");
  page.set("script", "");
  kainjow::mustache::mustache skeleton{std::string(page_html_mustache())};
  return skeleton.render(page);
}

}  // namespace kvcheck::reports
