// The counted launches: which there are, and that their counts are those worked out by hand, where
// a launch is small enough for that, and within the bounds of the kernels' own tests.
#include "kernels/cuda/counted_steps.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "kernels/cuda/planted.h"
#include "kernels/cuda/simt_machine.h"

namespace kvcheck::kernels::device {
namespace {

const std::vector<CountedLaunch>& launches() {
  static const std::vector<CountedLaunch> once = simt_counted_launches();
  return once;
}

const simt::Counters& counters_of(const std::string& step, const std::string& kernel) {
  for (const CountedLaunch& launch : launches()) {
    if (launch.step == step && launch.kernel == kernel) return launch.counters;
  }
  throw std::runtime_error("no launch of " + kernel + " in " + step);
}

TEST(CountedSteps, EveryStepHasItsLaunchesInOrder) {
  SimtMachine machine(simt_kernels(), {});
  std::vector<std::pair<std::string, std::string>> expected, found;
  std::set<std::string> names;
  for (const CountedStep& step : counted_steps(machine, simt_probe)) {
    EXPECT_TRUE(names.insert(step.name).second) << step.name;
    EXPECT_FALSE(step.kernels.empty()) << step.name;
    for (const std::string& kernel : step.kernels) expected.emplace_back(step.name, kernel);
  }
  for (const CountedLaunch& launch : launches()) found.emplace_back(launch.step, launch.kernel);
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(machine.finish().has_value());
}

TEST(CountedSteps, EveryKernelIsAmongThem) {
  std::set<std::string> kernels;
  for (const CountedLaunch& launch : launches()) kernels.insert(launch.kernel);
  EXPECT_EQ(kernels, (std::set<std::string>{
                         "append_kernel", "decode_kernel", "decode_matrix_kernel", "merge_kernel",
                         "move_kernel", "prefill_kernel", "probe_copies_kernel",
                         "probe_matrices_kernel", "probe_packets_kernel", "probe_words_kernel",
                         "unfused_scores_kernel", "unfused_values_kernel"}));
}

TEST(CountedSteps, EveryLaunchLoadsAndStores) {
  for (const CountedLaunch& launch : launches()) {
    SCOPED_TRACE(launch.step + ", " + launch.kernel);
    EXPECT_GT(launch.counters.global_load_sectors, 0);
    EXPECT_GT(launch.counters.global_store_sectors, 0);
    EXPECT_LE(launch.counters.global_store_bytes, launch.counters.global_store_sectors * 32);
    // As for the decode kernels and prefill in their own tests; the others share little.
    if (launch.step.starts_with("probe")) continue;
    EXPECT_EQ(launch.counters.bank_conflicts, 0);
  }
}

TEST(CountedSteps, MatrixUnitsWorkWhereTheyAreMeantTo) {
  for (const CountedLaunch& launch : launches()) {
    const bool matrix =
        launch.kernel == "decode_matrix_kernel" || launch.kernel == "prefill_kernel";
    EXPECT_EQ(launch.counters.matrix_products > 0, matrix) << launch.step;
  }
}

/// As Decode.ReadsEachRowOfTheBandOnce and its like: rows times their 32-byte sectors, and 5 %.
void expect_rows_once(const char* step, const char* kernel, double rows, double row_bytes) {
  const double least = rows * row_bytes / 32;
  const auto found = static_cast<double>(counters_of(step, kernel).global_load_sectors);
  EXPECT_GE(found, least) << step;
  EXPECT_LE(found, 1.05 * least) << step;
}

TEST(CountedSteps, DecodeLoadsEachRowOfTheBandOnce) {
  // Positions, KV heads, keys and values; f16.
  expect_rows_once("decode, one split", "decode_kernel", 1024 * 2 * 2, 64 * 2);
  expect_rows_once("decode, splits, ragged", "decode_kernel", (2048 + 700) * 2 * 2, 64 * 2);
  expect_rows_once("decode, window, 128 lanes", "decode_kernel", 500 * 2 * 2, 128 * 2);
  expect_rows_once("decode, 256 lanes", "decode_kernel", 512 * 1 * 2, 256 * 2);
  expect_rows_once("decode_matrix, splits, ragged", "decode_matrix_kernel", (2048 + 700) * 2 * 2,
                   64 * 2);
  // The first of two queries sees one position more at the begin.
  expect_rows_once("decode_matrix, window, drafts", "decode_matrix_kernel", 501 * 2 * 2, 128 * 2);
}

TEST(CountedSteps, PrefillLoadsLittleInVain) {
  for (const CountedLaunch& launch : launches()) {
    if (launch.kernel != "prefill_kernel") continue;
    EXPECT_EQ(launch.counters.global_store_sectors * 32, launch.counters.global_store_bytes);
    EXPECT_LE(static_cast<double>(launch.counters.global_load_sectors * 32),
              1.05 * static_cast<double>(launch.counters.global_load_bytes))
        << launch.step;
  }
}

TEST(CountedSteps, OutputsAndPartialResultsAreStoredOnce) {
  // 8 heads of 64 lanes, 128 bytes each.
  EXPECT_EQ(counters_of("decode, one split", "decode_kernel").global_store_bytes, 8 * 128);
  // Of 8 splits and 8 heads a maximum, a sum and 64 f32, though 2 of the splits hold no key.
  EXPECT_EQ(counters_of("decode, splits, ragged", "decode_kernel").global_store_bytes,
            8 * 8 * (64 + 2) * 4);
  EXPECT_EQ(counters_of("decode, splits, ragged", "merge_kernel").global_store_bytes, 2 * 8 * 128);
}

TEST(CountedSteps, TheMergeIsTakenApartFromItsDecode) {
  // 4 splits of 512 positions; 700 keys are in 2 of them. Each of the 2 warps of a block loads the
  // count of queries and 4 maxima, a sector each; then for each split the maximum again, and where
  // it holds keys the sum and 32 outputs, which are 4 sectors.
  const std::int64_t full = 1 + 4 + 4 * 6, ragged = 1 + 4 + 2 * 6 + 2;
  const simt::Counters& merge = counters_of("decode, splits, ragged", "merge_kernel");
  EXPECT_EQ(merge.global_load_sectors, 8 * 2 * (full + ragged));
  EXPECT_EQ(merge.global_store_sectors, 2 * 8 * 128 / 32);
  EXPECT_EQ(merge.shared_accesses, 0);
}

TEST(CountedSteps, TheValuesOfUnfusedAreTakenApartFromItsScores) {
  // Queries that see 254, 255 and 256 keys, and one that sees 100; 4 heads. A warp of scores is 4
  // sectors, the last one of a row fewer.
  const std::int64_t scores = 4 * (32 + 32 + 32 + 13);
  EXPECT_EQ(counters_of("unfused, ragged", "unfused_scores_kernel").global_store_sectors, scores);
  // Weights in their place, and 64 lanes of f16 for each query and head.
  EXPECT_EQ(counters_of("unfused, ragged", "unfused_values_kernel").global_store_sectors,
            scores + 4 * 4 * 4);
  EXPECT_GT(counters_of("unfused, ragged", "unfused_values_kernel").block_barriers, 0);
  EXPECT_EQ(counters_of("unfused, ragged", "unfused_scores_kernel").block_barriers, 0);
}

TEST(CountedSteps, RowsAreAppendedAndMovedOnce) {
  // 17 tokens, keys and values of 2 heads, 2048 lanes of f16.
  EXPECT_EQ(counters_of("append, ragged", "append_kernel").global_store_bytes,
            17 * 2 * 2 * 2048 * 2);
  for (const char* step : {"move, compaction", "move, to another buffer"}) {
    // 1024 and 600 rows of 128 bytes.
    EXPECT_EQ(counters_of(step, "move_kernel").global_store_bytes, (1024 + 600) * 2 * 2 * 128);
  }
}

TEST(CountedSteps, TheConflictsOfProbesAreThoseWorkedOutByHand) {
  // 2 blocks of 4 warps, 16 rounds. Words 32 bytes apart: 8 lanes meet in each of 4 banks. 16 bytes
  // of each of 8 lanes that are taken together, 32 bytes apart: 2 lanes meet.
  const std::int64_t accesses = 2 * 4 * 16;
  const std::int64_t met = 4 * 1;
  EXPECT_EQ(counters_of("probe of words", "probe_words_kernel").bank_conflicts, 2 * 7 * accesses);
  EXPECT_EQ(counters_of("probe of packets", "probe_packets_kernel").bank_conflicts,
            2 * met * accesses);
  EXPECT_EQ(counters_of("probe of copies", "probe_copies_kernel").bank_conflicts,
            2 * met * accesses);
  EXPECT_EQ(counters_of("probe of matrices", "probe_matrices_kernel").bank_conflicts,
            met * accesses);
}

TEST(CountedSteps, TheSectorsOfProbesAreThoseWorkedOutByHand) {
  // A word for each thread at the begin and at the end; copies of 16 bytes, two in each round.
  for (const char* what : {"words", "packets", "copies", "matrices"}) {
    const std::string name(what);
    const simt::Counters& found = counters_of("probe of " + name, "probe_" + name + "_kernel");
    EXPECT_EQ(found.global_load_sectors, 2 * 128 * (4 + (name == "copies" ? 16 * 2 * 16 : 0)) / 32)
        << name;
    EXPECT_EQ(found.global_store_sectors, 2 * 128 * 4 / 32) << name;
  }
}

TEST(CountedSteps, ACallMayBeMadeAgain) {
  SimtMachine machine(simt_kernels(), {});
  for (const CountedStep& step : counted_steps(machine, simt_probe)) {
    const std::int64_t before = machine.counters().global_load_sectors;
    step.call(machine.kernels());
    const std::int64_t once = machine.counters().global_load_sectors - before;
    step.call(machine.kernels());
    EXPECT_EQ(machine.counters().global_load_sectors, before + 2 * once) << step.name;
  }
  EXPECT_FALSE(machine.finish().has_value());
}

TEST(CountedSteps, OtherLaunchesThanTheLastAreNone) {
  const KernelTable last = last_launches();
  EXPECT_EQ(last.append, nullptr);
  EXPECT_EQ(last.move, nullptr);
  EXPECT_EQ(last.prefill, nullptr);
  EXPECT_NE(last.unfused, nullptr);
  EXPECT_NE(last.decode, nullptr);
  EXPECT_NE(last.decode_matrix, nullptr);
}

}  // namespace
}  // namespace kvcheck::kernels::device
