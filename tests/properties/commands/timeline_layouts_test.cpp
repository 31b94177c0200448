// The layout table beside block: pictures, exact depths and draft capacities against buffers that
// are moved row by row.
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/layout.h"
#include "properties/commands/timeline_command.h"
#include "tests/model/simulated_buffer.h"
#include "tests/properties/commands/run_timeline.h"

namespace kvcheck::properties {
namespace {

using model::CacheSpec;
using model::LayoutKind;
using model::Rows;
using nlohmann::json;

TimelineOptions options(const CacheSpec& cache, std::string steps = "") {
  TimelineOptions o;
  o.layout = to_string(cache.layout);
  o.capacity = cache.capacity;
  o.window = cache.window_size.value_or(0);
  o.sinks = cache.sink_tokens;
  o.page_size = cache.page_size;
  o.steps = std::move(steps);
  return o;
}

json parsed(TimelineOptions o) {
  o.json = true;
  const Outcome result = run(o);
  EXPECT_EQ(result.code, 0) << result.err;
  return json::parse(result.out);
}

/// Evicting layouts of small sizes, each at its least capacity and with up to `slack` more.
std::vector<CacheSpec> caches(std::int64_t slack) {
  std::vector<CacheSpec> out;
  const auto add = [&](CacheSpec cache) {
    const std::int64_t least = least_capacity(cache);
    const std::int64_t stride = std::max<std::int64_t>(1, cache.page_size);
    for (cache.capacity = least; cache.capacity <= least + slack; cache.capacity += stride) {
      out.push_back(cache);
    }
  };
  for (std::int64_t window = 1; window <= 5; ++window) {
    add({LayoutKind::block, 0, window});
    add({LayoutKind::min_overflow, 0, window});
    add({LayoutKind::ring, 0, window});
    for (const std::int64_t sinks : {1, 3}) add({LayoutKind::sinks, 0, window, sinks});
    for (const std::int64_t page : {1, 2, 3, 5}) add({LayoutKind::paged, 0, window, 0, page});
  }
  return out;
}

/// Buffers by length; block eviction, which SimulatedBuffer leaves out, by its own definition.
std::vector<Rows> states(const CacheSpec& cache, std::int64_t longest) {
  std::vector<Rows> out;
  if (cache.layout != LayoutKind::block) {
    for (const auto& buffer : simulate(cache, longest)) out.push_back(buffer.rows());
    return out;
  }
  Rows rows;
  for (std::int64_t position = 0; position <= longest; ++position) {
    out.push_back(rows);
    out.back().resize(static_cast<std::size_t>(cache.capacity), model::kNoPosition);
    if (static_cast<std::int64_t>(rows.size()) == cache.capacity) {
      rows.erase(rows.begin(), rows.begin() + cache.capacity - *cache.window_size + 1);
    }
    rows.push_back(position);
  }
  return out;
}

bool exact(const CacheSpec& cache, const std::vector<Rows>& rows, std::int64_t length,
           std::int64_t tokens) {
  const std::int64_t shorter = length - tokens;
  const std::int64_t oldest = cache.layout == LayoutKind::ring ? shorter - *cache.window_size : 0;
  return model::in_place(rows[static_cast<std::size_t>(length)],
                         rows[static_cast<std::size_t>(shorter)], oldest);
}

TEST(TimelineLayouts, BufferShowsTheRowsOfTheSimulation) {
  for (const CacheSpec& cache : caches(6)) {
    const json table = parsed(options(cache));
    const auto rows = states(cache, static_cast<std::int64_t>(table["rows"].size()));
    for (const json& row : table["rows"]) {
      const Rows& expected = rows[row["T"].get<std::size_t>()];
      ASSERT_EQ(row["buffer"].size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(row["buffer"][i], expected[i] == model::kNoPosition ? json() : json(expected[i]))
            << words(cache) << " T=" << row["T"] << " row " << i;
      }
      ASSERT_EQ(row["resident"].get<std::int64_t>() + row["free_rows"].get<std::int64_t>(),
                cache.capacity);
    }
  }
}

TEST(TimelineLayouts, ExactNowNamesEveryExactDepth) {
  for (const CacheSpec& cache : caches(6)) {
    const auto rows = states(cache, 30);
    for (std::int64_t length = 1; length <= 30; ++length) {
      const json now = parsed(options(cache, std::to_string(length)))["exact_now"];
      ASSERT_EQ(now["T"], length);
      for (std::int64_t k = 1; k <= length; ++k) {
        const bool claimed = k <= now["up_to"].get<std::int64_t>() ||
                             (!now["from"].is_null() && k >= now["from"].get<std::int64_t>());
        // The contract of block calls the drop of everything inexact by its formula.
        if (cache.layout == LayoutKind::block && k == length) continue;
        ASSERT_EQ(claimed, exact(cache, rows, length, k))
            << words(cache) << " T=" << length << " k=" << k;
      }
    }
  }
}

TEST(TimelineLayouts, CapacitiesForDraftsAndStepsAreTheSmallestThatServe) {
  for (const CacheSpec& cache : caches(11)) {
    if (cache.layout == LayoutKind::block) continue;  // See timeline_command_test.cpp.
    constexpr std::int64_t kLongest = 70;
    const auto buffers = simulate(cache, kLongest);
    const auto rows = states(cache, kLongest);
    for (const json& draft : parsed(options(cache))["drafts"]) {
      const std::int64_t tokens = draft["tokens"];
      bool always = true, unstaged = true;
      for (std::int64_t past = 0; past + tokens <= kLongest; ++past) {
        for (std::int64_t k = 1; k <= tokens; ++k) {
          always = always && exact(cache, rows, past + tokens, k);
        }
        unstaged =
            unstaged && !needs_staging(cache, buffers[static_cast<std::size_t>(past)],
                                       rows[static_cast<std::size_t>(past + tokens)], past, tokens);
      }
      const auto serves = [&](const char* name) {
        return !draft[name].is_null() && cache.capacity >= draft[name].get<std::int64_t>();
      };
      ASSERT_EQ(serves("capacity_for_drafts"), always && unstaged)
          << words(cache) << " k=" << tokens;
      ASSERT_EQ(serves("capacity_without_staging"), unstaged) << words(cache) << " S=" << tokens;
    }
  }
}

TEST(TimelineLayouts, ARingAfterARollbackShowsItsGap) {
  const json table = parsed(options({LayoutKind::ring, 8, 4}, "10,-3,5"));
  EXPECT_EQ(table["rows"][1]["buffer"], json({nullptr, nullptr, 2, 3, 4, 5, 6, nullptr}));
  EXPECT_EQ(table["rows"][1]["resident"], 5);
  EXPECT_EQ(table["rows"][1]["max_exact_rollback"], 1);
  EXPECT_EQ(table["rows"][2]["buffer"], json({8, 9, 10, 11, 4, 5, 6, 7}));
  const std::string text = run(options({LayoutKind::ring, 8, 4}, "10,-3,5")).out;
  EXPECT_NE(text.find(".  .  2  3  4  5  6  ."), std::string::npos) << text;
  EXPECT_NE(text.find("Exact now, at T = 12: rollbacks of up to 4, and one of all 12."),
            std::string::npos);
}

TEST(TimelineLayouts, TextAnswersForEveryLayout) {
  const auto says = [](const CacheSpec& cache, const std::string& part, std::string steps = "") {
    const std::string text = run(options(cache, std::move(steps))).out;
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nnot in\n" << text;
  };
  says({LayoutKind::block, 6, 4}, "Exact now, at T = 12: rollbacks of up to 2.", "12");
  says({LayoutKind::block, 6, 4}, "Capacity >= window + step - 1 is not enough");
  says({LayoutKind::ring, 6, 4}, "Capacity >= window + k = 4 + k.");
  says({LayoutKind::min_overflow, 6, 4}, "Exact now, at T = 9: no rollback but one of all 9.", "9");
  says({LayoutKind::min_overflow, 6, 4}, "never staged? None, unless");
  says({LayoutKind::sinks, 6, 4, 2}, "no rollback but those of 7 or more, which leave sinks", "9");
  says({LayoutKind::sinks, 6, 4, 2}, "capacity >= sinks + window + step - 1");
  says({LayoutKind::paged, 6, 4, 0, 3}, "k = 2: at 1 of every 3 lengths");
  // W + S - 1 = 5 neighbours touch three pages of 3 where they begin with the last row of one.
  says({LayoutKind::paged, 6, 4, 0, 3}, "S = 2 stages if capacity >= 9");
  says({LayoutKind::paged, 6, {}, 0, 3}, "Nothing is evicted");
  says({LayoutKind::full, 0, {}}, "Exact now, at T = 5: a rollback of any depth.", "5");
}

TEST(TimelineLayouts, LargeBuffersAreBarsWithWrapAndSinks) {
  const std::string ring = run(options({LayoutKind::ring, 400, 100}, "500")).out;
  // Rows 0-99 hold 400-499, the window; rows 100-399 hold 100-399.
  EXPECT_NE(ring.find(std::string(10, '#') + std::string(30, '+')), std::string::npos) << ring;
  const std::string sinks = run(options({LayoutKind::sinks, 400, 200, 100}, "300")).out;
  EXPECT_NE(sinks.find(std::string(10, 'S') + std::string(20, '#') + std::string(10, '.')),
            std::string::npos)
      << sinks;
  EXPECT_NE(sinks.find("Rows: # the window, + older, S sinks, . free."), std::string::npos);
}

TEST(TimelineLayouts, RefusesSizesThatDoNotFitTheLayout) {
  const auto refused = [](const CacheSpec& cache, const std::string& message) {
    const Outcome result = run(options(cache));
    EXPECT_EQ(result.code, 254) << message;
    EXPECT_EQ(result.err, "timeline: " + message + "\n");
  };
  refused({LayoutKind::ring, 6, 7},
          "--window = 7: must be at most the capacity (6); lower it or raise --capacity");
  refused({LayoutKind::ring, 6, {}}, "--window = 0: must be between 1 and 2147483647");
  refused({LayoutKind::sinks, 5, 4, 2}, "--capacity = 5: must be at least --sinks + --window (6)");
  refused({LayoutKind::sinks, 5, 4}, "--sinks = 0: must be between 1 and 2147483647");
  refused({LayoutKind::ring, 6, 4, 2}, "--sinks = 2: belongs to layout sinks; leave it out");
  refused({LayoutKind::block, 6, 4, 0, 2},
          "--page-size = 2: belongs to layout paged; leave it out");
  refused({LayoutKind::paged, 6, 4}, "--page-size = 0: must be between 1 and 2147483647");
  refused({LayoutKind::paged, 7, 4, 0, 3}, "--capacity = 7: must be a multiple of --page-size (3)");
  refused({LayoutKind::paged, 4, 4, 0, 4},
          "--capacity = 4: must be at least 8: a window of 4 touches that many rows of pages");
}

}  // namespace
}  // namespace kvcheck::properties
