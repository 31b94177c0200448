// Promises of the flash engine: the same bits whatever the instruction set, the threads, the cache,
// the split into steps and the company, at lengths of several tiles and chunks.
#include <algorithm>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/flash/workspace.h"
#include "tests/kernels/flash_sequence.h"

namespace kvcheck::kernels::flash {
namespace {

SessionConfig on(SessionConfig config, const char* isa, int threads = 1) {
  config.isa = isa;
  config.threads = threads;
  return config;
}

TEST(FlashBits, AreThoseOfEveryInstructionSet) {
  std::int64_t size = 0;
  for (const char* storage : kStorageNames) {
    for (const std::int64_t head_size : {1, 3, 8, 12, 16, 24, 40, 64, 80, 96, 128, 192, 256}) {
      const std::int64_t group = 1 + size++ % 8;
      const SessionConfig config = flash_config(group, 1, head_size, 200, storage);
      const auto run = [&](const char* isa) {
        FlashSequence sequence(on(config, isa));
        Floats outputs = sequence.append({70});
        for (const Floats& more :
             {sequence.append({1}), sequence.append({60}), sequence.append({1})}) {
          outputs.insert(outputs.end(), more.begin(), more.end());
        }
        return outputs;
      };
      const Floats first = run(kernels_here()[0]->isa);
      for (const Kernels* kernels : kernels_here()) {
        EXPECT_TRUE(same_bits(run(kernels->isa), first))
            << kernels->isa << ' ' << storage << ' ' << head_size << ' ' << group;
      }
    }
  }
}

TEST(FlashBits, AreThoseOfEveryInstructionSetWithChunksMasksAndSinks) {
  SessionConfig config = flash_config(3, 1, 20, 1300);
  config.softcap = 5;
  config.smooth_softmax = true;
  const auto run = [&](const char* isa) {
    FlashSequence sequence(on(config, isa));
    sequence.bias = [](auto query, auto head, auto key) {
      return (query + head + key) % 5 == 0 ? -kInfinity : static_cast<float>(key % 9) / 4;
    };
    sequence.append({1100}, {0});
    return sequence.append({40});
  };
  const Floats first = run(kernels_here()[0]->isa);
  for (const Kernels* kernels : kernels_here()) EXPECT_TRUE(same_bits(run(kernels->isa), first));
}

/// Fills the memory that the next session of this thread works in.
void leave_behind(std::uint8_t byte) {
  Workspace work({128, 96, 96});
  std::memset(work.scratch.logits, byte, static_cast<std::size_t>(work.bytes()));
}

TEST(FlashBits, DoNotDependOnWhatSessionsBeforeLeftInMemory) {
  for (const Kernels* kernels : kernels_here()) {
    for (const char* storage : kStorageNames) {
      for (const std::int64_t head_size : {1, 12, 16, 20, 40, 65}) {
        SessionConfig config = on(flash_config(5, 1, head_size, 700, storage), kernels->isa);
        config.smooth_softmax = true;
        const auto run = [&](std::uint8_t byte) {
          Floats outputs;
          leave_behind(byte);
          FlashSequence sequence(config);
          for (const std::int64_t tokens : {1, 3, 18, 100}) {
            const Floats more = sequence.append({tokens});
            outputs.insert(outputs.end(), more.begin(), more.end());
          }
          return outputs;
        };
        // All bits set are NaN; 0x7f7f7f7f is the largest of what is finite, nearly.
        const Floats first = run(0);
        for (const std::uint8_t byte : {0xff, 0x7f}) {
          EXPECT_TRUE(same_bits(run(byte), first))
              << kernels->isa << ' ' << storage << ' ' << head_size << ' ' << int{byte};
        }
      }
    }
  }
}

TEST(FlashBits, OfPortableKernelsNeedNoInstructionForAFusedMultiplyAdd) {
  for (const char* storage : kStorageNames) {
    for (const std::int64_t head_size : {1, 12, 16, 40, 65}) {
      SessionConfig config = flash_config(3, 1, head_size, 700, storage);
      config.smooth_softmax = true;
      const auto run = [&](const Kernels& kernels) {
        FlashSequence sequence(config, 1, &kernels);
        Floats outputs = sequence.append({600});
        const Floats last = sequence.append({1});
        outputs.insert(outputs.end(), last.begin(), last.end());
        return outputs;
      };
      EXPECT_TRUE(same_bits(run(portable_kernels()), run(portable_kernels_without_fma())))
          << storage << ' ' << head_size;
    }
  }
}

TEST(FlashBits, DoNotDependOnThreads) {
  // Decode of 8 heads over 1,100 keys and more is split by chunks, prompts by blocks of queries.
  for (const char* storage : {"f32", "int4"}) {
    const SessionConfig config = flash_config(16, 2, 16, 2300, storage);
    const auto run = [&](int threads) {
      FlashSequence sequence(on(config, kernels_here()[0]->isa, threads));
      Floats outputs = sequence.append({300});
      sequence.append({800}, {0});
      for (const std::int64_t tokens : {1, 1, 7, 1, 1000, 1}) {
        const Floats more = sequence.append({tokens}, {std::min<std::int64_t>(tokens, 7)});
        outputs.insert(outputs.end(), more.begin(), more.end());
      }
      return outputs;
    };
    const Floats alone = run(1);
    for (const int threads : {2, 3, 8, 0}) EXPECT_TRUE(same_bits(run(threads), alone)) << threads;
  }
}

TEST(FlashBits, OfWindowedCachesAreThoseOfTheFullCache) {
  for (const char* storage : {"f32", "int8"}) {
    for (const std::int64_t window : {1, 3, 63, 64, 65, 130, 513}) {
      SessionConfig full = flash_config(4, 2, 16, 1400, storage);
      full.window_size = window;
      const auto run = [&](const SessionConfig& config) {
        FlashSequence sequence(config);
        Floats outputs = sequence.append({500});
        for (const std::int64_t size : {1, 13, 1, 70}) {
          const Floats more = sequence.append_in_steps(150, size);
          outputs.insert(outputs.end(), more.begin(), more.end());
        }
        return outputs;
      };
      const Floats expected = run(full);
      for (const std::int64_t spare : {0, 1, 16, 64, 200}) {
        EXPECT_TRUE(same_bits(run(windowed(full, window, window + spare)), expected))
            << storage << ' ' << window << ' ' << spare;
      }
      SessionConfig single = windowed(full, window, window + 5);
      single.layout = "min_overflow";
      EXPECT_TRUE(same_bits(run(single), expected)) << window;
    }
  }
}

TEST(FlashBits, OfAnySplitAreThoseOfOneStep) {
  for (const char* storage : kStorageNames) {
    const std::int64_t length = storage == std::string("f32") ? 1100 : 600;
    const SessionConfig config = flash_config(4, 1, 24, length, storage);
    const Floats whole = FlashSequence(config).append({length});
    for (const std::int64_t size : {1, 2, 5, 33, 64, 100, 513}) {
      EXPECT_TRUE(same_bits(FlashSequence(config).append_in_steps(length, size), whole))
          << storage << ' ' << size;
    }
  }
}

TEST(FlashBits, DoNotDependOnSpareRowsOrTheirContent) {
  const SessionConfig least = flash_config(3, 1, 12, 530);
  const Floats expected = FlashSequence(least).append_in_steps(530, 100);
  for (const std::int64_t capacity : {531, 575, 640, 4096}) {
    for (const float poison : {0.0f, 1e30f, kNaN}) {
      SessionConfig config = least;
      config.capacity = capacity;
      config.initial_poison = poison;
      EXPECT_TRUE(same_bits(FlashSequence(config).append_in_steps(530, 100), expected))
          << capacity << ' ' << poison;
    }
  }
}

TEST(FlashBits, DoNotDependOnTheCompanyOfAnEntry) {
  const SessionConfig alone = flash_config(4, 2, 16, 1200);
  FlashSequence single(alone);
  Floats expected = single.append({570});
  const Floats decoded = single.append({1});
  SessionConfig config = alone;
  config.batch = 3;
  FlashSequence batch(config);
  // Entry 0 is what stood alone; the others are longer and shorter, ask more and fewer queries.
  const Floats prompt = batch.append({570, 3, 1100});
  EXPECT_TRUE(
      same_bits(Floats(prompt.begin(), prompt.begin() + 570 * single.row_size()), expected));
  const Floats step = batch.append({1, 9, 4});
  EXPECT_TRUE(same_bits(Floats(step.begin(), step.begin() + single.row_size()), decoded));
}

TEST(FlashBits, AfterARollbackAreThoseOfNeverAppended) {
  for (const bool evicts : {false, true}) {
    SessionConfig config = flash_config(4, 2, 16, 700);
    if (evicts) config = windowed(config, 100, 200);
    FlashSequence plain(config), returned(config);
    plain.append({560});
    returned.append({560});
    returned.seed = 9;
    returned.append({20});
    returned.rollback({20});
    returned.seed = 1;
    EXPECT_TRUE(same_bits(returned.append({5}), plain.append({5})));
    EXPECT_TRUE(same_bits(returned.append({1}), plain.append({1})));
  }
}

TEST(FlashBits, AreNotTouchedByNaNsOfStepsBefore) {
  // Working memory that held NaN and infinity is used again.
  for (const int threads : {1, 2}) {
    const SessionConfig config = on(flash_config(8, 1, 24, 1200), kernels_here()[0]->isa, threads);
    FlashSequence clean(config), dirty(config);
    clean.append({1100});
    dirty.append({1100});
    for (const float bad : {kNaN, kInfinity, -kInfinity}) {
      dirty.key[1100] = dirty.value[1101] = bad;
      dirty.append({9});
      dirty.rollback({9});
      dirty.key.clear();
      dirty.value.clear();
      EXPECT_TRUE(same_bits(dirty.append({9}), clean.append({9}))) << threads << ' ' << bad;
      EXPECT_TRUE(same_bits(dirty.append({1}), clean.append({1}))) << threads << ' ' << bad;
      dirty.rollback({10});
      clean.rollback({10});
    }
  }
}

TEST(FlashBits, RepeatWithinAnEngineAndAcrossEngines) {
  const SessionConfig config = flash_config(8, 2, 40, 600, "f16");
  FlashSequence first(config), second(config);
  const Floats output = first.append({577});
  EXPECT_TRUE(same_bits(second.append({577}), output));
  for (int again = 0; again < 3; ++again) {
    first.rollback({77});
    EXPECT_TRUE(
        same_bits(first.append({77}), Floats(output.end() - 77 * first.row_size(), output.end())));
  }
}

}  // namespace
}  // namespace kvcheck::kernels::flash
