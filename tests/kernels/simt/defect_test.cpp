// Defects in words, each once, with paths as the repository has them.
#include "kernels/simt/defect.h"

#include <gtest/gtest.h>

#include "kernels/simt/defect_list.h"

namespace kvcheck::kernels::simt {
namespace {

Defect race(int line, int other_line) {
  Defect defect;
  defect.place = {"kernels/cuda/decode.cuh", line, 0};
  defect.other = {"kernels/cuda/decode.cuh", other_line, 0};
  defect.thread = 40;
  defect.other_thread = 3;
  return defect;
}

TEST(Defect, SentenceNamesBothPlaces) {
  Defect defect = race(120, 98);
  defect.detail = "byte 64";
  EXPECT_EQ(
      defect.sentence(),
      "data race at kernels/cuda/decode.cuh:120 with :98, block 0, threads 40 and 3: byte 64");
  defect.other.file = "kernels/cuda/tile.cuh";
  defect.detail = "";
  EXPECT_EQ(defect.sentence(),
            "data race at kernels/cuda/decode.cuh:120 with kernels/cuda/tile.cuh:98, block 0, "
            "threads 40 and 3");
}

TEST(Defect, SentenceOfOnePlace) {
  Defect defect;
  defect.kind = DefectKind::out_of_bounds;
  defect.block = 7;
  defect.thread = 5;
  defect.place.code = 0x1234;
  EXPECT_EQ(defect.sentence(), "out of bounds at address 0x1234, block 7, thread 5");
  defect.place.code = 0;
  EXPECT_EQ(defect.sentence(), "out of bounds at an unknown place, block 7, thread 5");
  defect.kind = DefectKind::not_written;
  defect.detail = "byte 4";
  EXPECT_EQ(defect.sentence(), "not written: byte 4");
}

TEST(Defect, PathsBeginAtTheRoom) {
  EXPECT_EQ(repository_path("/home/x/kvcheck/kernels/cuda/decode.cuh"), "kernels/cuda/decode.cuh");
  EXPECT_EQ(repository_path("../../kernels/cuda/decode.cuh"), "kernels/cuda/decode.cuh");
  EXPECT_EQ(repository_path("kernels/cuda/decode.cuh"), "kernels/cuda/decode.cuh");
  EXPECT_EQ(repository_path("/kernels/kvcheck/tests/kernels/simt/a.cpp"),
            "tests/kernels/simt/a.cpp");
  EXPECT_EQ(repository_path("/x/mykernels/a.cpp"), "/x/mykernels/a.cpp");
  EXPECT_EQ(repository_path("/usr/include/stdio.h"), "/usr/include/stdio.h");
}

TEST(Defect, SiteIsWhereTheCallStands) {
  const SourcePlace place = place_of(Site::current());
  EXPECT_EQ(place.file, "tests/kernels/simt/defect_test.cpp");
  EXPECT_EQ(place.line, __LINE__ - 2);
}

TEST(DefectList, HoldsEachPairOfLinesOnce) {
  DefectList list(16);
  list.add_once(race(1, 2));
  list.add_once(race(2, 1));
  list.add_once(race(1, 2));
  const std::vector<Defect> defects = list.take();
  ASSERT_EQ(defects.size(), 2u);
  EXPECT_EQ(defects[0].place.line, 1);
  EXPECT_EQ(defects[1].place.line, 2);
  EXPECT_TRUE(list.take().empty());
}

TEST(DefectList, EndsAtTheMost) {
  DefectList list(3);
  for (int line = 0; line < 100; ++line) list.add_once(race(line, 1));
  EXPECT_EQ(list.take().size(), 3u);
}

TEST(DefectList, InstructionsOfOneLineAreOne) {
  // Two addresses that the line table knows nothing of stay two; lines that are equal become one.
  DefectList list(16);
  ASSERT_TRUE(list.wants(DefectKind::data_race, 100, 200));
  list.add(race(1, 2));
  EXPECT_FALSE(list.wants(DefectKind::data_race, 100, 200));
  ASSERT_TRUE(list.wants(DefectKind::data_race, 104, 200));
  list.add(race(1, 2));
  ASSERT_TRUE(list.wants(DefectKind::misaligned, 100, 200));
  list.add(race(1, 3));
  EXPECT_EQ(list.take().size(), 2u);
}

}  // namespace
}  // namespace kvcheck::kernels::simt
