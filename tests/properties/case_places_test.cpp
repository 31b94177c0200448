// The file of places reads as JSON at any moment.
#include "properties/case_places.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kvcheck::properties {
namespace {

nlohmann::json read(const std::filesystem::path& file) {
  return nlohmann::json::parse(std::ifstream(file));
}

TEST(CasePlaces, SayWhereEveryWorkerIs) {
  const auto file = std::filesystem::temp_directory_path() / "kvcheck_case_places.json";
  {
    CasePlaces places(file, "cpu-\"naive\"", 7, 2);
    EXPECT_TRUE(read(file)["workers"][0]["phase"].is_null());
    places.note(0, {Phase::targeted, UINT64_MAX});
    places.note(1, {Phase::random, 0});
    const auto json = read(file);
    EXPECT_EQ(json["target"], "cpu-\"naive\"");
    EXPECT_EQ(json["seed"], 7);
    EXPECT_EQ(json["workers"][0]["phase"], "targeted");
    EXPECT_EQ(json["workers"][0]["index"], UINT64_MAX);
    EXPECT_EQ(json["workers"][1]["phase"], "random");
    EXPECT_EQ(json["workers"][1]["index"], 0);
    places.note(0, {Phase::named, 12});
    EXPECT_EQ(read(file)["workers"][0]["phase"], "named");
    EXPECT_EQ(read(file)["workers"][0]["index"], 12);
  }
  EXPECT_EQ(read(file)["workers"][1]["phase"], "random");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace kvcheck::properties
