// Facts about the table of kinds: every kind that is planted has a row, and says why.
#include "properties/audit/right_kinds.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "properties/audit/subjects.h"
#include "properties/catalog.h"

namespace kvcheck::properties {
namespace {

TEST(RightKinds, EveryPlantedKindHasARow) {
  std::set<std::string_view> kinds;
  for (const FaultKind& row : fault_kinds()) {
    EXPECT_TRUE(kinds.insert(row.kind).second) << row.kind;
    EXPECT_GE(row.reason.size(), 10u) << row.kind;
    EXPECT_FALSE(row.named_by.empty()) << row.kind;
  }
  for (const bool one_row : {false, true}) {
    for (const Subject& subject : audit_subjects(one_row)) {
      EXPECT_TRUE(kinds.count(subject.kind)) << subject.name << ": " << subject.kind;
    }
  }
}

TEST(RightKinds, NoFaultOfAMaskIsNamedByACrashOrByChance) {
  for (const Kind finding :
       {Kind::crash, Kind::hang, Kind::nonsense, Kind::nondeterministic, Kind::wrongly_refused}) {
    EXPECT_FALSE(names("mask origin", "target.answers", finding));
    EXPECT_FALSE(names("window edge", "target.repeat", finding));
  }
  EXPECT_TRUE(names("mask origin", "mask.visible_set", Kind::leak));
  EXPECT_FALSE(names("mask origin", "values.within_bound", Kind::over_bound));
  EXPECT_TRUE(names("precision", "values.within_bound", Kind::over_bound));
  EXPECT_TRUE(names("rollback", "cache.rollback_exactness", Kind::rollback_difference));
  EXPECT_TRUE(names("rollback", "target.answers", Kind::wrongly_accepted));
  EXPECT_FALSE(names("a kind that nobody plants", "mask.visible_set", Kind::leak));
}

TEST(RightKinds, NamesNoPropertyTwiceForNothing) {
  // Bits differ for many reasons, so only properties that say which may name a kind.
  for (const FaultKind& row : fault_kinds()) {
    for (const Naming& naming : row.named_by) {
      if (naming.property != "*") continue;
      for (const Kind kind : naming.kinds) EXPECT_NE(kind, Kind::bits_difference) << row.kind;
    }
  }
}

}  // namespace
}  // namespace kvcheck::properties
