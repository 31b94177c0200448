// Reports of the sample records, byte for byte. KVCHECK_UPDATE_GOLDEN=1 rewrites the files.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "reports/page_assets.h"
#include "reports/palette.h"
#include "reports/report.h"
#include "tests/reports/sample_records.h"

namespace kvcheck::reports {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The page without what has a file or a test of its own: style, script, palette, and the case as
/// base 64. One line per block element, so that a difference reads.
std::string golden_form(std::string page) {
  page = replaced(std::move(page), palette_css(), "(palette)\n");
  page = replaced(std::move(page), page_css(), "(page.css)\n");
  page = replaced(std::move(page), page_js(), "(page.js)\n");
  constexpr std::string_view kData = "data:application/json;base64,";
  std::string out;
  for (std::size_t at = 0; at < page.size();) {
    if (page.compare(at, kData.size(), kData) == 0) {
      out += "(the case)";
      at = page.find('"', at);
      continue;
    }
    if (page.compare(at, 4, "<tr ") == 0 || page.compare(at, 4, "<tr>") == 0 ||
        page.compare(at, 3, "<h2") == 0 || page.compare(at, 3, "<h3") == 0 ||
        page.compare(at, 4, "<svg") == 0 || page.compare(at, 5, "<path") == 0 ||
        page.compare(at, 5, "<text") == 0 || page.compare(at, 3, "<p>") == 0 ||
        page.compare(at, 3, "<p ") == 0 || page.compare(at, 3, "<li") == 0) {
      out += '\n';
    }
    out += page[at++];
  }
  return out;
}

void expect_golden(const std::string& file, const std::string& actual) {
  const std::string path = std::string(KVCHECK_GOLDEN_FOLDER) + "/" + file;
  if (const char* update = std::getenv("KVCHECK_UPDATE_GOLDEN"); update && *update == '1') {
    std::ofstream(path, std::ios::binary) << actual;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path << " is missing; KVCHECK_UPDATE_GOLDEN=1 writes it";
  std::ostringstream golden;
  golden << in.rdbuf();
  std::istringstream expected(golden.str()), got(actual);
  std::string a, b;
  for (int line = 1; std::getline(expected, a) && std::getline(got, b); ++line) {
    ASSERT_EQ(a, b) << file << ":" << line << "; KVCHECK_UPDATE_GOLDEN=1 accepts the new text";
  }
  EXPECT_EQ(golden.str().size(), actual.size()) << file;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, PageIsUnchanged) {
  expect_golden(GetParam() + ".html", golden_form(html_page(samples::record(GetParam()))));
}

TEST_P(Golden, TextIsUnchanged) {
  expect_golden(GetParam() + ".txt", text_report(samples::record(GetParam()), false));
}

TEST_P(Golden, JunitIsUnchanged) {
  expect_golden(GetParam() + ".xml", junit_xml(samples::record(GetParam())));
}

std::vector<std::string> all_names() {
  std::vector<std::string> all;
  for (const auto name : samples::names()) all.emplace_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Samples, Golden, testing::ValuesIn(all_names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace kvcheck::reports
