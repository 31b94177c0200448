// The layout table, and every statement that it makes about drafts, against a simulation.
#include "properties/commands/timeline_command.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/properties/commands/run_timeline.h"

namespace kvcheck::properties {
namespace {

using nlohmann::json;

TimelineOptions block(std::int64_t capacity, std::int64_t window, std::string steps = "") {
  TimelineOptions options;
  options.capacity = capacity;
  options.window = window;
  options.steps = std::move(steps);
  return options;
}

json parsed(TimelineOptions options) {
  options.json = true;
  const Outcome result = run(options);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
}

std::vector<std::string> lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// Positions in the buffer after T tokens, for every T: a full buffer first drops its oldest G.
class Buffer {
 public:
  Buffer(std::int64_t capacity, std::int64_t window, std::int64_t longest)
      : capacity_(capacity), window_(window) {
    std::vector<std::int64_t> rows;
    states_.push_back(rows);
    for (std::int64_t position = 0; position < longest; ++position) {
      if (static_cast<std::int64_t>(rows.size()) == capacity) {
        rows.erase(rows.begin(), rows.begin() + (capacity - window + 1));
      }
      rows.push_back(position);
      states_.push_back(rows);
    }
  }

  const std::vector<std::int64_t>& rows(std::int64_t length) const {
    return states_[static_cast<std::size_t>(length)];
  }
  std::int64_t first(std::int64_t length) const {
    return rows(length).empty() ? 0 : rows(length).front();
  }
  std::int64_t free(std::int64_t length) const {
    return capacity_ - static_cast<std::int64_t>(rows(length).size());
  }
  /// The first query of the step reads a position that the step evicts.
  bool stages(std::int64_t past, std::int64_t tokens) const {
    return std::max<std::int64_t>(0, past - window_ + 1) < first(past + tokens);
  }
  /// Dropping any number of tokens up to `most` leaves the buffer of the shorter length.
  bool exact_up_to(std::int64_t length, std::int64_t most) const {
    for (std::int64_t k = 1; k <= most; ++k) {
      auto kept = rows(length);
      if (static_cast<std::int64_t>(kept.size()) < k) return false;
      kept.resize(kept.size() - static_cast<std::size_t>(k));
      if (kept != rows(length - k)) return false;
    }
    return true;
  }

 private:
  std::int64_t capacity_, window_;
  std::vector<std::vector<std::int64_t>> states_;
};

/// check(C, W, buffer) for every layout up to C = 12, with room for lengths up to 3 C + 30.
template <class Check>
void for_each_buffer(Check check) {
  for (std::int64_t capacity = 1; capacity <= 12; ++capacity) {
    for (std::int64_t window = 1; window <= capacity; ++window) {
      check(capacity, window, Buffer(capacity, window, 3 * capacity + 60));
    }
  }
}

TEST(TimelineCommand, GivesTheWorkedTableOfCapacity6Window4) {
  const json table = parsed(block(6, 4));
  EXPECT_EQ(table["capacity"], 6);
  EXPECT_EQ(table["window"], 4);
  EXPECT_EQ(table["layout"], "block");
  EXPECT_EQ(table["block"], 3);
  const std::int64_t resident[] = {1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4};
  const std::int64_t first[] = {0, 0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 12};
  const std::int64_t exact[] = {1, 2, 3, 4, 5, 6, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
  ASSERT_EQ(table["rows"].size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) {
    const json& row = table["rows"][i];
    EXPECT_EQ(row["T"], i + 1);
    EXPECT_EQ(row["resident"], resident[i]) << i;
    EXPECT_EQ(row["first_position"], first[i]) << i;
    EXPECT_EQ(row["evicts"], i >= 6 && i % 3 == 0 ? 3 : 0) << i;
    EXPECT_EQ(row["max_exact_rollback"], exact[i]) << i;
    EXPECT_EQ(row["free_rows"], 6 - resident[i]) << i;
    EXPECT_EQ(row["stages"], false) << i;
    EXPECT_EQ(row["defined"], true) << i;
    EXPECT_EQ(row["append"], 1) << i;
  }
}

TEST(TimelineCommand, AgreesWithTheSimulationForEverySmallLayout) {
  for_each_buffer([](std::int64_t capacity, std::int64_t window, const Buffer& buffer) {
    const json table = parsed(block(capacity, window));
    const std::int64_t rows =
        std::max<std::int64_t>(16, capacity + 3 * (capacity - window + 1) + 1);
    ASSERT_EQ(table["rows"].size(), static_cast<std::size_t>(rows));
    for (const json& row : table["rows"]) {
      const std::int64_t length = row["T"];
      ASSERT_EQ(row["resident"], buffer.rows(length).size());
      ASSERT_EQ(row["first_position"], buffer.first(length));
      ASSERT_EQ(row["evicts"], buffer.first(length) - buffer.first(length - 1));
      ASSERT_EQ(row["free_rows"], buffer.free(length));
      const std::int64_t deepest = row["max_exact_rollback"];
      ASSERT_TRUE(buffer.exact_up_to(length, deepest));
      ASSERT_TRUE(deepest == length || !buffer.exact_up_to(length, deepest + 1));
    }
  });
}

TEST(TimelineCommand, CountsTheLengthsWhereADraftIsExact) {
  for_each_buffer([](std::int64_t capacity, std::int64_t window, const Buffer& buffer) {
    const json table = parsed(block(capacity, window));
    const std::int64_t period = capacity - window + 1;
    ASSERT_EQ(table["drafts"].size(), static_cast<std::size_t>(period));
    for (const json& draft : table["drafts"]) {
      const std::int64_t tokens = draft["tokens"];
      std::int64_t exact = 0;
      for (std::int64_t past = capacity; past < capacity + period; ++past) {
        const bool good = buffer.exact_up_to(past + tokens, tokens);
        exact += good;
        ASSERT_FALSE(good && buffer.stages(past, tokens));
      }
      ASSERT_EQ(draft["of_lengths"], period);
      ASSERT_EQ(draft["exact_lengths"], exact) << capacity << " " << window << " " << tokens;
    }
  });
}

TEST(DraftFacts, ADraftIsExactWhereItFitsTheFreeRowsAndThenNeverStages) {
  for_each_buffer([](std::int64_t capacity, std::int64_t window, const Buffer& buffer) {
    for (std::int64_t past = 0; past <= capacity + 30; ++past) {
      for (std::int64_t tokens = 1; tokens <= 2 * capacity; ++tokens) {
        const bool fits = tokens <= buffer.free(past);
        ASSERT_EQ(buffer.exact_up_to(past + tokens, tokens), fits)
            << "C=" << capacity << " W=" << window << " P=" << past << " S=" << tokens;
        ASSERT_FALSE(fits && buffer.stages(past, tokens));
      }
    }
  });
}

TEST(DraftFacts, AllButTheFirstTokenCanBeDroppedExactlyWhereTheStepDoesNotStage) {
  for_each_buffer([](std::int64_t capacity, std::int64_t window, const Buffer& buffer) {
    const std::int64_t period = capacity - window + 1;
    for (std::int64_t past = 0; past <= capacity + 30; ++past) {
      for (std::int64_t tokens = 1; tokens <= 2 * capacity; ++tokens) {
        const bool unstaged = !buffer.stages(past, tokens);
        ASSERT_EQ(tokens <= buffer.free(past) || (buffer.free(past) == 0 && tokens <= period),
                  unstaged)
            << "C=" << capacity << " W=" << window << " P=" << past << " S=" << tokens;
        ASSERT_EQ(buffer.exact_up_to(past + tokens, tokens - 1), unstaged)
            << "C=" << capacity << " W=" << window << " P=" << past << " S=" << tokens;
      }
    }
  });
}

TEST(DraftFacts, EveryCapacityHasALengthWhereAStepOfTwoOrMoreStages) {
  for_each_buffer([](std::int64_t capacity, std::int64_t window, const Buffer& buffer) {
    for (std::int64_t tokens = 2; tokens <= capacity + 1; ++tokens) {
      // The step that ends at T = C + 1, where the eviction leaves exactly the window.
      ASSERT_TRUE(buffer.stages(capacity + 1 - tokens, tokens))
          << "C=" << capacity << " W=" << window << " S=" << tokens;
      ASSERT_EQ(buffer.rows(capacity + 1).size(), static_cast<std::size_t>(window));
    }
  });
}

TEST(DraftFacts, AlignedStepsOfOneSizeNeverStage) {
  std::int64_t evicting = 0;
  for (std::int64_t window = 1; window <= 8; ++window) {
    for (std::int64_t tokens = 1; tokens <= 6; ++tokens) {
      for (std::int64_t n = 1; n <= 4; ++n) {
        const std::int64_t capacity = window - 1 + n * tokens;
        const Buffer buffer(capacity, window, 120);
        for (std::int64_t past = (window - 1) % tokens; past <= 100; past += tokens) {
          ASSERT_FALSE(buffer.stages(past, tokens)) << window << " " << tokens << " " << n;
          evicting += buffer.first(past + tokens) > buffer.first(past);
        }
        const json table = parsed(block(capacity, window));
        // A draft of that size is exact at all but one of n lengths.
        if (tokens <= 16) {
          const json& draft = table["drafts"][static_cast<std::size_t>(tokens - 1)];
          ASSERT_EQ(draft["exact_lengths"].get<std::int64_t>() * n,
                    draft["of_lengths"].get<std::int64_t>() * (n - 1));
        }
      }
    }
  }
  EXPECT_GT(evicting, 1000);
}

TEST(TimelineCommand, MarksStagedStepsAndInexactRollbacks) {
  const json table = parsed(block(6, 4, "5,2, 5 ,-2,+1,-4,1"));
  const json& rows = table["rows"];
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[1]["T"], 7);
  EXPECT_EQ(rows[1]["append"], 2);
  EXPECT_EQ(rows[1]["stages"], true);
  EXPECT_EQ(rows[1]["evicts"], 3);
  EXPECT_EQ(rows[3]["T"], 10);
  EXPECT_EQ(rows[3]["rollback"], 2);
  EXPECT_FALSE(rows[3].contains("append"));
  EXPECT_EQ(rows[3]["stages"], false);
  EXPECT_EQ(rows[3]["defined"], true);
  EXPECT_EQ(rows[4]["T"], 11);
  EXPECT_EQ(rows[5]["defined"], false);
  EXPECT_NE(rows[5]["why"].get<std::string>().find("rollback of 4 at T=11 is not exact"),
            std::string::npos);
  EXPECT_EQ(rows[6]["defined"], false);
  EXPECT_EQ(rows[6]["why"], rows[5]["why"]);

  const auto text = lines(run(block(6, 4, "5,2,5,-3,1")).out);
  const auto line = [&](const std::string& start) {
    for (const auto& one : text) {
      if (one.rfind(start, 0) == 0) return one;
    }
    return std::string();
  };
  EXPECT_NE(line("append 2").find("staged"), std::string::npos);
  EXPECT_EQ(line("append 5").find("NOT exact"), std::string::npos);
  EXPECT_NE(line("rollback 3").find("NOT exact"), std::string::npos);
  EXPECT_NE(line("append 1").find("not defined"), std::string::npos);
  EXPECT_NE(line("The contract defines no rows after this").find("rollback of 3 at T=12"),
            std::string::npos);
}

TEST(TimelineCommand, TakesLengthsUpToTheLimitAsSteps) {
  const json table = parsed(block(6, 4, "2147483646,1,-2147483647"));
  EXPECT_EQ(table["rows"][1]["T"], 2147483647);
  EXPECT_EQ(table["rows"][1]["resident"], 4);
  EXPECT_EQ(table["rows"][1]["first_position"], 2147483643);
  EXPECT_EQ(table["rows"][2]["defined"], false);
  const json wide = parsed(block(2147483647, 1, "2147483647"));
  EXPECT_EQ(wide["rows"][0]["resident"], 2147483647);
  EXPECT_EQ(wide["rows"][0]["max_exact_rollback"], 2147483647);
  EXPECT_EQ(run(block(2147483647, 1, "2147483647")).code, 0);
}

TEST(TimelineCommand, DrawsTheTable) {
  const Outcome result = run(block(6, 4));
  EXPECT_EQ(result.code, 0);
  const auto text = lines(result.out);
  ASSERT_GT(text.size(), 20u);
  EXPECT_EQ(text[0],
            "layout block, capacity C = 6, window W = 4, evicts blocks of G = C - W + 1 = 3");
  EXPECT_NE(text[2].find("max exact rollback"), std::string::npos);
  // One line per T: T, L, first, evicts, exact rollback, free rows, positions by row.
  std::istringstream seventh(text[2 + 7]);
  std::vector<std::string> cells;
  for (std::string cell; seventh >> cell;) cells.push_back(cell);
  EXPECT_EQ(cells, (std::vector<std::string>{"7", "4", "3", "3", "(0-2)", "0", "2", "3", "4", "5",
                                             "6", ".", "."}));
  EXPECT_NE(result.out.find("k = 2: at 1 of every 3 lengths"), std::string::npos);
  EXPECT_NE(result.out.find("k >= 3: at none"), std::string::npos);
}

TEST(TimelineCommand, DrawsLargeBuffersAsBarsAndLeavesOutPlainGrowth) {
  const Outcome result = run(block(400, 300));
  const auto text = lines(result.out);
  EXPECT_LT(text.size(), 60u);
  const auto find = [&](const std::string& length) {
    for (const auto& one : text) {
      std::istringstream in(one);
      std::string first;
      if (in >> first && first == length) return one;
    }
    return std::string();
  };
  EXPECT_EQ(find("200"), "");
  EXPECT_NE(find("400").find("++++++++++" + std::string(30, '#')), std::string::npos);
  EXPECT_NE(find("401").find(" " + std::string(30, '#') + std::string(10, '.')), std::string::npos);
  EXPECT_NE(find("401").find("101 (0-100)"), std::string::npos);
  EXPECT_NE(result.out.find("Rows: # the window, + older, . free."), std::string::npos);
}

TEST(TimelineCommand, FullLayoutNeverEvicts) {
  TimelineOptions options;
  options.layout = "full";
  const json endless = parsed(options);
  EXPECT_EQ(endless["rows"].size(), 16u);
  EXPECT_TRUE(endless["rows"][3]["free_rows"].is_null());
  EXPECT_TRUE(endless["block"].is_null());
  EXPECT_FALSE(endless.contains("drafts"));
  options.capacity = 5;
  const json bounded = parsed(options);
  EXPECT_EQ(bounded["rows"].size(), 5u);
  EXPECT_EQ(bounded["rows"][3]["free_rows"], 1);
  EXPECT_EQ(bounded["rows"][3]["max_exact_rollback"], 4);
  EXPECT_NE(run(options).out.find("Nothing is evicted"), std::string::npos);
}

TEST(TimelineCommand, UntilSetsTheLastLength) {
  TimelineOptions options = block(6, 4);
  options.until = 3;
  EXPECT_EQ(parsed(options)["rows"].size(), 3u);
}

TEST(TimelineCommand, WithoutSlackItSaysThatNoDraftIsExact) {
  EXPECT_NE(run(block(4, 4)).out.find("with C = W, as here, no draft is exact"), std::string::npos);
  EXPECT_EQ(run(block(5, 4)).out.find("with C = W, as here"), std::string::npos);
}

TEST(TimelineCommand, RefusesBadOptionsWithOneMessage) {
  struct Bad {
    TimelineOptions options;
    const char* message;
  };
  TimelineOptions circle = block(6, 4);
  circle.layout = "circle";
  TimelineOptions late = block(6, 4);
  late.until = 100001;
  TimelineOptions negative = block(6, 4);
  negative.until = -1;
  TimelineOptions overflow = block(5, 0, "3,3");
  overflow.layout = "full";
  TimelineOptions beyond = block(5, 0);
  beyond.layout = "full";
  beyond.until = 6;
  const Bad cases[] = {
      {block(0, 0), "--capacity = 0: must be between 1 and 2147483647"},
      {block(2147483648, 4), "--capacity = 2147483648: must be between 1"},
      {block(6, 0), "--window = 0: must be between 1 and"},
      {block(6, -1), "--window = -1: must be between 1 and"},
      {block(6, 7), "--window = 7: must be at most the capacity (6); lower it or raise --capacity"},
      {circle, "--layout = \"circle\": must be full, block, min_overflow, ring, sinks or paged"},
      {late, "--until = 100001: must be between 1 and 100000"},
      {negative, "--until = -1: must be between 1"},
      {block(200000, 4),
       "--until = 799992: must be between 1 and 100000; larger lengths can be "
       "given with --steps"},
      {block(6, 4, "3,x"), "--steps = \"x\": must be whole numbers with commas between"},
      {block(6, 4, "3,"), "--steps = \"\": must be whole numbers"},
      {block(6, 4, "3;4"), "--steps = \"3;4\": must be whole numbers"},
      {block(6, 4, "+-3"), "--steps = \"+-3\": must be whole numbers"},
      {block(6, 4, "1.5"), "--steps = \"1.5\": must be whole numbers"},
      {block(6, 4, "0"), "--steps = \"0\": must be from 1 to 2147483647 tokens"},
      {block(6, 4, "99999999999999999999"), "must be from 1 to 2147483647 tokens"},
      {block(6, 4, "3,-4"), "--steps = -4: drops more than the 3 tokens that the sequence holds"},
      {block(6, 4, "2147483647,1"), "--steps = 1: makes a length of 2147483648; at most"},
      {overflow, "--steps = 3: makes a length of 6; at most 5 fit"},
      {beyond, "--until = 6: must be at most the capacity (5) of layout full"},
  };
  for (const Bad& bad : cases) {
    const Outcome result = run(bad.options);
    EXPECT_EQ(result.code, 254) << bad.message;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("timeline: ", 0), 0u) << result.err;
    EXPECT_NE(result.err.find(bad.message), std::string::npos)
        << "wanted " << bad.message << "\ngot " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
  }
}

}  // namespace
}  // namespace kvcheck::properties
