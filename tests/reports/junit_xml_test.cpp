// JUnit XML: counts, outcomes, and text that stays text.
#include <string>

#include <gtest/gtest.h>

#include "reports/report.h"
#include "tests/reports/html_reader.h"
#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

using test::Node;

constexpr std::string_view kHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The page reader is as strict as XML asks, given its own first line.
std::unique_ptr<Node> read_xml(const std::string& xml) {
  EXPECT_TRUE(xml.starts_with(kHead));
  return test::read_html("<!doctype html>" + xml.substr(kHead.size()));
}

int count(const Node& root, std::string_view tag) {
  int found = 0;
  for_each(root, [&](const Node& node) { found += node.tag == tag ? 1 : 0; });
  return found;
}

const Node& case_of(const Node& root, std::string_view property) {
  const Node* found = nullptr;
  for_each(root, [&](const Node& node) {
    const auto* name = node.attribute("name");
    if (node.tag == "testcase" && name && *name == property) found = &node;
  });
  if (!found) throw std::runtime_error("no such case");
  return *found;
}

TEST(JunitXml, HasOneCasePerPropertyAndTarget) {
  const auto record = samples::record("passed");
  const auto root = read_xml(junit_xml(record));
  EXPECT_EQ(count(*root, "testcase"), 4);
  EXPECT_EQ(count(*root, "testsuite"), 2);
  EXPECT_EQ(count(*root, "failure") + count(*root, "error"), 0);
  EXPECT_EQ(count(*root, "skipped"), 1);
  const Node& skipped = case_of(*root, "cache.rollback_exact");
  EXPECT_EQ(*skipped.children[0]->attribute("message"), "the target keeps no cache of its own");
}

TEST(JunitXml, TellsAFailureWithItsReplay) {
  const auto root = read_xml(junit_xml(samples::record("leak")));
  const Node& failed = case_of(*root, "attention.visible_set");
  ASSERT_EQ(failed.children.size(), 1u);
  EXPECT_EQ(failed.children[0]->tag, "failure");
  EXPECT_EQ(*failed.children[0]->attribute("type"), "leak");
  EXPECT_EQ(*failed.children[0]->attribute("message"), samples::record("leak").findings[0].summary);
  EXPECT_TRUE(failed.children[0]->text.ends_with("replay: ./kvcheck replay 3f9a0c55d2e81b47"));
}

TEST(JunitXml, CountsBlindAndErroredAsErrors) {
  const auto blind = read_xml(junit_xml(samples::record("blind")));
  EXPECT_EQ(*case_of(*blind, "attention.values").children[0]->attribute("type"), "blind");
  const auto errored = read_xml(junit_xml(samples::record("errored")));
  EXPECT_EQ(case_of(*errored, "cache.resident_range").children[0]->tag, "error");
  const Node& suites = *errored->children[0];
  EXPECT_EQ(*suites.attribute("errors"), "1");
  EXPECT_EQ(*suites.attribute("failures"), "1");
}

TEST(JunitXml, LosesNoFindingWithoutARow) {
  auto record = samples::record("leak");
  record.properties.clear();
  const auto root = read_xml(junit_xml(record));
  EXPECT_EQ(*root->children[0]->attribute("failures"), "1");
  EXPECT_EQ(count(*root, "failure"), 1);
}

TEST(JunitXml, KeepsHostileTextAsText) {
  const std::string xml = junit_xml(samples::record("hostile"));
  const auto root = read_xml(xml);
  EXPECT_EQ(count(*root, "script"), 0);
  EXPECT_EQ(count(*root, "img"), 0);
  EXPECT_EQ(xml.find("]]>"), std::string::npos);
  for (const char c : xml) {
    EXPECT_TRUE(c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20)
        << static_cast<int>(c);
  }
}

}  // namespace
}  // namespace kvcheck::reports
