// Which sizes every cache layout takes, and how normalise finds the nearest.
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "model/scenario.h"

namespace kvcheck::model {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

TEST(CacheRules, NameWhatALayoutLacks) {
  const auto refusals = [](CacheSpec cache) {
    Scenario s;
    s.cache = cache;
    s.steps = {Append{{5}, {5}, 0}};
    std::string text;
    for (const Refusal& refusal : validate(s)) text += refusal.message() + "\n";
    return text;
  };
  const auto expect = [&](CacheSpec cache, const std::string& text) {
    EXPECT_EQ(refusals(cache), text.empty() ? "" : text + "\n");
  };
  using enum LayoutKind;
  expect({ring, 6, 4}, "");
  expect({min_overflow, 4, 4}, "");
  expect({sinks, 6, 4, 2}, "");
  expect({sinks, 4, 4, 0}, "");
  expect({paged, 8, 5, 0, 4}, "");
  expect({paged, 8, {}, 0, 4}, "");
  expect({ring, 6, {}}, "cache.window_size = absent: must be given for layout ring");
  expect({min_overflow, 3, 4},
         "cache.capacity = 3: must be at least window_size (4); raise it or lower the window");
  expect({sinks, 5, 4, 2},
         "cache.capacity = 5: must be at least sink_tokens + window_size (6); raise it or lower "
         "one of them");
  expect({sinks, 5, 4, -1}, "cache.sink_tokens = -1: must be between 0 and 2147483647");
  expect({ring, 6, 4, 2}, "cache.sink_tokens = 2: belongs to layout sinks; leave it out for ring");
  expect({block, 6, 4, 0, 3},
         "cache.page_size = 3: belongs to layout paged; leave it out for block");
  expect({paged, 8, 5, 0, 0},
         "cache.page_size = 0: must be between 1 and 2147483647 for layout paged");
  expect({paged, 10, 5, 0, 4}, "cache.capacity = 10: must be a multiple of page_size (4)");
  // A window of 6 touches three pages of 4 where it begins with the last row of one.
  expect({paged, 8, 6, 0, 4},
         "cache.capacity = 8: must be at least the pages that a window_size (6) touches at any "
         "alignment (12 rows); raise it or lower page_size");
  expect({paged, 0, {}, 0, 4},
         "cache.capacity = 0: must be at least the pages that one token touches at any alignment "
         "(4 rows); raise it or lower page_size");
  expect({paged, 4, {}, 0, 4},
         "steps[0] = 5: the length must stay within cache.capacity (4); raise it");
  EXPECT_NE(refusals({ring, 6, 0}).find("must be at least 1 for layout ring"), std::string::npos);
  EXPECT_NE(refusals({sinks, kMaxLength, kHuge, kHuge}).find("cache.sink_tokens"),
            std::string::npos);
  EXPECT_NE(refusals({paged, kMaxLength, kHuge, 0, kHuge}).find("cache.page_size"),
            std::string::npos);
}

TEST(CacheRules, AreKeptByRaisingTheCapacity) {
  const auto repaired = [](CacheSpec cache) {
    Scenario s;
    s.cache = cache;
    s.steps = {Append{{9}, {9}, 0}};
    return normalise(s).cache;
  };
  EXPECT_EQ(repaired({LayoutKind::ring, 2, 5}), (CacheSpec{LayoutKind::ring, 5, 5}));
  EXPECT_EQ(repaired({LayoutKind::min_overflow, 7, {}}),
            (CacheSpec{LayoutKind::min_overflow, 7, 7}));
  EXPECT_EQ(repaired({LayoutKind::sinks, 2, 5, 3}), (CacheSpec{LayoutKind::sinks, 8, 5, 3}));
  EXPECT_EQ(repaired({LayoutKind::sinks, 7, {}, 3}), (CacheSpec{LayoutKind::sinks, 7, 4, 3}));
  // A window of 6 touches three pages of 4 where it begins with the last row of one.
  EXPECT_EQ(repaired({LayoutKind::paged, 1, 6, 0, 4}), (CacheSpec{LayoutKind::paged, 12, 6, 0, 4}));
  EXPECT_EQ(repaired({LayoutKind::paged, 13, 6, 0, 4}),
            (CacheSpec{LayoutKind::paged, 16, 6, 0, 4}));
  // Without a window pages keep every token.
  EXPECT_EQ(repaired({LayoutKind::paged, 4, {}, 0, 4}),
            (CacheSpec{LayoutKind::paged, 12, {}, 0, 4}));
  EXPECT_EQ(repaired({LayoutKind::ring, 6, 4, 2, 3}), (CacheSpec{LayoutKind::ring, 6, 4}));
}

}  // namespace
}  // namespace kvcheck::model
