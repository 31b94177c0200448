// The flash engine: what it takes, what it keeps, and its memory.
#include "kernels/cpu/flash/flash_engine.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/flash_sequence.h"

namespace kvcheck::kernels::flash {
namespace {

TEST(FlashEngine, StoresWhatTheSessionSays) {
  EXPECT_EQ(storage_of(flash_config(1, 1, 8, 4)), Storage::f32);
  EXPECT_EQ(storage_of(flash_config(1, 1, 8, 4, "f16")), Storage::f16);
  EXPECT_EQ(storage_of(flash_config(1, 1, 8, 4, "bf16")), Storage::bf16);
  EXPECT_EQ(storage_of(flash_config(1, 1, 8, 4, "int8")), Storage::int8);
  EXPECT_EQ(storage_of(flash_config(1, 1, 8, 4, "int4")), Storage::int4);
}

TEST(FlashEngine, NamesTheInstructionSetThatCannotRun) {
  SessionConfig config = flash_config(1, 1, 8, 4);
  config.isa = "neon";
  try {
    const FlashEngine engine(config);
    FAIL();
  } catch (const std::invalid_argument& wrong) {
    const std::string reason = wrong.what();
    EXPECT_NE(reason.find("isa = neon"), std::string::npos) << reason;
    EXPECT_NE(reason.find("scalar"), std::string::npos) << reason;
  }
  config.isa = "scalar";
  EXPECT_STREQ(FlashEngine(config).kernels().isa, "scalar");
}

TEST(FlashEngine, AttendsToWhatTheCacheHolds) {
  // One head of one lane; queries of 0 see values 1, 2, 3 with equal weights.
  SessionConfig config = flash_config(1, 1, 1, 3);
  FlashEngine engine(config);
  Floats outputs;
  const Floats none{0};
  for (const float value : {1.0f, 2.0f, 6.0f}) {
    EngineStep step;
    const Counts one{1};
    step.tokens = step.queries = one;
    const auto* row = reinterpret_cast<const std::byte*>(&value);
    step.rows = {RowSource::dense(row, 1, 1, 4), RowSource::dense(row, 1, 1, 4)};
    step.query = RowSource::dense(reinterpret_cast<const std::byte*>(none.data()), 1, 1, 4);
    float output = -1;
    step.output = reinterpret_cast<std::byte*>(&output);
    float maximum = -1, total = -1;
    step.maxima = &maximum;
    step.totals = &total;
    engine.step(step);
    outputs.push_back(output);
    EXPECT_EQ(maximum, 0);
    EXPECT_EQ(total, static_cast<float>(outputs.size()));
  }
  EXPECT_EQ(outputs, (Floats{1, 1.5f, 3}));
  EXPECT_EQ(engine.cache().lengths(), Counts{3});
}

TEST(FlashEngine, TakesStepsThatAskNothing) {
  FlashSequence sequence(flash_config(2, 1, 8, 20));
  EXPECT_EQ(sequence.append({5}, {0}), Floats{});
  EXPECT_EQ(sequence.engine().cache().lengths(), Counts{5});
}

TEST(FlashEngine, HandsOutTheProductsThatItsOutputsUse) {
  // Products at every edge, of a windowed cache: bit for bit alike for each instruction set.
  std::vector<Floats> found;
  for (const Kernels* kernels : kernels_here()) {
    SessionConfig config = windowed(flash_config(2, 1, 12, 0), 70, 90);
    config.isa = kernels->isa;
    FlashEngine engine(config);
    std::vector<float> rows(100 * 12), query(2 * 12), output(2 * 12);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 17) / 3;
    for (std::size_t i = 0; i < query.size(); ++i) query[i] = static_cast<float>(i % 7) - 3;
    const auto* bytes = reinterpret_cast<const std::byte*>(rows.data());
    EngineStep step;
    const Counts prompt{99}, one{1}, none{0};
    step.tokens = prompt;
    step.queries = none;
    step.rows = {RowSource::dense(bytes, 99, 1, 48), RowSource::dense(bytes, 99, 1, 48)};
    engine.step(step);
    step.tokens = step.queries = one;
    step.query = RowSource::dense(reinterpret_cast<const std::byte*>(query.data()), 1, 2, 48);
    step.output = reinterpret_cast<std::byte*>(output.data());
    Floats& products = found.emplace_back();
    Counts positions;
    engine.step(step, [&](FlashAttention& attention, const FlashStep& attended,
                          std::span<const EntryPlan>) {
      attention.products(attended, [&](auto, auto, auto head, auto first, const float* logits,
                                       std::uint64_t visible) {
        for (; visible != 0; visible &= visible - 1) {
          const int i = std::countr_zero(visible);
          if (head == 0) positions.push_back(first + i);
          products.push_back(logits[i]);
        }
      });
    });
    ASSERT_EQ(positions.size(), 70u);
    for (std::size_t i = 0; i < 70; ++i)
      EXPECT_EQ(std::count(positions.begin(), positions.end(), 30 + i), 1);
  }
  for (const Floats& products : found) EXPECT_TRUE(same_bits(products, found[0]));
}

TEST(FlashMemory, OfAStepDoesNotGrowWithTheLength) {
  for (const int threads : {1, 2}) {
    SessionConfig config = flash_config(8, 1, 16, 3000);
    config.threads = threads;
    FlashSequence sequence(config);
    sequence.append({600}, {0});
    sequence.append({1});
    const std::int64_t early = sequence.engine().scratch_bytes();
    sequence.append({900}, {0});
    for (int i = 0; i < 50; ++i) sequence.append({1});
    if (threads == 1) {
      EXPECT_EQ(sequence.engine().scratch_bytes(), early);
    }
    // Several threads keep one partial result for each chunk, and each has its working memory.
    const UnitShape unit{8, 16, 16};
    EXPECT_LE(sequence.engine().scratch_bytes(), 2 * early + 4 * 4 * unit.partial_floats());
  }
}

}  // namespace
}  // namespace kvcheck::kernels::flash
