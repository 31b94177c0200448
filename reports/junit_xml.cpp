// JUnit XML: one suite per target, one case per property.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/scenario_json.h"
#include "reports/case_view.h"
#include "reports/report.h"
#include "reports/run_summary.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::PropertyRecord;
using properties::RunRecord;
using properties::Verdict;

struct Suite {
  std::string cases;  // Finished XML.
  std::int64_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

std::string outcome(std::string_view element, std::string_view type, std::string_view message,
                    std::string_view body) {
  std::string out = fmt::format("      <{}", element);
  if (!type.empty()) out += fmt::format(" type=\"{}\"", escape(type));
  out += fmt::format(" message=\"{}\"", escape(message));
  if (body.empty()) return out + "/>\n";
  return out + fmt::format(">{}</{}>\n", escape(body, true), element);
}

std::string story(const properties::FindingRecord& finding) {
  std::string out;
  for (const std::string& word : finding.evidence.words) out += word + "\n";
  constexpr std::size_t kMost = 2000;
  const std::string json = model::canonical_text(finding.minimal);
  if (json.size() <= kMost) out += json + "\n";
  if (!finding.file.empty()) out += "file: " + finding.file + "\n";
  return out + "replay: " + replay_command(finding);
}

std::string failures_of(const RunRecord& record, const std::vector<std::size_t>& findings) {
  std::string out;
  for (const std::size_t index : findings) {
    const auto& finding = record.findings[index];
    out += outcome("failure", to_string(finding.kind), finding.summary, story(finding));
  }
  return out;
}

void add_case(Suite& suite, std::string_view property, std::string_view target,
              const std::string& body) {
  ++suite.tests;
  suite.cases +=
      fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escape(target), escape(property));
  suite.cases += body.empty() ? "/>\n" : ">\n" + body + "    </testcase>\n";
}

void add_property(const RunRecord& record, const PropertyRecord& property, Suite& suite) {
  std::string body;
  const auto reason = [&](std::string_view otherwise) {
    return property.reason.empty() ? std::string(otherwise) : property.reason;
  };
  switch (property.status) {
    case Verdict::passed:
      break;
    case Verdict::failed:
      body = failures_of(record, findings_of(record, property));
      if (body.empty()) body = outcome("failure", "failed", reason("no finding was recorded"), "");
      ++suite.failures;
      break;
    case Verdict::skipped:
      body = outcome("skipped", "", reason("no scenario was judged"), "");
      ++suite.skipped;
      break;
    case Verdict::blind:
      body = outcome("error", "blind", reason("the check could not have failed"), "");
      ++suite.errors;
      break;
    case Verdict::errored:
      body = outcome("error", "errored", reason("kvcheck itself failed"), "");
      body += failures_of(record, findings_of(record, property));
      ++suite.errors;
      break;
  }
  add_case(suite, property.property, property.target, body);
}

bool has_row(const RunRecord& record, const properties::FindingRecord& finding) {
  return std::any_of(record.properties.begin(), record.properties.end(), [&](const auto& p) {
    return p.property == finding.property && p.target == finding.target &&
           (p.status == Verdict::failed || p.status == Verdict::errored);
  });
}

Suite suite_of(const RunRecord& record, const std::string& target) {
  Suite suite;
  for (const PropertyRecord& property : record.properties) {
    if (property.target == target) add_property(record, property, suite);
  }
  // A finding that no failed row carries must not get lost.
  for (std::size_t i = 0; i < record.findings.size(); ++i) {
    const auto& finding = record.findings[i];
    if (finding.target != target || has_row(record, finding)) continue;
    if (!finding.known.empty()) continue;
    ++suite.failures;
    add_case(suite, finding.property, target, failures_of(record, {i}));
  }
  return suite;
}

}  // namespace

std::string junit_xml(const RunRecord& record) {
  std::vector<std::string> targets;
  const auto add_target = [&](const std::string& name) {
    if (std::find(targets.begin(), targets.end(), name) == targets.end()) targets.push_back(name);
  };
  for (const auto& property : record.properties) add_target(property.target);
  for (const auto& finding : record.findings) add_target(finding.target);

  Suite all;
  std::string body;
  for (const std::string& target : targets) {
    const Suite suite = suite_of(record, target);
    body += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
        "skipped=\"{}\"",
        escape(target), suite.tests, suite.failures, suite.errors, suite.skipped);
    if (!record.started.empty()) body += fmt::format(" timestamp=\"{}\"", escape(record.started));
    body += ">\n" + suite.cases + "  </testsuite>\n";
    all.tests += suite.tests, all.failures += suite.failures;
    all.errors += suite.errors, all.skipped += suite.skipped;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kvcheck\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n"
      "{}</testsuites>\n",
      all.tests, all.failures, all.errors, all.skipped, record.seconds, body);
}

}  // namespace kvcheck::reports
