// Outputs of the flash engine against attention in double, within a bound of f32 arithmetic.
#include <cmath>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

#include "tests/kernels/flash_sequence.h"

namespace kvcheck::kernels::flash {
namespace {

/// Compares the outputs of the queries at [first, first + count) of one entry, each `every`-th.
void expect_values(const FlashSequence& sequence, const SessionConfig& config,
                   const Floats& outputs, std::int64_t first, std::int64_t every = 1) {
  const std::int64_t row = config.query_heads * config.value_head_size;
  const std::int64_t count = static_cast<std::int64_t>(outputs.size()) / row;
  for (std::int64_t i = count - 1; i >= 0; i -= every) {
    for (std::int64_t head = 0; head < config.query_heads; ++head) {
      const ExpectedRow expected = sequence.expected(0, first + i, head);
      for (std::int64_t lane = 0; lane < config.value_head_size; ++lane) {
        const auto at = static_cast<std::size_t>(lane);
        const double output =
            outputs[static_cast<std::size_t>(i * row + head * config.value_head_size + lane)];
        ASSERT_LE(std::abs(output - expected.output[at]), expected.bound[at])
            << "position " << first + i << " head " << head << " lane " << lane << ", expected "
            << expected.output[at];
      }
    }
  }
}

/// A past and one decode step.
void check_decode(const SessionConfig& config, std::int64_t length) {
  FlashSequence sequence(config);
  if (length > 1) sequence.append({length - 1}, {0});
  const Floats output = sequence.append({1});
  expect_values(sequence, config, output, length - 1);
}

TEST(FlashValues, OfEveryLengthAroundTilesAndChunks) {
  for (const std::int64_t length : {1,   2,   7,   8,   9,   15,  16,   17,   63,   64,  65,
                                    127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 1536}) {
    SCOPED_TRACE(length);
    check_decode(flash_config(4, 1, 16, length), length);
  }
}

TEST(FlashValues, OfEveryHeadSizeGroupAndStorage) {
  const std::int64_t sizes[] = {1, 3, 8, 12, 16, 24, 40, 64, 80, 96, 128, 192, 256};
  const std::int64_t groups[] = {1, 2, 3, 4, 5, 8};
  std::size_t turn = 0;
  for (const char* storage : kStorageNames) {
    for (const std::int64_t size : sizes) {
      // Every group meets every storage and, over all, every size.
      for (const std::int64_t group : {groups[turn % 6], groups[(turn + 3) % 6]}) {
        SCOPED_TRACE(testing::Message() << storage << " " << size << " group " << group);
        check_decode(flash_config(2 * group, 2, size, 150, storage), 70 + size % 60);
        const SessionConfig config = flash_config(group, 1, size, 150, storage);
        FlashSequence sequence(config);
        expect_values(sequence, config, sequence.append({9}), 0);
      }
      ++turn;
    }
  }
}

TEST(FlashValues, OfPromptsWithSeveralBlocksOfQueries) {
  for (const char* storage : kStorageNames) {
    const SessionConfig config = flash_config(6, 2, 24, 700, storage);
    FlashSequence sequence(config);
    SCOPED_TRACE(storage);
    expect_values(sequence, config, sequence.append({530}), 0, 37);
    expect_values(sequence, config, sequence.append({130}), 530, 19);
  }
}

TEST(FlashValues, OfWindowedCachesAndLocalWindows) {
  for (const std::int64_t window : {1, 5, 64, 100, 600}) {
    for (const bool evicts : {false, true}) {
      SessionConfig config = flash_config(4, 2, 16, 1400);
      config.window_size = window;
      if (evicts) config = windowed(config, window, window + 37);
      FlashSequence sequence(config);
      SCOPED_TRACE(testing::Message() << window << evicts);
      expect_values(sequence, config, sequence.append({700}), 0, 61);
      std::int64_t at = 700;
      for (const std::int64_t tokens : {1, 1, 90, 1, 333, 2}) {
        expect_values(sequence, config, sequence.append({tokens}), at, 29);
        at += tokens;
      }
    }
  }
}

TEST(FlashValues, WithKeyAndValueHeadsOfDifferentSizes) {
  for (const auto& [key, value] : {std::pair{5, 17}, {16, 3}, {64, 16}, {33, 128}}) {
    SessionConfig config = flash_config(3, 1, key, 200);
    config.op = "attention";
    config.opset = 24;
    config.nonpad_kv_seqlen = false;
    config.value_head_size = value;
    FlashSequence sequence(config);
    SCOPED_TRACE(key);
    expect_values(sequence, config, sequence.append({150}), 0, 31);
  }
}

TEST(FlashValues, OfEveryInstructionSet) {
  for (const Kernels* kernels : kernels_here()) {
    for (const char* storage : kStorageNames) {
      SessionConfig config = flash_config(5, 1, 40, 600, storage);
      config.isa = kernels->isa;
      SCOPED_TRACE(testing::Message() << kernels->isa << " " << storage);
      check_decode(config, 530);
    }
  }
}

TEST(FlashMasks, WithHolesAndBiases) {
  // Holes of every size, whole tiles and whole chunks among them, and biases elsewhere.
  const FlashSequence::Bias masks[] = {
      [](auto, auto, auto key) { return key % 3 == 0 ? 0.0f : -kInfinity; },
      [](auto, auto, auto key) { return key / 64 % 2 == 0 ? -kInfinity : 0.0f; },
      [](auto, auto, auto key) { return key < 512 ? -kInfinity : 0.0f; },
      [](auto, auto, auto key) { return key < 5 || key > 560 ? 0.0f : -kInfinity; },
      [](auto query, auto head, auto key) {
        return (query + 3 * head + key) % 7 < 2 ? -kInfinity : static_cast<float>(key % 11) - 5;
      },
      [](auto, auto, auto key) { return static_cast<float>(-key) / 8; },
      [](auto, auto, auto key) { return key == 530 ? 60.0f : -60.0f; },
  };
  for (const FlashSequence::Bias& mask : masks) {
    SessionConfig config = flash_config(4, 1, 16, 700);
    config.mask = "additive";
    FlashSequence sequence(config);
    SCOPED_TRACE(&mask - masks);
    sequence.bias = mask;
    expect_values(sequence, config, sequence.append({560}), 0, 23);
    expect_values(sequence, config, sequence.append({1}), 560);
    expect_values(sequence, config, sequence.append({30}), 561, 5);
  }
}

TEST(FlashMasks, ThatHideEverythingGiveZero) {
  SessionConfig config = flash_config(2, 1, 8, 100);
  FlashSequence sequence(config);
  sequence.bias = [](auto, auto, auto) { return -kInfinity; };
  EXPECT_EQ(sequence.append({90}), Floats(90 * 16, 0));
}

TEST(FlashMasks, HideKeysAndValuesOfNaN) {
  for (const std::int64_t at : {0, 3, 64, 100, 130}) {
    FlashSequence clean(flash_config(4, 1, 16, 140)), dirty(flash_config(4, 1, 16, 140));
    clean.bias = dirty.bias = [at](auto, auto, auto key) { return key == at ? -kInfinity : 0.25f; };
    dirty.key[at] = dirty.value[at] = kNaN;
    EXPECT_TRUE(same_bits(clean.append({131}), dirty.append({131}))) << at;
    EXPECT_TRUE(same_bits(clean.append({1}), dirty.append({1}))) << at;
  }
}

TEST(FlashFeatures, SinksSoftcapAndScales) {
  for (const std::int64_t length : {1, 64, 600}) {
    for (const double softcap : {0.0, 1.5, 30.0}) {
      for (const int sink : {0, 1, 2}) {
        for (const double scale : {0.0, 0.3, -0.2}) {
          SessionConfig config = flash_config(4, 2, 24, 600);
          config.softcap = softcap;
          config.scale = scale;
          config.smooth_softmax = sink == 1;
          if (sink == 2) {
            config.head_sink = Tensor::zeros(ElementType::f32, {4});
            const Floats sinks{-40, 0.5f, 3, 40};
            std::memcpy(config.head_sink->bytes.data(), sinks.data(), 16);
          }
          SCOPED_TRACE(testing::Message() << length << ' ' << softcap << ' ' << sink << scale);
          check_decode(config, length);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels::flash
