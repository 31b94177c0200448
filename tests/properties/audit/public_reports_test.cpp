// Every public report has a row in properties/PUBLIC_REPORTS.md, and what stands for it exists.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/registry.h"
#include "model/wrong_models.h"

namespace kvcheck::properties {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kReports = {
    "C01", "C02", "C03", "C04", "C05", "C06", "C07", "C08", "C10", "C11", "C13", "C14",
    "C15", "C16", "C18", "C19", "C20", "C21", "C22", "C24", "C25", "C26", "C28", "C30",
    "C31", "C32", "C34", "C35", "C36", "C37", "C40", "C41", "C43", "C45", "C46", "C47",
    "C48", "C50", "C51", "C53", "C56", "C57", "C59", "C62", "C65", "C67", "C69", "C71",
    "C73", "C75", "C76", "C78", "C80", "C81", "C83", "C85"};

struct Row {
  std::string threads, words, stands_for;
};

std::map<std::string, Row> rows() {
  std::ifstream file(KVCHECK_PUBLIC_REPORTS);
  std::map<std::string, Row> found;
  const std::regex row(R"(\| (C\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|)");
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    EXPECT_TRUE(found.insert({match[1], {match[2], match[3], match[4]}}).second) << match[1];
  }
  return found;
}

/// What stands between backticks.
std::vector<std::string> named(const std::string& cell) {
  std::vector<std::string> names;
  const std::regex name("`([^`]+)`");
  for (std::sregex_iterator it(cell.begin(), cell.end(), name), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

bool exists(const std::string& name, const std::set<std::string>& faults) {
  if (name.starts_with("+")) return faults.count(name.substr(1)) > 0;
  if (name.starts_with("model+")) return model::find_wrong_model(name.substr(6)) != nullptr;
  return fs::exists(fs::path(KVCHECK_REGRESSION_FOLDER) / name);
}

TEST(PublicReports, EachHasARowAndAThread) {
  std::set<std::string> seen;
  for (const auto& [id, row] : rows()) {
    seen.insert(id);
    EXPECT_NE(row.threads.find('#'), std::string::npos) << id;
    EXPECT_GE(row.words.size(), 20u) << id;
  }
  EXPECT_EQ(seen, kReports);
  EXPECT_EQ(kReports.size(), 56u);
}

TEST(PublicReports, WhatStandsForEachExists) {
  std::set<std::string> faults;
  for (const auto& fault : kernels::list_faults()) faults.insert(fault.name);
  for (const auto& [id, row] : rows()) {
    const auto names = named(row.stands_for);
    const bool excused = row.stands_for.find("not expressed: ") != std::string::npos;
    EXPECT_TRUE(!names.empty() || excused) << id;
    for (const std::string& name : names) EXPECT_TRUE(exists(name, faults)) << id << ": " << name;
  }
}

TEST(PublicReports, AFaultThatNamesAReportStandsInItsRow) {
  const auto all = rows();
  for (const auto& fault : kernels::list_faults()) {
    for (const std::string& report : fault.reports) {
      const auto row = all.find(report);
      ASSERT_NE(row, all.end()) << fault.name << ": " << report;
      EXPECT_NE(row->second.stands_for.find("`+" + fault.name + "`"), std::string::npos)
          << report << " lacks " << fault.name;
    }
  }
}

}  // namespace
}  // namespace kvcheck::properties
