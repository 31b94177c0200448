// Clean text, escaping and number formats.
#include "reports/text.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

TEST(CleanText, MakesControlCharactersVisible) {
  EXPECT_EQ(clean_text("a\x1b[31mb\x07"), "a\\x1b[31mb\\x07");
  EXPECT_EQ(clean_text(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(clean_text("\xC2\x9B"
                       "2J"),
            "\\x9b2J")
      << "the one-byte escape of terminals";
}

TEST(CleanText, MakesMarksThatReorderTextVisible) {
  EXPECT_EQ(clean_text("a\u202Eb\u2066c\u200Fd\uFEFF"), "a\\u202eb\\u2066c\\u200fd\\ufeff");
}

TEST(CleanText, ReplacesBrokenBytes) {
  EXPECT_EQ(clean_text("a\xFF"
                       "b"),
            "a\uFFFDb");
  EXPECT_EQ(clean_text("\xC3("), "\uFFFD(");
  EXPECT_EQ(clean_text("\xE2\x82"), "\uFFFD\uFFFD") << "cut off at the end";
  EXPECT_EQ(clean_text("\xC0\xAF"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(clean_text("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
  EXPECT_EQ(clean_text("\u00e9\u4e2d\U0001F600"), "\u00e9\u4e2d\U0001F600");
}

TEST(CleanText, KeepsLinesOnlyWhereAsked) {
  EXPECT_EQ(clean_text("a\n\tb"), "a  b");
  EXPECT_EQ(clean_text("a\n\tb", true), "a\n\tb");
  EXPECT_EQ(clean_text("a\rb", true), "a\\x0db");
}

TEST(CleanText, SaysWhatItCuts) {
  const std::string cut = clean_text(std::string(5000, 'x'));
  EXPECT_EQ(cut.substr(kMaxShown - 1), "x (cut: 4,000 of 5,000 bytes shown)");
  EXPECT_EQ(clean_text(std::string(kMaxShown, 'x')), std::string(kMaxShown, 'x'));
}

TEST(Escape, LeavesNoMarkup) {
  EXPECT_EQ(escape("<a href=\"x\" b='y'>&</a>"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;&lt;/a&gt;");
  EXPECT_EQ(escape(samples::hostile("x")).find_first_of("<>\"'\x1b"), std::string::npos);
}

TEST(Grouped, SetsCommasByThree) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Counted, AgreesInNumber) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(4096, "query", "queries"), "4,096 queries");
}

TEST(RatioText, NeverRoundsAcrossTheBound) {
  EXPECT_EQ(ratio_text(1), "1");
  EXPECT_EQ(ratio_text(1.0000001), "1.0000001");
  EXPECT_EQ(ratio_text(0.9999999), "0.9999999");
  EXPECT_EQ(ratio_text(0.314), "0.31");
  EXPECT_EQ(ratio_text(9.5625), "9.6");
  EXPECT_EQ(ratio_text(1234.4), "1,234");
  EXPECT_EQ(ratio_text(3.21e9), "3.2e+09");
  EXPECT_EQ(ratio_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(ratio_text(std::nan("")), "nan");
  EXPECT_NE(ratio_text(std::nextafter(1.0, 2.0)), "1");
}

TEST(Exact, ReadsBackToTheSameDouble) {
  for (const double value : {0.1, 1.0 / 3, 5e-324, -0.0, 1e300}) {
    EXPECT_EQ(std::strtod(exact(value).c_str(), nullptr), value);
    EXPECT_EQ(std::strtod(hex_float(value).c_str(), nullptr), value);
  }
}

TEST(SetText, CollapsesLongRunsOnly) {
  EXPECT_EQ(set_text({}), "{}");
  EXPECT_EQ(set_text({0, 1, 2}), "{0, 1, 2}");
  EXPECT_EQ(set_text({0, 1, 2, 3}), "{0-3}");
  EXPECT_EQ(set_text({-2, -1, 5, 7, 8, 9, 10}), "{-2, -1, 5, 7-10}");
  EXPECT_EQ(set_text({1, 3, 5, 7}, 2), "{1, 3, ... 2 more}");
}

TEST(ListText, SaysOneNumberWhereAllAgree) {
  EXPECT_EQ(list_text({3, 3, 3}), "3");
  EXPECT_EQ(list_text({3, 4}), "3, 4");
  EXPECT_EQ(list_text({1, 2, 3}, 2), "1, 2, ... 3 in all");
}

TEST(ShellQuoted, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_quoted("3f9a0c55d2e81b47"), "3f9a0c55d2e81b47");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("$(rm x)"), "'$(rm x)'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("-rf"), "'-rf'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(Wrapped, BreaksAtSpacesAndInsideLongWords) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("abcdefgh", 3), (std::vector<std::string>{"abc", "def", "gh"}));
  EXPECT_EQ(wrapped("", 5), std::vector<std::string>{""});
  for (const auto& line : wrapped(clean_text(samples::hostile("x")), 10)) {
    EXPECT_LE(width(line), 10u);
  }
}

TEST(Headline, HasWordsOfItsOwnForEveryKind) {
  std::vector<std::string_view> seen;
  for (int i = 0; i <= static_cast<int>(properties::Kind::nondeterministic); ++i) {
    const auto words = headline(static_cast<properties::Kind>(i));
    for (const auto other : seen) EXPECT_NE(words, other);
    seen.push_back(words);
  }
}

}  // namespace
}  // namespace kvcheck::reports
