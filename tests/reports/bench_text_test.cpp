#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "reports/bench_report.h"
#include "reports/text.h"
#include "tests/reports/bench_sample.h"

namespace kvcheck::reports {
namespace {

std::string line_with(const std::string& text, const std::string& part, int skip = 0) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos && skip-- == 0) return line;
  }
  return "";
}

TEST(BenchText, NamesEachRowOnceWithItsPeersBelow) {
  const std::string text = bench_text(samples::bench_record(), false);
  EXPECT_EQ(line_with(text, "decode.f32.64/8/64.T512"),
            "decode.f32.64/8/64.T512                                0.1 ms  roof 0.70  reached "
            "(0.65/0.8)");
  EXPECT_EQ(line_with(text, "decode.f32.64/8/64.T512", 1), "");
  EXPECT_EQ(
      line_with(text, "onnxruntime"),
      "    onnxruntime 1.32.0                    0.45 ms    4.50x 4.46-4.59  reached (4/5.5)");
  EXPECT_EQ(line_with(text, "openvino"),
            "    openvino 2026.4.1                     0.09 ms    0.89x 0.882-0.909 noisy  missed "
            "(1/1.35)");
  EXPECT_EQ(line_with(text, "jax:"),
            "    jax: its Python environment is not there; ./kvcheck bench --peer jax sets it up");
}

TEST(BenchText, EndsWithGrowthCountsAndNotes) {
  const std::string text = bench_text(samples::bench_record(), false);
  EXPECT_EQ(line_with(text, "growth."),
            "growth.full.64/8/64                                slope 1.000, expected 1 +- 0.08  "
            "reached");
  EXPECT_EQ(line_with(text, "compared"),
            "13 rows compared, 9 of 15 ratio goals reached, 3 noisy, 61 s");
  EXPECT_NE(text.find("Note: interrupted after 17 of 84 rows"), std::string::npos);
  EXPECT_NE(text.find("    scratch memory 5 KiB, of the other 2,000 KiB\n"), std::string::npos);
  EXPECT_NE(text.find("the timed output is wrong"), std::string::npos);
}

TEST(BenchText, HasNoLineAbove100ColumnsAndNoColourUnlessAsked) {
  const std::string plain = bench_text(samples::bench_record(), false);
  std::istringstream lines(plain);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width(line), 100u) << line;
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(bench_text(samples::bench_record(), true).find("\x1b[31m"), std::string::npos);
}

}  // namespace
}  // namespace kvcheck::reports
