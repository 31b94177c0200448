// One self-contained page from a run record.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "reports/finding_section.h"
#include "reports/page_assets.h"
#include "reports/palette.h"
#include "reports/report.h"
#include "reports/run_summary.h"
#include "reports/suite_sections.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::RunRecord;
using Json = nlohmann::ordered_json;

constexpr std::size_t kDetailed = 3;            // Findings shown in full.
constexpr std::size_t kMaxListed = 100;         // Findings named in the page's JSON.
constexpr std::size_t kMaxScenario = 64 << 10;  // Bytes of a case in the page's JSON.

/// What scripts may want to read from a page; '<' is escaped so that no text can end the element.
std::string page_json(const RunRecord& record) {
  Json json;
  json["schema"] = record.schema;
  json["tool"] = record.tool;
  json["verdict"] = std::string(to_string(record.verdict()));
  json["seed"] = record.seed;
  json["findings"] = Json::array();
  for (std::size_t i = 0; i < record.findings.size() && i < kMaxListed; ++i) {
    const auto& finding = record.findings[i];
    Json one = {{"property", clean_text(finding.property)},
                {"target", clean_text(finding.target)},
                {"kind", std::string(to_string(finding.kind))},
                {"summary", clean_text(finding.summary)},
                {"hash", clean_text(finding.hash)}};
    if (i < kDetailed && model::canonical_text(finding.minimal).size() <= kMaxScenario) {
      one["minimal"] = model::to_json(finding.minimal);
    }
    json["findings"].push_back(one);
  }
  json["findings_total"] = record.findings.size();
  std::string out;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

/// A disc in the verdict's colour, so that a row of open tabs tells which one is red.
std::string icon(properties::Verdict verdict) {
  using properties::Verdict;
  std::string_view colour = light("muted");
  if (verdict == Verdict::passed) colour = light("passed");
  if (verdict == Verdict::blind) colour = light("staged");
  if (verdict == Verdict::failed || verdict == Verdict::errored) colour = light("failed");
  const std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><circle cx=\"8\" cy=\"8\" "
      "r=\"7\" fill=\"{}\"/></svg>",
      colour);
  return "data:image/svg+xml;base64," + base64(svg);
}

std::string foot(const RunRecord& record) {
  std::string out = record.tool.empty() ? "kvcheck" : record.tool;
  if (!record.started.empty()) out += " · " + record.started;
  out += fmt::format(" · seed {}", record.seed);
  if (!record.findings.empty()) {
    out += fmt::format(" · {} · {}", record.findings.front().property,
                       replay_command(record.findings.front()));
  }
  return out + " · This page is complete in itself: it loads nothing and works without script.";
}

kainjow::mustache::data links_of(bool findings, const std::string& first) {
  using kainjow::mustache::data;
  data links{data::type::list};
  const auto add = [&](const std::string& id, const char* name) {
    data link;
    link.set("id", id);
    link.set("name", name);
    links << link;
  };
  add("properties", "Properties");
  if (findings) add(first, "Findings");
  add("errors", "Errors");
  add("coverage", "Coverage");
  add("provenance", "Provenance");
  add("reading", "How to read this");
  return links;
}

/// Elements of finished markup, and as many pieces of text beside them.
std::size_t nodes_of(const std::vector<std::string>& sections) {
  std::size_t nodes = 0;
  for (const std::string& html : sections) {
    for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
      if (html[at + 1] != '/') nodes += 2;
    }
  }
  return nodes;
}

std::vector<std::string> sections_of(const RunRecord& record, const RunSummary& run,
                                     const std::vector<std::string>& ids) {
  std::vector<std::string> findings, others;
  for (std::size_t i = 0; i < record.findings.size() && i < kDetailed; ++i) {
    SectionLimits limits;
    if (i > 0) limits = {32, 24, 1};
    findings.push_back(finding_section(record, i, ids[i], i == 0, limits).html());
  }
  if (const Element further = further_findings(record, ids, kDetailed); !further.empty()) {
    findings.push_back(further.html());
  }
  others.push_back(provenance_section(record).html());
  others.push_back(reading_section().html());
  const std::string first = hero(record, run, ids).html(), errors = error_section(record).html();

  // The long tables share what is left: two of checks and one of situations.
  constexpr std::size_t kMaxNodes = 19000, kNodesOfRow = 28, kTables = 3;
  const std::size_t used = nodes_of(findings) + nodes_of(others) + nodes_of({first, errors});
  const std::size_t rows = (kMaxNodes - std::min(kMaxNodes, used)) / kNodesOfRow / kTables;
  const std::size_t max_rows = std::clamp<std::size_t>(rows, 20, 200);

  std::vector<std::string> sections = {first};
  sections.push_back(property_section(record, ids, kDetailed, max_rows).html());
  sections.insert(sections.end(), findings.begin(), findings.end());
  sections.push_back(errors);
  sections.push_back(coverage_section(record, max_rows).html());
  sections.insert(sections.end(), others.begin(), others.end());
  return sections;
}

}  // namespace

std::string html_page(const RunRecord& record) {
  using kainjow::mustache::data;
  const RunSummary run = summarise(record);
  const std::vector<std::string> ids = finding_ids(record);
  const std::string first = ids.empty() ? "properties" : ids.front();
  data page;
  std::string title = fmt::format("{}: ", to_string(run.verdict));
  title += record.findings.empty() ? run.sentence : record.findings.front().summary;
  page.set("title", escape(title));
  page.set("icon", icon(run.verdict));
  page.set("palette", palette_css());
  page.set("style", std::string(page_css()));
  page.set("first", escape(first));
  page.set("skip", ids.empty() ? "Skip to the properties" : "Skip to the first divergence");
  page.set("links", links_of(!ids.empty(), escape(first)));
  data sections{data::type::list};
  for (const std::string& html : sections_of(record, run, ids)) {
    data section;
    section.set("html", html);
    sections << section;
  }
  page.set("sections", sections);
  page.set("foot", escape(foot(record)));
  page.set("json", page_json(record));
  page.set("script", std::string(page_js()));
  kainjow::mustache::mustache skeleton{std::string(page_html_mustache())};
  return skeleton.render(page);
}

}  // namespace kvcheck::reports
