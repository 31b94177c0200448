// The last store of each byte: its line, kernel, block and thread under every order, across
// launches and within a word, and what makes it unknown again.
#include "kernels/simt/store_log.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "kernels/simt/symbols.h"
#include "tests/kernels/simt/test_launch.h"
#include "tests/kernels/simt/watched_kernels.h"

namespace kvcheck::kernels::simt {
namespace {

constexpr std::string_view kFile = "tests/kernels/simt/right_kernels.cpp";

/// Runs kernels of right_kernels() on memory whose stores are recorded.
struct Recorded {
  TestQueue test;
  Buffers buffers;

  explicit Recorded(Order order) : test({order, 5}) {
    test.memory.record_stores();
    buffers = {test.allocate<float>(256, Use::input), test.allocate<float>(256, Use::output),
               test.allocate<float>(256, Use::scratch), test.allocate<float>(256),
               test.allocate<unsigned>(1)};
    std::memset(buffers.input, 0, 1024);
    std::memset(buffers.cache, 0, 1024);
    *buffers.counter = 0;
  }

  void run(std::string_view name) {
    const auto kernels = right_kernels();
    const auto found = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const WatchedKernel& one) { return one.name == name; });
    ASSERT_NE(found, kernels.end()) << name;
    found->run(test.queue, buffers);
    EXPECT_EQ(sentences_of(test.queue.take_defects()), std::vector<std::string>());
  }

  template <class T>
  LastStore last(const T* at, std::size_t byte = 0) const {
    const auto store = test.memory.last_store(reinterpret_cast<const std::byte*>(at) + byte);
    EXPECT_TRUE(store.has_value()) << byte;
    return store.value_or(LastStore{});
  }
};

TEST(StoreLog, NamesTheThreadOfEachElementUnderEveryOrder) {
  for (const Order order : kAllOrders) {
    Recorded recorded(order);
    recorded.run("narrow_neighbours");
    // Two threads share a word; each stored its two bytes.
    for (int byte = 0; byte < 128; ++byte) {
      const LastStore store =
          recorded.last(recorded.buffers.output, static_cast<std::size_t>(byte));
      EXPECT_EQ(store.thread, byte / 2) << to_string(order);
      EXPECT_EQ(store.place.file, kFile);
      EXPECT_EQ(store.place.line, line_of(0));
      EXPECT_EQ(store.kernel.find("narrow_neighbours (tests/kernels/simt/right_kernels.cpp:"), 0u)
          << store.kernel;
      EXPECT_EQ(store.launch, 1);
    }
    EXPECT_FALSE(recorded.test.memory.last_store(recorded.buffers.output + 32).has_value());
    EXPECT_FALSE(recorded.test.memory.last_store(recorded.buffers.input).has_value());
  }
}

TEST(StoreLog, NamesBlocksAndAtomics) {
  for (const Order order : kAllOrders) {
    Recorded recorded(order);
    recorded.run("counter_of_blocks");
    for (std::uint32_t i = 0; i < 256; ++i) {
      const LastStore store = recorded.last(recorded.buffers.output + i);
      EXPECT_EQ(store.block.x, i / 64) << to_string(order);
      EXPECT_EQ(store.thread, static_cast<int>(i % 64)) << to_string(order);
      EXPECT_EQ(store.place.line, line_of(0));
    }
    const LastStore counted = recorded.last(recorded.buffers.counter, 3);
    EXPECT_EQ(counted.place.file, kFile);
    EXPECT_EQ(counted.place.line, line_of(1));
    EXPECT_TRUE(counted.kernel.starts_with("counter_of_blocks (")) << counted.kernel;
  }
}

TEST(StoreLog, OfTwoLaunchesTheLaterOneCounts) {
  for (const Order order : kAllOrders) {
    Recorded recorded(order);
    recorded.run("in_place");
    recorded.run("move_rows");
    const LastStore moved = recorded.last(recorded.buffers.cache + 127, 3);
    EXPECT_TRUE(moved.kernel.starts_with("move_rows (")) << to_string(order);
    EXPECT_EQ(moved.place.line, line_of(0));
    EXPECT_EQ(moved.launch, 2);
    EXPECT_EQ(moved.thread, 63);  // Thread 32 + i stored packet i.
    const LastStore behind = recorded.last(recorded.buffers.cache + 128);
    EXPECT_TRUE(behind.kernel.starts_with("in_place (")) << to_string(order);
    EXPECT_EQ(behind.launch, 1);
    EXPECT_EQ(behind.block.x, 2u);
    EXPECT_EQ(behind.thread, 0);
  }
}

TEST(StoreLog, IsUnknownWhereTheHostWroteOrNobodyAsked) {
  Recorded recorded(Order::lockstep);
  recorded.run("in_place");
  const float* const cache = recorded.buffers.cache;
  recorded.test.memory.forget_stores(cache + 1, 7);
  EXPECT_TRUE(recorded.test.memory.last_store(cache).has_value());
  EXPECT_FALSE(recorded.test.memory.last_store(cache + 1).has_value());
  const auto* const bytes = reinterpret_cast<const std::byte*>(cache);
  EXPECT_FALSE(recorded.test.memory.last_store(bytes + 10).has_value());
  EXPECT_TRUE(recorded.test.memory.last_store(bytes + 11).has_value());
  EXPECT_FALSE(recorded.test.memory.last_store(bytes - 1).has_value());

  TestQueue silent;
  Buffers buffers{silent.allocate<float>(256, Use::input), silent.allocate<float>(256),
                  silent.allocate<float>(256), silent.allocate<float>(256),
                  silent.allocate<unsigned>(1)};
  std::memset(buffers.input, 0, 1024);
  right_kernels().front().run(silent.queue, buffers);
  EXPECT_FALSE(silent.memory.last_store(buffers.output).has_value());
}

TEST(StoreLog, EndsWithItsAllocation) {
  Recorded recorded(Order::lockstep);
  recorded.run("in_place");
  recorded.test.memory.release(reinterpret_cast<std::byte*>(recorded.buffers.cache));
  EXPECT_FALSE(recorded.test.memory.last_store(recorded.buffers.cache).has_value());
  // The next allocation is often at the same address.
  const float* const again = recorded.test.allocate<float>(256);
  EXPECT_FALSE(recorded.test.memory.last_store(again).has_value());
}

TEST(StoreLog, AThreadThatGoesOnAtOnePlaceKeepsItsNumber) {
  StoreLog log;
  log.begin_launch(nullptr, {2, 3, 4});
  const StoreLog::Record one{.code = 64, .site = {}, .block = 1 + 2 * (2 + 3 * 3), .thread = 7};
  StoreLog::Record other = one;
  EXPECT_EQ(log.number(one), 1u);
  EXPECT_EQ(log.number(one), 1u);
  other.thread = 8;
  EXPECT_EQ(log.number(other), 2u);
  EXPECT_EQ(log.number(one), 1u);
  other = one;
  other.code = 65;
  EXPECT_EQ(log.number(other), 3u);
  EXPECT_EQ(log.number(one), 4u);
  other = one;
  other.block = 0;
  EXPECT_EQ(log.number(other), 5u);
  other.site = Site::current();
  EXPECT_EQ(log.number(other), 6u);
  log.begin_launch(nullptr, {});
  EXPECT_EQ(log.number(other), 7u);
  EXPECT_EQ(log.at(7).launch, 2);
  const LastStore first = log.at(1);
  EXPECT_EQ(first.block.x, 1u);
  EXPECT_EQ(first.block.y, 2u);
  EXPECT_EQ(first.block.z, 3u);
}

TEST(StoreLog, SaysItInWords) {
  LastStore store;
  store.place = {"kernels/cuda/merge.cuh", 80, 0};
  store.kernel = "merge_kernel (kernels/cuda/merge.cuh:56)";
  store.launch = 3;
  store.block = {0, 1, 0};
  store.thread = 7;
  EXPECT_EQ(store.words(),
            "kernels/cuda/merge.cuh:80 by thread 7 of block (0,1,0) of merge_kernel "
            "(kernels/cuda/merge.cuh:56), launch 3");
  store.kernel.clear();
  EXPECT_EQ(store.words(), "kernels/cuda/merge.cuh:80 by thread 7 of block (0,1,0), launch 3");
}

TEST(StoreLog, FollowsWhatAThreadHadReadOfScratch) {
  StoreLog log;
  log.begin_launch(nullptr, {2, 1, 1});
  const StoreLog::Record one{.code = 64, .site = {}, .block = 0, .thread = 7};
  const std::uint32_t partial = log.number(one);
  EXPECT_EQ(log.source_of(partial), 0u);
  log.begin_launch(nullptr, {2, 1, 1});
  EXPECT_EQ(log.source_of(log.number(one)), 0u);  // What it read in another launch is forgotten.
  log.note_read(0, 7, partial);
  EXPECT_EQ(log.source_of(log.number(one)), partial);
  const StoreLog::Record later{.code = 64, .site = {}, .block = 1, .thread = 7};
  EXPECT_EQ(log.source_of(log.number(later)), 0u);  // And in another block.
}

TEST(StoreLog, NamesTheSourceOfWhatGoesThroughScratchUnderEveryOrder) {
  for (const Order order : kAllOrders) {
    Recorded recorded(order);
    recorded.run("through_scratch");
    const std::string words = recorded.test.memory.last_store_words(recorded.buffers.output + 5);
    const std::string place = std::string(kFile) + ":";
    EXPECT_EQ(words.find("stored at " + place + std::to_string(line_of(0)) + " by thread 5 of "),
              0u)
        << words;
    EXPECT_NE(words.find(", after it had read what was stored at " + place +
                         std::to_string(line_of(1)) + " by thread 58 of "),
              std::string::npos)
        << words;
    EXPECT_EQ(recorded.test.memory.last_store_words(recorded.buffers.cache), "stored by no kernel");
  }
}

template <class T>
void named_function(T) {}

TEST(Symbols, AFunctionHasItsBareNameAndItsLine) {
  const auto address = [](auto* function) { return reinterpret_cast<const void*>(function); };
  void (*const function)(int) = named_function<int>;
  EXPECT_EQ(function_name(address(function)), "named_function");
  EXPECT_EQ(function_name(address(&right_kernels)), "right_kernels");
  EXPECT_EQ(function_name(nullptr), "");
  const SourcePlace place = place_of_function(address(&right_kernels));
  EXPECT_EQ(place.file, kFile);
  EXPECT_GT(place.line, 0);
  EXPECT_EQ(to_string(place_of_function(nullptr)), "an unknown place");
}

}  // namespace
}  // namespace kvcheck::kernels::simt
