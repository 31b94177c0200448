// The page of the benchmarks keeps the promises of every page, and shows what the record holds.
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "reports/bench_report.h"
#include "tests/reports/bench_sample.h"
#include "tests/reports/html_reader.h"

namespace kvcheck::reports {
namespace {

using properties::BenchRecord;
using test::Node;

class BenchPage : public testing::Test {
 protected:
  BenchPage() : page_(bench_page(samples::bench_record())), root_(test::read_html(page_)) {}

  bool says(const std::string& text) const { return page_.find(text) != std::string::npos; }

  std::string page_;
  std::unique_ptr<Node> root_;
};

TEST_F(BenchPage, HasUniqueIdsThatEveryLinkFinds) {
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
    const auto* names = node.attribute("aria-labelledby");
    std::istringstream each(names ? *names : "");
    for (std::string id; each >> id;) EXPECT_EQ(ids.count(id), 1u) << id;
  });
}

TEST_F(BenchPage, RefersToNothingOutside) {
  for_each(*root_, [&](const Node& node) {
    for (const char* name : {"href", "src", "action"}) {
      const auto* value = node.attribute(name);
      if (!value) continue;
      EXPECT_TRUE(value->starts_with("#") || value->starts_with("data:")) << *value;
    }
  });
  EXPECT_FALSE(says("https://"));
}

TEST_F(BenchPage, HasAFigureOfEachKind) {
  EXPECT_TRUE(says("id=\"time-64_2f8_2f64\""));
  EXPECT_TRUE(says("id=\"capacity-64_2f8_2f64-W128\""));
  EXPECT_TRUE(says("id=\"roof-bars\""));
  EXPECT_TRUE(says("predicted optimum"));
  EXPECT_TRUE(says("at G = 20, that is C = W + 19"));
}

TEST_F(BenchPage, FiguresHaveATitleAndWords) {
  int figures = 0;
  for_each(*root_, [&](const Node& node) {
    if (node.tag != "svg") return;
    ++figures;
    std::set<std::string> inside;
    for_each(node, [&](const Node& part) { inside.insert(part.tag); });
    EXPECT_EQ(inside.count("title"), 1u);
    EXPECT_EQ(inside.count("desc"), 1u);
  });
  EXPECT_EQ(figures, 3);
}

TEST_F(BenchPage, ShowsRowsWithTheirReasonsAndStates) {
  EXPECT_TRUE(says("decode.f32.64/8/64.T8192"));
  EXPECT_TRUE(says("onnxruntime 1.32.0"));
  EXPECT_TRUE(says("4.5x"));
  EXPECT_TRUE(says("4 / 5.5"));
  EXPECT_TRUE(says("its Python environment is not there"));
  EXPECT_TRUE(says("scratch memory 5 KiB, of the other 2,000 KiB"));
  EXPECT_TRUE(says("not measured"));
  EXPECT_TRUE(says("noisy"));
  EXPECT_TRUE(says("1 row timed a wrong output"));
  EXPECT_TRUE(says("interrupted after 17 of 84 rows"));
  EXPECT_TRUE(says("growth.full.64/8/64"));
}

TEST_F(BenchPage, TextOfTheRecordIsData) {
  EXPECT_TRUE(says("AMD EPYC &lt;Zen 4&gt;"));
  EXPECT_FALSE(says("<Zen"));
}

TEST_F(BenchPage, IsTheSameForTheSameRecord) {
  EXPECT_EQ(page_, bench_page(samples::bench_record()));
}

TEST(BenchPageOfLittle, AnEmptyRecordHasAPage) {
  const std::string page = bench_page(BenchRecord{});
  EXPECT_NE(page.find("0 of 0 ratio goals"), std::string::npos);
  EXPECT_NE(page.find("No row has a share of the roof."), std::string::npos);
}

TEST(BenchPageOfLittle, FitsTheLimitOfPagesHoweverLongTheRecord) {
  BenchRecord record = samples::bench_record();
  const auto rows = record.rows;
  while (record.rows.size() < 5000) {
    record.rows.insert(record.rows.end(), rows.begin(), rows.end());
  }
  const std::string page = bench_page(record);
  EXPECT_LT(page.size(), std::size_t{5} << 20);
  EXPECT_NE(page.find("The first 400 of "), std::string::npos);
}

}  // namespace
}  // namespace kvcheck::reports
