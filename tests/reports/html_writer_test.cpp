// Elements escape what they are given.
#include "reports/html_writer.h"

#include <gtest/gtest.h>

namespace kvcheck::reports {
namespace {

TEST(Element, EscapesTextAndAttributes) {
  Element element("p");
  element.set("title", "\"<&>'").text("</p><script>");
  EXPECT_EQ(element.html(), "<p title=\"&quot;&lt;&amp;&gt;&#39;\">&lt;/p&gt;&lt;script&gt;</p>");
}

TEST(Element, NestsElements) {
  Element list("ul");
  list.id("a").cls("b c").add(Element("li").text("1")).text(" ").add(Element("li").text("2"));
  EXPECT_EQ(list.html(), "<ul id=\"a\" class=\"b c\"><li>1</li> <li>2</li></ul>");
}

TEST(Element, WritesVoidElementsAndEmptyShapesShort) {
  EXPECT_EQ(Element("input").flag("hidden").html(), "<input hidden>");
  EXPECT_EQ(Element("path").set("d", "M0 0").html(), "<path d=\"M0 0\"/>");
  EXPECT_EQ(Element("td").html(), "<td></td>");
}

TEST(Element, LinksOnlyWithinThePageAndToItsOwnData) {
  EXPECT_EQ(Element("a").link_to("x\"y").html(), "<a href=\"#x&quot;y\"></a>");
  EXPECT_EQ(Element("a").download("c.json", "application/json", "{}").html(),
            "<a download=\"c.json\" href=\"data:application/json;base64,e30=\"></a>");
}

TEST(Element, DoesNotCutAttributesThatItIsGiven) {
  const std::string path(100000, 'z');
  EXPECT_NE(Element("path").set("d", path).html().find(path), std::string::npos);
}

TEST(Element, KeepsLinesWhereAsked) {
  EXPECT_EQ(Element("pre").lines("a\n\tb").html(), "<pre>a\n\tb</pre>");
  EXPECT_EQ(Element("p").text("a\nb").html(), "<p>a b</p>");
}

TEST(Base64, FollowsTheStandardVectors) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xFF\xFE\xFD"), "//79");
}

TEST(IdPart, KeepsHashesAndEncodesTheRest) {
  EXPECT_EQ(id_part("3f9a-c_5"), "3f9a-c_5");
  EXPECT_EQ(id_part("a b.\"<"), "a_20b_2e_22_3c");
}

}  // namespace
}  // namespace kvcheck::reports
