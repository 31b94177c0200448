// What long contexts come with: each situation that a fault needs is drawn often enough that a few
// hundred scenarios have it several times.
#include "properties/step_draw.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/Random.h>
#include <rapidcheck/Shrinkable.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/timeline.h"
#include "properties/generator.h"
#include "tests/properties/model_target.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

constexpr std::int64_t kContext = 4096;

/// Calls `each(append, length)` with every append and the tokens of one entry before and after it.
void walk(const Scenario& s, std::size_t entry,
          const std::function<void(const Append&, std::int64_t, std::int64_t)>& each) {
  std::int64_t length = 0;
  for (const model::Step& step : s.steps) {
    if (const auto* past = std::get_if<Past>(&step)) {
      length = past->tokens[entry];
    } else if (const auto* rollback = std::get_if<Rollback>(&step)) {
      length -= rollback->tokens[entry];
    } else {
      const auto& append = std::get<Append>(step);
      each(append, length, length + append.tokens[entry]);
      length += append.tokens[entry];
    }
  }
}

/// Whether some append of some entry is as `wanted(append, entry, before, after)` says.
template <class Wanted>
bool any_append(const Scenario& s, Wanted&& wanted) {
  bool found = false;
  for (std::size_t b = 0; b < static_cast<std::size_t>(s.batch); ++b) {
    walk(s, b, [&](const Append& append, std::int64_t before, std::int64_t after) {
      found = found || wanted(append, b, before, after);
    });
  }
  return found;
}

bool past_family(const Scenario& s) {
  return s.op == model::Operator::attention && !s.nonpad_kv_seqlen;
}

struct Situation {
  std::string name;
  double least_percent;
  std::function<bool(const Scenario&)> holds;
};

const std::vector<Situation>& situations() {
  static const std::vector<Situation> all = {
      {"causal queries before the first key of a short entry", 1.5,
       [](const Scenario& s) {
         return s.nonpad_kv_seqlen && s.causal &&
                any_append(s, [](const Append& append, std::size_t b, auto, std::int64_t after) {
                  return after > 0 && after < append.queries[b];
                });
       }},
      {"queries of an entry without a key", 1,
       [](const Scenario& s) {
         return s.nonpad_kv_seqlen &&
                any_append(s, [](const Append& append, std::size_t b, auto, std::int64_t after) {
                  return after == 0 && append.queries[b] > 0;
                });
       }},
      {"keys to the right of a window that ends after its query", 1.5,
       [](const Scenario& s) {
         if (!s.right_window_size || s.causal) return false;
         return any_append(
             s, [&](const Append& append, std::size_t b, std::int64_t before, std::int64_t after) {
               const std::int64_t first = s.nonpad_kv_seqlen ? after - append.queries[b] : before;
               return first + *s.right_window_size < after - 1;
             });
       }},
      {"columns that a mask lacks", 2,
       [](const Scenario& s) { return past_family(s) && s.mask.missing_columns > 0; }},
      {"a mask of rank 3 by head beside other entries", 3,
       [](const Scenario& s) {
         return s.mask.kind != model::MaskKind::none && s.mask.rank == 3 && !s.mask.one_head &&
                s.batch > 1;
       }},
      {"one query of several tokens behind a past", 3,
       [](const Scenario& s) {
         return past_family(s) && s.causal &&
                any_append(s, [](const Append& append, std::size_t b, std::int64_t before, auto) {
                  return before > 0 && append.queries[b] == 1 && append.tokens[b] > 1;
                });
       }},
      {"queries at the beginning of a long append", 2,
       [](const Scenario& s) {
         return past_family(s) &&
                any_append(s, [](const Append& append, std::size_t b, std::int64_t before, auto) {
                  return before == 0 && append.tokens[b] > kContext / 2 && append.queries[b] > 0;
                });
       }},
      {"a long window of attention", 1.5,
       [](const Scenario& s) {
         return s.op == model::Operator::attention &&
                s.cache.window_size.value_or(0) > kContext / 4;
       }},
      {"extreme logits", 12,
       [](const Scenario& s) { return s.fill.kind == model::FillKind::extreme; }},
      {"rollback to rows that are gone", 1,
       [](const Scenario& s) {
         const model::Timeline timeline(s);
         return std::any_of(timeline.steps().begin(), timeline.steps().end(),
                            [](const model::TimelineStep& step) { return !step.defined; });
       }},
      {"rollback to nothing", 0.5,
       [](const Scenario& s) {
         return std::any_of(s.steps.begin(), s.steps.end(), [](const model::Step& step) {
           const auto* rollback = std::get_if<Rollback>(&step);
           return rollback != nullptr && rollback->tokens.front() > kContext / 2;
         });
       }},
  };
  return all;
}

/// `context` = 0: as a run draws them.
std::vector<Scenario> draws(const kernels::Capabilities& capabilities, int count,
                            std::int64_t context) {
  GeneratorFocus focus;
  focus.context_length = context;
  const auto generator = scenario_generator(capabilities, focus);
  std::vector<Scenario> drawn;
  for (int i = 0; i < count; ++i) {
    drawn.push_back(generator(rc::Random(static_cast<std::uint64_t>(i)), i % 101).value());
  }
  return drawn;
}

std::vector<Scenario> long_draws(const kernels::Capabilities& capabilities, int count) {
  return draws(capabilities, count, kContext);
}

/// Queries of all heads and entries.
std::int64_t query_rows(const Scenario& s) {
  std::int64_t rows = 0;
  any_append(s, [&](const Append& append, std::size_t b, auto, auto) {
    rows += append.queries[b] * s.query_heads;
    return false;
  });
  return rows;
}

/// Keys that all queries may look at.
std::int64_t key_visits(const Scenario& s) {
  std::int64_t visits = 0;
  any_append(s, [&](const Append& append, std::size_t b, auto, std::int64_t after) {
    visits += append.queries[b] * s.query_heads * after;
    return false;
  });
  return visits;
}

/// What a scenario costs is mostly the rows of its queries; a few have many.
TEST(StepDraw, MostScenariosAreSmallAndSomeAreNot) {
  const auto drawn = draws(kernels::make_cpu_naive()->capabilities(), 4000, 0);
  std::int64_t sum = 0, many = 0, visits = 0;
  for (const Scenario& s : drawn) {
    sum += query_rows(s);
    visits = std::max(visits, key_visits(s));
    many += query_rows(s) >= 60 ? 1 : 0;
  }
  EXPECT_LT(sum, 20 * 4000);
  EXPECT_GT(many, 40);
  EXPECT_LT(many, 200);
  EXPECT_LT(visits, 20'000);
}

TEST(StepDraw, LongContextsReachWhatFaultsNeed) {
  const auto drawn = long_draws(all_capabilities(), 4000);
  for (const Situation& situation : situations()) {
    const auto found = std::count_if(drawn.begin(), drawn.end(), situation.holds);
    EXPECT_GE(100.0 * static_cast<double>(found) / static_cast<double>(drawn.size()),
              situation.least_percent)
        << situation.name;
  }
}

TEST(StepDraw, LongContextsStayValidAndAskFewQueries) {
  for (const auto& capabilities : {kernels::make_cpu_naive()->capabilities(), all_capabilities()}) {
    for (const Scenario& s : long_draws(capabilities, 1000)) {
      ASSERT_TRUE(model::validate(s).empty()) << model::validate(s).front().message();
      std::int64_t queries = 0;
      any_append(s, [&](const Append& append, std::size_t b, auto, auto) {
        queries += append.queries[b];
        return false;
      });
      EXPECT_LE(queries, 40);
    }
  }
}

TEST(StepDraw, DoubleIsRareBehindLongContexts) {
  const auto drawn = long_draws(kernels::make_cpu_naive()->capabilities(), 4000);
  const auto doubles = std::count_if(drawn.begin(), drawn.end(), [](const Scenario& s) {
    return s.element_type == model::ElementType::f64;
  });
  // The truth takes a tenth of a second for each; they are there nevertheless.
  EXPECT_GT(doubles, 40);
  EXPECT_LT(doubles, 200);
}

}  // namespace
}  // namespace kvcheck::properties
