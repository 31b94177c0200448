#include "reports/plot_axes.h"

#include <string>

#include <gtest/gtest.h>

namespace kvcheck::reports {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Axis, LogarithmicTicksAreRoundWithinTheRange) {
  const Axis axis(128, 32768, true);
  EXPECT_EQ(axis.ticks(), (std::vector<double>{200, 500, 1000, 2000, 5000, 10000, 20000}));
  EXPECT_DOUBLE_EQ(axis.share(128), 0);
  EXPECT_DOUBLE_EQ(axis.share(2048), .5);
  EXPECT_DOUBLE_EQ(axis.share(32768), 1);
}

TEST(Axis, ManyDecadesHaveTicksAtPowersOfTenAlone) {
  const auto ticks = Axis(.001, 1000, true).ticks();
  ASSERT_EQ(ticks.size(), 7u);
  EXPECT_NEAR(ticks.front(), .001, 1e-12);
  EXPECT_NEAR(ticks.back(), 1000, 1e-6);
}

TEST(Axis, LinearTicksAreRoundSteps) {
  const Axis axis(0, .43, false);
  ASSERT_EQ(axis.ticks().size(), 6u);
  EXPECT_NEAR(axis.ticks()[1], .1, 1e-12);
  EXPECT_NEAR(axis.share(.25), .5, 1e-12);
}

TEST(Axis, OneValueStillHasARange) {
  EXPECT_GE(Axis(7, 7, false).ticks().size(), 2u);
  EXPECT_EQ(Axis(10, 10, true).ticks(), (std::vector<double>{10, 20, 50, 100}));
}

TEST(Plot, PutsValuesOnTheFrame) {
  const Plot plot("p", "title", "words", Axis(1, 100, true), Axis(0, 10, false), "T", "ms");
  EXPECT_DOUBLE_EQ(plot.x(1), 64);
  EXPECT_DOUBLE_EQ(plot.x(10), 64 + 230);
  EXPECT_DOUBLE_EQ(plot.y(0), 22 + 280);
  EXPECT_DOUBLE_EQ(plot.y(10), 22);
}

TEST(Plot, ALineHasAMarkForEachPointAndItsName) {
  Plot plot("p", "title", "words", Axis(1, 100, true), Axis(0, 10, false), "T", "ms");
  const std::size_t before = count(plot.svg().html(), "<path");
  plot.line({{1, 2}, {10, 3}, {100, 4}}, "ours & more", "resident", 0);
  const std::string html = plot.svg().html();
  EXPECT_EQ(count(html, "<path"), before + 1 + 3);
  EXPECT_NE(html.find("ours &amp; more"), std::string::npos);
}

TEST(Plot, NamesThatWouldMeetAreMovedApart) {
  Plot plot("p", "title", "words", Axis(1, 100, true), Axis(0, 10, false), "T", "ms");
  plot.line({{100, 5}}, "first", "resident", 0);
  plot.line({{100, 5}}, "second", "staged", 1);
  // Text stands at y = 22 + 140 + 4, the second one line of 13 below.
  EXPECT_NE(plot.svg().html().find("y=\"166\">first"), std::string::npos);
  EXPECT_NE(plot.svg().html().find("y=\"179\">second"), std::string::npos);
}

}  // namespace
}  // namespace kvcheck::reports
