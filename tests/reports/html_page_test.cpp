// The contract of the page, checked on every sample record.
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "reports/page_assets.h"
#include "reports/report.h"
#include "tests/reports/html_reader.h"
#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

using test::Node;

constexpr std::size_t kHardBytes = 5 << 20, kTypicalBytes = 1 << 20, kMaxNodes = 20000;

class EveryPage : public testing::TestWithParam<std::string> {
 protected:
  EveryPage()
      : page_(html_page(GetParam() == "overfull" ? samples::overfull()
                                                 : samples::record(GetParam()))),
        root_(test::read_html(page_)) {}

  std::string page_;
  std::unique_ptr<Node> root_;
};

TEST_P(EveryPage, HasUniqueIdsThatEveryLinkFinds) {
  std::set<std::string> ids;
  for_each(*root_, [&](const Node& node) {
    if (const auto* id = node.attribute("id")) {
      EXPECT_TRUE(ids.insert(*id).second) << *id;
    }
  });
  for_each(*root_, [&](const Node& node) {
    const auto* href = node.attribute("href");
    if (href && href->starts_with("#")) {
      EXPECT_EQ(ids.count(href->substr(1)), 1u) << *href;
    }
    for (const char* name :
         {"aria-labelledby", "for", "data-copy", "data-filter", "data-failed-only"}) {
      const auto* value = node.attribute(name);
      std::istringstream names(value ? *value : "");
      for (std::string id; names >> id;) EXPECT_EQ(ids.count(id), 1u) << name << " " << id;
    }
  });
  std::smatch match;
  for (std::string rest = page_; std::regex_search(rest, match, std::regex("url\\(#([^)]*)\\)"));
       rest = match.suffix()) {
    EXPECT_EQ(ids.count(match[1]), 1u) << match[1];
  }
}

TEST_P(EveryPage, RefersToNothingOutside) {
  for_each(*root_, [&](const Node& node) {
    for (const auto& [name, value] : node.attributes) {
      EXPECT_FALSE(name.starts_with("on")) << name;
      EXPECT_NE(name, "style") << value;
      EXPECT_NE(name, "src") << value;
      EXPECT_NE(name, "srcset") << value;
      EXPECT_NE(name, "action") << value;
      if (name == "href") {
        EXPECT_TRUE(value.starts_with("#") || value.starts_with("data:")) << value;
      }
      if (value.find("url(") != std::string::npos) {
        EXPECT_TRUE(value.starts_with("url(#")) << value;
      }
    }
    if (node.tag != "style" && node.tag != "script") return;
    EXPECT_EQ(node.text.find("@import"), std::string::npos);
    EXPECT_EQ(node.text.find("url("), std::string::npos);
    EXPECT_EQ(node.text.find("fetch("), std::string::npos);
    EXPECT_EQ(node.text.find("http:"), std::string::npos);
    EXPECT_EQ(node.text.find("https:"), std::string::npos);
  });
}

TEST_P(EveryPage, ForbidsOutsideContentByPolicy) {
  std::string policy;
  for_each(*root_, [&](const Node& node) {
    const auto* equiv = node.attribute("http-equiv");
    if (equiv && *equiv == "Content-Security-Policy") policy = *node.attribute("content");
  });
  EXPECT_TRUE(
      policy.starts_with("default-src 'none'; style-src 'unsafe-inline'; "
                         "script-src 'unsafe-inline'; img-src data:"))
      << policy;
}

TEST_P(EveryPage, DescribesEveryPictureAndEveryTable) {
  for_each(*root_, [&](const Node& node) {
    if (node.tag == "svg") {
      EXPECT_EQ(*node.attribute("role"), "img");
      EXPECT_TRUE(node.has_child("title"));
      EXPECT_TRUE(node.has_child("desc"));
      EXPECT_FALSE(node.children[0]->text.empty());
      EXPECT_FALSE(node.children[1]->text.empty());
    }
    if (node.tag == "th") {
      const auto* scope = node.attribute("scope");
      ASSERT_NE(scope, nullptr) << node.all_text();
      EXPECT_TRUE(*scope == "row" || *scope == "col");
    }
    if (node.tag == "table") {
      EXPECT_TRUE(node.has_child("caption"));
    }
    if (node.tag == "details") {
      EXPECT_TRUE(node.has_child("summary"));
    }
    if (node.tag == "input") {
      EXPECT_NE(node.attribute("id"), nullptr);
    }
    if (node.tag == "button") {
      EXPECT_EQ(*node.attribute("type"), "button");
    }
  });
}

TEST_P(EveryPage, HasOneTitleAndHeadingsInOrder) {
  int titles = 0, last = 0;
  for_each(*root_, [&](const Node& node) {
    if (node.tag.size() != 2 || node.tag[0] != 'h' || node.tag[1] < '1' || node.tag[1] > '6')
      return;
    const int level = node.tag[1] - '0';
    titles += level == 1 ? 1 : 0;
    EXPECT_LE(level, last + 1) << node.all_text();
    last = level;
  });
  EXPECT_EQ(titles, 1);
}

TEST_P(EveryPage, StaysWithinItsBudgets) {
  EXPECT_LT(page_.size(), kHardBytes);
  EXPECT_LT(test::count_nodes(*root_), kMaxNodes);
  if (GetParam() != "overfull") {
    EXPECT_LT(page_.size(), kTypicalBytes);
  }
}

TEST_P(EveryPage, IsTheSameForTheSameRecord) {
  if (GetParam() == "overfull") {
    EXPECT_EQ(html_page(samples::overfull()), page_);
  } else {
    EXPECT_EQ(html_page(samples::record(GetParam())), page_);
  }
}

TEST_P(EveryPage, CarriesReadableJson) {
  const Node* json = nullptr;
  for_each(*root_, [&](const Node& node) {
    const auto* type = node.attribute("type");
    if (node.tag == "script" && type && *type == "application/json") json = &node;
  });
  ASSERT_NE(json, nullptr);
  EXPECT_EQ(json->text.find('<'), std::string::npos);
  const auto read = nlohmann::ordered_json::parse(json->text);
  EXPECT_EQ(read["schema"], 1);
  EXPECT_EQ(read["seed"].get<std::uint64_t>(), 17446744073709551615u);
}

std::vector<std::string> all_names() {
  std::vector<std::string> all;
  for (const auto name : samples::names()) all.emplace_back(name);
  all.emplace_back("overfull");
  return all;
}

INSTANTIATE_TEST_SUITE_P(Samples, EveryPage, testing::ValuesIn(all_names()),
                         [](const auto& param) { return param.param; });

const Node* find_id(const Node& root, std::string_view id) {
  const Node* found = nullptr;
  for_each(root, [&](const Node& node) {
    if (const auto* value = node.attribute("id"); value && *value == id) found = &node;
  });
  return found;
}

std::string decoded(const std::string& link) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : link.substr(link.find(",") + 1)) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    if ((have += 6) >= 8) out += static_cast<char>(bits >> (have -= 8) & 255);
  }
  return out;
}

TEST(HtmlPage, GivesTheMinimalCaseAsAFile) {
  for (const char* name : {"leak", "missing_key", "rows_after_rollback", "large"}) {
    const auto record = samples::record(name);
    const auto root = test::read_html(html_page(record));
    std::string link;
    for_each(*root, [&](const Node& node) {
      if (node.attribute("download")) link = *node.attribute("href");
    });
    ASSERT_TRUE(link.starts_with("data:application/json;base64,"));
    EXPECT_EQ(model::parse_scenario(decoded(link)), record.findings[0].minimal) << name;
  }
}

TEST(HtmlPage, SaysFirstWhatBrokeWhereAndHowToReplay) {
  const auto record = samples::record("leak");
  const auto root = test::read_html(html_page(record));
  std::string hero;
  for_each(*root, [&](const Node& node) {
    if (node.tag == "header") hero = node.all_text();
  });
  EXPECT_NE(hero.find("FAILED"), std::string::npos);
  EXPECT_NE(hero.find("1 of 4 checks broke the contract, on onnxruntime-cpu."), std::string::npos);
  EXPECT_NE(hero.find("A query sees a key that it may not see"), std::string::npos);
  EXPECT_NE(hero.find(record.findings[0].summary), std::string::npos);
  EXPECT_NE(hero.find("./kvcheck replay 3f9a0c55d2e81b47"), std::string::npos);
}

TEST(HtmlPage, AddressesEachFindingByItsHash) {
  auto record = samples::record("leak");
  record.findings.push_back(record.findings[0]);
  const auto root = test::read_html(html_page(record));
  const Node* first = find_id(*root, "finding-3f9a0c55d2e81b47");
  const Node* second = find_id(*root, "finding-3f9a0c55d2e81b47.2");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first->children[0]->attribute("open"), nullptr);
  EXPECT_EQ(second->children[0]->attribute("open"), nullptr) << "only the first is open";
}

TEST(HtmlPage, NamesLeakedKeysInWordsAndInTheTable) {
  const auto root = test::read_html(html_page(samples::record("leak")));
  const std::string text = find_id(*root, "finding-3f9a0c55d2e81b47")->all_text();
  EXPECT_NE(text.find("The query at position 1 sees key 2 (weight 0.333), which it may not see."),
            std::string::npos);
  EXPECT_NE(text.find("Cells: 1 leaked, 0 missing, 2 agree."), std::string::npos);
}

TEST(HtmlPage, ShowsCoverageOfZero) {
  const auto root = test::read_html(html_page(samples::record("passed")));
  const std::string text = find_id(*root, "coverage")->all_text();
  EXPECT_NE(text.find("1 of 4 situations were never reached"), std::string::npos);
  EXPECT_NE(text.find("0 %"), std::string::npos);
  EXPECT_NE(text.find("< 1 %"), std::string::npos) << "3 of 1733 is not 0 %";
  EXPECT_NE(text.find("> 99 %"), std::string::npos) << "1730 of 1733 is not 100 %";
}

TEST(HtmlPage, SaysWhatItLeavesOut) {
  const auto large = test::read_html(html_page(samples::record("large")))->all_text();
  EXPECT_NE(large.find("of 4,096, around the first divergence; all are in run.json."),
            std::string::npos);
  const auto overfull = test::read_html(html_page(samples::overfull()))->all_text();
  EXPECT_NE(overfull.find("of 60 findings are shown in full"), std::string::npos);
  EXPECT_NE(overfull.find("60 of 500 shown; all are in run.json"), std::string::npos);
  EXPECT_NE(overfull.find("of 400 situations are shown; all are in run.json."), std::string::npos);
  EXPECT_NE(overfull.find("checks are shown; all are in run.json."), std::string::npos);
}

TEST(HtmlPage, ExplainsACaseThatTheContractRefuses) {
  const auto root = test::read_html(html_page(samples::record("errored")));
  const std::string text = find_id(*root, "finding-77aa120be45f9d03")->all_text();
  EXPECT_NE(text.find("The contract refuses this case: cache.capacity = 3"), std::string::npos);
}

TEST(HtmlPage, ShowsHostileTextAsText) {
  const std::string page = html_page(samples::record("hostile"));
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find("\u202e"), std::string::npos);
  const auto root = test::read_html(page);
  const std::string text = root->all_text();
  for (const char* field :
       {"compiler",       "flags",     "started",   "machine", "arguments",
        "notes",          "target",    "version",   "reason",  "arithmetic",
        "property",       "statement", "situation", "type",    "worst_hash",
        "target_version", "summary",   "hash",      "file",    "nearest_passing",
        "pass",           "change",    "explain",   "words",   "evidence_notes",
        "answer"}) {
    const std::string shown = std::string(field) + "</script></style></title>";
    // The file is named only where the case is not on the page itself.
    if (std::string(field) == "file") continue;
    EXPECT_NE(text.find(shown), std::string::npos) << field;
  }
  EXPECT_NE(text.find("\\x1b[31m\\x07\\u202erev"), std::string::npos);
}

TEST(HtmlPage, CarriesItsStyleAndScriptWhole) {
  const std::string page = html_page(samples::record("passed"));
  EXPECT_NE(page.find(page_css()), std::string::npos);
  EXPECT_NE(page.find(page_js()), std::string::npos);
}

TEST(HtmlPage, HidesWhatNeedsScriptUntilScriptRuns) {
  const auto root = test::read_html(html_page(samples::record("large")));
  const std::function<void(const Node&, bool)> check = [&](const Node& node, bool hidden) {
    hidden = hidden || node.attribute("hidden") || node.tag == "dialog";
    if (node.tag == "button" || node.tag == "input") {
      EXPECT_TRUE(hidden) << node.all_text();
    }
    for (const auto& child : node.children) check(*child, hidden);
  };
  check(*root, false);
}

}  // namespace
}  // namespace kvcheck::reports
