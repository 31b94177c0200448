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
const std::vector<Naming> kKeys = {{"*", {Kind::leak, Kind::missing_key}}};

/// Rows that hold another token than they should, or more or fewer of them.
const std::vector<Naming> kRows = {{"*", {Kind::wrong_row, Kind::stale_row}},
                                   {"cache.resident_range", {Kind::nonsense}}};

/// The same tokens in other steps.
const std::vector<Naming> kSplits = {{"*", {Kind::split_difference}},
                                     {"cache.split_invariance", {Kind::bits_difference}}};

/// The same tokens in another buffer.
const std::vector<Naming> kSizes = {
    {"cache.any_capacity", {Kind::bits_difference}},
    {"cache.window_equals_full", {Kind::bits_difference}},
    {"cache.shared_buffers", {Kind::bits_difference}},
    {"cache.buffers", {Kind::bits_difference}},
};

/// Numbers outside their bound.
const std::vector<Naming> kNumbers = {
    {"*", {Kind::over_bound, Kind::not_finite}},
    {"values.qk_output", {Kind::nonsense}},
};

/// What must not matter does: rows nobody may read, other entries, hidden keys.
const std::vector<Naming> kInfluence = {{"*", {Kind::influence}}};

/// The same case run twice, or by other threads or instructions, gives other bits.
const std::vector<Naming> kChance = {
    {"*", {Kind::nondeterministic}},
    {"target.thread_count", {Kind::bits_difference}},
    {"target.instruction_set", {Kind::bits_difference}},
    {"target.schedules", {Kind::bits_difference}},
};

const std::vector<Naming> kRewind = {
    {"*", {Kind::rollback_difference}},
    {"cache.rollback_exactness", {Kind::bits_difference}},
    {"target.answers", {Kind::wrongly_accepted, Kind::wrong_row}},
};

/// What is taken, what is refused, and what a refusal leaves behind.
const std::vector<Naming> kAnswers = {
    {"*", {Kind::wrongly_accepted, Kind::wrongly_refused}},
};
const std::vector<Naming> kBreaks = {
    {"*", {Kind::crash, Kind::hang, Kind::nonsense, Kind::defect}}};

/// What no kernel may do, seen by what executes it.
const std::vector<Naming> kDefects = {{"*", {Kind::defect}}};

std::vector<FaultKind> table() {
  return {
      {"mask origin", "it shows as keys that leak or are missing, at some step sizes only",
       both({kKeys, kSplits})},
      {"window edge", "it shows as keys that leak or are missing at the edge",
       both({kKeys, kSplits})},
      {"mask tensor", "it shows as keys that the mask hides or shows, or as a wrong bias",
       both({kKeys, kNumbers})},
      {"bias", "it shows as wrong numbers, or as wrong keys where the bias hides",
       both({kNumbers, kKeys})},
      {"length confusion",
       "a wrong length shows as keys, as rows in the wrong place, as influence of other entries or "
       "of rows past the end, or with another capacity",
       both({kKeys, kRows, kInfluence, kSizes})},
      {"layout", "it shows as rows in the wrong place, or as keys and sums read from there",
       both({kRows, kSizes, kSplits, kKeys})},
      {"compaction", "it shows as rows in the wrong place once something was evicted",
       both({kRows, kSizes, kSplits, kKeys})},
      {"staging", "it shows in steps that evict what they read: rows, keys, or another split",
       both({kRows, kKeys, kSplits, kSizes})},
      {"rollback", "it shows against a run that never appended, or as what should be refused",
       both({kRewind, kRows})},
      {"refusal", "something is taken or refused wrongly, or a refusal leaves the state changed",
       both({kAnswers, kRows, kInfluence})},
      {"crash", "the target breaks", both({kBreaks})},
      {"step split", "it shows against another split, or as rows and keys in the wrong order",
       both({kSplits, kRows, kKeys})},
      {"batch", "it shows with company, or as rows and keys of another entry",
       both({kInfluence, kRows, kKeys})},
      {"empty rows", "a row that sees nothing gives a number, or a leak where it should be zero",
       both({kKeys, kNumbers})},
      {"unused rows", "content of rows outside the resident range has influence",
       both({kInfluence, kKeys, kNumbers})},
      {"head map", "keys of another head decode as other positions, or give other numbers",
       both({kKeys, kNumbers})},
      {"packed inputs", "a wrong stride takes other numbers, which rows and outputs show",
       both({kRows, kNumbers, kKeys})},
      {"scale", "the logits are off, which outputs show", both({kNumbers})},
      {"softcap", "the logits are off, which outputs show", both({kNumbers})},
      {"sinks", "the denominator is off, which outputs show", both({kNumbers})},
      {"norm", "stored keys and logits are off", both({kRows, kNumbers, kSplits})},
      {"rotary", "a wrong turn is stored with the key, gives wrong numbers, and differs in company",
       both({kRows, kNumbers, kSplits, kInfluence})},
      {"quantisation", "it shows as wrong codes, or as numbers outside their bound",
       both({kRows, kNumbers})},
      {"intermediate", "what is handed out is outside its bound", both({kNumbers})},
      {"output", "what is answered is outside its bound", both({kNumbers})},
      {"precision", "it shows as numbers outside their bound", both({kNumbers})},
      {"online softmax", "a lost rescale or maximum gives wrong numbers, at some lengths only",
       both({kNumbers, kKeys, kSizes})},
      {"vector tail", "lanes or keys that do not fill a register are lost or read past their end",
       both({kNumbers, kKeys, kInfluence, kRows, kChance})},
      {"tile edge", "keys at the edge of a tile are lost, doubled or read past their end",
       both({kNumbers, kKeys, kInfluence, kRows, kSizes})},
      {"split merge", "partial sums merged wrongly give wrong numbers, or other bits",
       both({kNumbers, kChance, kKeys, kSizes})},
      {"thread count", "bits depend on the number of threads", both({kChance, kNumbers})},
      {"instruction set", "bits depend on the instruction set", both({kChance, kNumbers})},
      {"integer width", "an address that wraps reads or writes other rows, or sees other keys",
       both({kKeys, kRows, kNumbers, kAnswers})},
      {"nondeterminism", "two runs of one case differ", both({kChance, kSizes})},
      {"data race", "runs differ by threads or by chance, or give wrong numbers",
       both({kChance, kNumbers, kKeys, kRows})},
      {"uninitialised scratch", "what ran before, or what rows hold, has influence",
       both({kChance, kInfluence, kNumbers, kKeys, kSizes})},
      {"device defect", "what executes the kernel sees it break a rule of devices",
       both({kDefects, kChance})},
      {"device kernel", "a kernel reads or writes wrong places or computes with wrong keys",
       both({kKeys, kRows, kNumbers, kInfluence, kSplits, kSizes, kDefects})},
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
      return (naming.property == property || naming.property == "*") &&
             std::find(naming.kinds.begin(), naming.kinds.end(), finding) != naming.kinds.end();
    });
  }
  return false;
}

}  // namespace kvcheck::properties
