// Refusals that are none, and refusals that change something, are seen.
#include <gtest/gtest.h>

#include "properties/catalog.h"
#include "tests/properties/first_failure.h"
#include "tests/properties/refusing_target.h"

namespace kvcheck::properties {
namespace {

std::optional<FirstFailure> failure_of(BadRefusal habit) {
  const auto target = make_refusing_target(habit);
  return first_failure(*target, *find_property("target.refusal_keeps_state"), 5, 800);
}

TEST(RefusalState, HoldsWhereNothingChanges) {
  const auto failure = failure_of(BadRefusal::none);
  EXPECT_FALSE(failure.has_value()) << failure->judgement.text;
}

TEST(RefusalState, SeesATokenThatGoesWithTheRefusal) {
  const auto failure = failure_of(BadRefusal::drops_a_token);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->judgement.kind, Kind::influence);
}

TEST(RefusalState, SeesACacheThatARefusedRollbackForgets) {
  const auto failure = failure_of(BadRefusal::loses_cache);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->judgement.kind, Kind::influence);
}

TEST(RefusalState, SeesWhatIsAcceptedAlthoughItCannotBeDone) {
  for (const auto habit : {BadRefusal::accepts_rollback, BadRefusal::accepts_load}) {
    const auto failure = failure_of(habit);
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->judgement.kind, Kind::wrongly_accepted);
  }
}

}  // namespace
}  // namespace kvcheck::properties
