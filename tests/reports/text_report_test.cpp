// The terminal report: width, colour, and the same verdict as the page.
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "reports/report.h"
#include "reports/run_summary.h"
#include "reports/text.h"
#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

std::string without_colour(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      out += text[i];
    }
  }
  return out;
}

TEST(TextReport, KeepsToAHundredColumns) {
  for (const auto name : samples::names()) {
    std::istringstream lines(text_report(samples::record(name), false));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(width(line), 100u) << name << ": " << line;
    }
  }
  std::istringstream lines(text_report(samples::overfull(), false));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width(line), 100u) << line;
}

TEST(TextReport, ColoursOnlyWhenAsked) {
  for (const auto name : samples::names()) {
    const auto record = samples::record(name);
    const std::string plain = text_report(record, false), coloured = text_report(record, true);
    EXPECT_EQ(plain.find('\x1b'), std::string::npos) << name;
    EXPECT_NE(coloured.find("\x1b["), std::string::npos) << name;
    EXPECT_EQ(without_colour(coloured), plain) << name;
  }
}

TEST(TextReport, GivesTheVerdictOfThePage) {
  for (const auto name : samples::names()) {
    const auto record = samples::record(name);
    std::string word(to_string(summarise(record).verdict));
    for (char& c : word) c = static_cast<char>(c - 'a' + 'A');
    EXPECT_NE(text_report(record, false).find("\n" + word + ": "), std::string::npos) << name;
    EXPECT_NE(html_page(record).find(" " + word + "</span>"), std::string::npos) << name;
  }
}

TEST(TextReport, ShowsTheMaskExpectedBesideObserved) {
  const std::string text = text_report(samples::record("leak"), false);
  EXPECT_NE(text.find("       1   ##.        ##X\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Replay: ./kvcheck replay 3f9a0c55d2e81b47\n"), std::string::npos);
  EXPECT_NE(text.find("File:   failing/3f9a0c55d2e81b47.json\n"), std::string::npos);
  EXPECT_NE(text.find("Step 1: append 2 (1 query)   <- first divergence\n"), std::string::npos);
}

TEST(TextReport, GivesTheCaseAsJsonThatReads) {
  const auto record = samples::record("missing_key");
  const std::string text = text_report(record, false);
  const std::size_t begin = text.find("{\"schema\"");
  ASSERT_NE(begin, std::string::npos);
  const std::string json = text.substr(begin, text.find("]}\n", begin) + 2 - begin);
  EXPECT_EQ(model::parse_scenario(json), record.findings[0].minimal);
}

TEST(TextReport, NamesWhatWasNeverReached) {
  const std::string text = text_report(samples::record("passed"), false);
  EXPECT_NE(text.find("NEVER REACHED (0 %): prompt longer than the capacity (onnxruntime-cpu)"),
            std::string::npos);
}

TEST(TextReport, LetsNoTextOfATargetReachTheTerminalRaw) {
  const std::string text = text_report(samples::record("hostile"), false);
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  }
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
}

}  // namespace
}  // namespace kvcheck::reports
