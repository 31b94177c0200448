// The blindness table: at which numbers of keys each fill sees each wrong model.
#include "model/blindness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/model/families.h"

namespace kvcheck::model {
namespace {

struct FillColumn {
  const char* name;
  std::vector<FillSpec> fills;  // Launched one after the other; one that sees is enough.
};

std::vector<FillColumn> columns(std::int64_t n) {
  return {{"random", {{FillKind::random, 7}}},
          {"needles", {{FillKind::needles, 7}}},
          {"position code",
           {{FillKind::position_code, 7, 0},
            {FillKind::position_code, 7, 1},
            {FillKind::position_block, 7, (n - 1) / 16}}}};
}

/// Largest separation by wrong model and fill.
using Row = std::map<std::string, double>;
using Table = std::map<std::string_view, std::map<std::int64_t, Row>>;

ArithmeticProfile profile_of(ElementType type) {
  ArithmeticProfile profile;
  profile.output_type = type;
  // Targets of 16 bits round the weights before they multiply the values.
  if (type == ElementType::f16) profile.probability_roundoff = unit_roundoff(type);
  return profile;
}

Table table_of(ElementType type, const std::vector<std::int64_t>& counts) {
  Table table;
  for (const std::int64_t n : counts) {
    for (const FillColumn& column : columns(n)) {
      for (const FillSpec& fill : column.fills) {
        for (const Family& family : families(n, fill, type)) {
          for (const Separation& found : separations(family.scenario, profile_of(type))) {
            double& best = table[found.model->name][n][column.name];
            best = std::max(best, found.ratio);
          }
        }
      }
    }
  }
  return table;
}

/// Where the reading is seen, and how far it is separated at the largest of these n.
std::string seen_at(const std::map<std::int64_t, Row>& by_count, const std::string& column) {
  std::string counts;
  double separation = 0;
  bool everywhere = true;
  for (const auto& [n, row] : by_count) {
    const bool seen = row.at(column) > 1;
    everywhere = everywhere && seen;
    if (seen) counts += (counts.empty() ? "" : ", ") + fmt::format("{}", n);
    if (seen) separation = row.at(column);
  }
  if (counts.empty()) return "-";
  return fmt::format("{} ({:.2g})", everywhere ? "all" : counts, separation);
}

void print(const Table& table, const std::vector<std::int64_t>& counts, ElementType type) {
  std::printf(
      "\n%s, n = %s\n\n| wrong model | random | needles | position code |\n|---|---|---|---|\n",
      std::string(to_string(type)).c_str(), fmt::format("{}", fmt::join(counts, ", ")).c_str());
  for (const WrongModel& model : wrong_models()) {
    const auto& by_count = table.at(model.name);
    std::printf("| `%s` | %s | %s | %s |\n", std::string(model.name).c_str(),
                seen_at(by_count, "random").c_str(), seen_at(by_count, "needles").c_str(),
                seen_at(by_count, "position code").c_str());
  }
}

/// KVCHECK_BLINDNESS_COUNTS=2,8,32,128,512,2048,4096 gives the whole table and prints it.
std::vector<std::int64_t> counts_asked() {
  const char* asked = std::getenv("KVCHECK_BLINDNESS_COUNTS");
  if (asked == nullptr) return {2, 8, 32, 128};
  std::vector<std::int64_t> counts;
  for (const char* at = asked; *at != '\0';) {
    char* end = nullptr;
    counts.push_back(std::strtoll(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
  }
  return counts;
}

class Blindness : public testing::TestWithParam<ElementType> {};

INSTANTIATE_TEST_SUITE_P(Types, Blindness, testing::Values(ElementType::f32, ElementType::f16),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(Blindness, NoReadingEscapesAllFillsWhereItDiffers) {
  const auto counts = counts_asked();
  const Table table = table_of(GetParam(), counts);
  ASSERT_EQ(table.size(), wrong_models().size());
  for (const auto& [name, by_count] : table) {
    for (const auto& [n, row] : by_count) {
      double best = 0;
      for (const auto& [column, ratio] : row) best = std::max(best, ratio);
      if (best == 0) continue;  // The reading does not differ at this n.
      EXPECT_GT(best, 1) << name << " at n = " << n;
    }
  }
  if (std::getenv("KVCHECK_BLINDNESS_COUNTS") != nullptr) print(table, counts, GetParam());
}

/// One key too many among random data is lost in rounding; needles find it.
TEST(Blindness, OfRandomDataGrowsWithTheNumberOfKeys) {
  const auto ratio = [](FillKind fill, std::int64_t n) {
    for (const Family& family : families(n, {fill, 7}, ElementType::f16)) {
      if (std::string_view(family.name) != "window") continue;
      Oracle right(family.scenario, profile_of(ElementType::f16));
      return separation(right, profile_of(ElementType::f16), *find_wrong_model("window.one_more"))
          .ratio;
    }
    return -1.0;
  };
  EXPECT_GT(ratio(FillKind::random, 8), 20 * ratio(FillKind::random, 2048));
  EXPECT_GT(ratio(FillKind::needles, 2048), 20 * ratio(FillKind::random, 2048));
}

}  // namespace
}  // namespace kvcheck::model
