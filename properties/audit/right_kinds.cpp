// The table.
#include "properties/audit/right_kinds.h"

#include <algorithm>
#include <initializer_list>

namespace kvcheck::properties {
namespace {

/// Two sets of findings in one.
std::vector<Naming> both(std::initializer_list<std::vector<Naming>> sets) {
  std::vector<Naming> all;
  for (const auto& set : sets) all.insert(all.end(), set.begin(), set.end());
  return all;
}

/// Keys that a query attends and should not, or should and does not.
const std::vector<Naming> kKeys = {{"mask.visible_set", {Kind::leak, Kind::missing_key}}};

/// Rows that hold another token than they should.
const std::vector<Naming> kRows = {
    {"cache.resident_range", {Kind::wrong_row, Kind::stale_row, Kind::nonsense}}};

/// The same tokens in other steps, or in another buffer, give something else.
const std::vector<Naming> kSplits = {
    {"cache.split_invariance", {Kind::split_difference, Kind::bits_difference}}};
const std::vector<Naming> kSizes = {
    {"cache.any_capacity", {Kind::bits_difference}},
    {"cache.window_equals_full", {Kind::bits_difference}},
};

/// Numbers outside their bound.
const std::vector<Naming> kNumbers = {
    {"values.within_bound", {Kind::over_bound, Kind::not_finite}},
    {"values.qk_output", {Kind::over_bound, Kind::not_finite, Kind::nonsense}},
    {"mask.visible_set", {Kind::over_bound, Kind::not_finite}},
};

/// What must not matter does.
const std::vector<Naming> kInfluence = {
    {"cache.unspecified_rows", {Kind::influence}},
};
const std::vector<Naming> kCompany = {
    {"batch.no_company", {Kind::influence}},
};

/// The same run twice, or by other threads or instructions, gives other bits.
const std::vector<Naming> kChance = {
    {"target.repeat", {Kind::nondeterministic}},
    {"target.thread_count", {Kind::bits_difference}},
    {"target.instruction_set", {Kind::bits_difference}},
};

const std::vector<Naming> kRewind = {
    {"cache.rollback_exactness", {Kind::rollback_difference, Kind::bits_difference}},
    {"target.answers", {Kind::wrongly_accepted, Kind::wrong_row}},
};

std::vector<FaultKind> table() {
  return {
      {"mask origin", "it shows as keys that leak or are missing, at some step sizes only",
       both({kKeys, kSplits})},
      {"window edge", "it shows as keys that leak or are missing at the edge",
       both({kKeys, kSplits})},
      {"mask tensor", "it shows as keys that the mask hides or shows, or as a wrong bias",
       both({kKeys, kNumbers})},
      {"length confusion",
       "a wrong length shows as keys, as rows in the wrong place, as influence of the other "
       "entries "
       "or of rows past the end, or with another capacity",
       both({kKeys, kRows, kCompany, kInfluence, kSizes})},
      {"layout", "it shows as rows in the wrong place, or as keys and sums read from there",
       both({kRows, kSizes, kSplits, kKeys})},
      {"compaction", "it shows as rows in the wrong place once something was evicted",
       both({kRows, kSizes, kSplits})},
      {"staging", "it shows in steps that evict what they read: rows, keys, or another split",
       both({kRows, kKeys, kSplits, kSizes})},
      {"rollback", "it shows against a run that never appended, or as what should be refused",
       both({kRewind, kRows})},
      {"step split", "it shows against another split, or as rows and keys in the wrong order",
       both({kSplits, kRows, kKeys})},
      {"batch", "it shows with company, or as rows and keys of another entry",
       both({kCompany, kRows, kKeys})},
      {"empty rows", "a row that sees nothing gives a number, or a leak where it should be zero",
       both({kKeys, kNumbers})},
      {"unused rows", "content of rows outside the resident range has influence",
       both({kInfluence, kKeys, kNumbers})},
      {"poison", "content of rows outside the resident range has influence",
       both({kInfluence, kKeys, kNumbers})},
      {"head map", "keys of another head decode as other positions, or give other numbers",
       both({kKeys, kNumbers})},
      {"bias", "a wrong bias gives wrong numbers, or the wrong keys where it hides",
       both({kNumbers, kKeys})},
      {"logits", "scale, softcap and sinks give wrong numbers", both({kNumbers})},
      {"precision", "it shows as numbers outside their bound", both({kNumbers})},
      {"rotary", "a wrong turn is stored with the key, and gives wrong numbers",
       both({kRows, kNumbers, kSplits})},
      {"quantisation", "it shows as wrong codes or as numbers outside their bound",
       both({kRows, kNumbers})},
      {"vector tail", "lanes or keys that do not fill a register are lost or read past their end",
       both({kNumbers, kKeys, kInfluence, kRows, kChance})},
      {"split merge", "partial sums merged wrongly give wrong numbers, by split or by thread count",
       both({kNumbers, kChance, kKeys})},
      {"integer width", "an address that wraps reads or writes other rows, or sees other keys",
       both({kKeys, kRows, kNumbers, kRewind})},
      {"nondeterminism", "two runs of one case differ", both({kChance, kSizes})},
      {"data race", "runs differ by threads or by chance, or give wrong numbers",
       both({kChance, kNumbers, kKeys, kRows})},
      {"uninitialised scratch", "what ran before, or what rows hold, has influence",
       both({kChance, kInfluence, kNumbers, kKeys, kSizes})},
      {"aliasing", "buffers that overlap give wrong rows or numbers",
       both({kRows, kSplits, kSizes, kNumbers, kKeys})},
  };
}

}  // namespace

std::span<const FaultKind> fault_kinds() {
  static const std::vector<FaultKind> all = table();
  return all;
}

bool names(std::string_view fault_kind, std::string_view property, Kind finding) {
  for (const FaultKind& row : fault_kinds()) {
    if (row.kind != fault_kind) continue;
    return std::any_of(row.named_by.begin(), row.named_by.end(), [&](const Naming& naming) {
      return naming.property == property &&
             std::find(naming.kinds.begin(), naming.kinds.end(), finding) != naming.kinds.end();
    });
  }
  return false;
}

}  // namespace kvcheck::properties
