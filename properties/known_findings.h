// Known findings: the checked-in ledger of failures that are reported already, and what they
// explain.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"
#include "properties/case.h"
#include "properties/catalog.h"

namespace kvcheck::properties {

/// Queries that an entry of the ledger is about. What is left out holds of every query.
struct KnownCondition {
  std::optional<std::string> op;           ///< "gqa" or "attention".
  std::optional<bool> causal, nonpad;      ///< nonpad: nonpad_kv_seqlen.
  std::vector<std::string> element_types;  ///< Empty = any.
  std::vector<std::int64_t> opsets;        ///< Empty = any.
  std::optional<std::int64_t> queries;     ///< Of the step and entry, exactly.
  std::int64_t least_tokens = 0, least_past = 0;
};

/// What answers have in common that no wrong model gives.
enum class KnownValues {
  none,
  lowest_for_hidden,         ///< An intermediate holds the lowest finite number for -infinity.
  overflow_before_division,  ///< Infinite where the values that a query sees add up to infinity.
  lowest_row_is_empty  ///< 0 where the mask adds the lowest finite number to all that is seen.
};
std::string_view to_string(KnownValues values);

/// One entry: a failure that is known, and where it is told in public.
struct KnownFinding {
  std::string file;                         ///< Name, without the folder.
  std::string title;                        ///< What is wrong, one sentence.
  std::string target;                       ///< Without a release: "onnxruntime".
  std::string first_release, last_release;  ///< Both included; empty = from, or to, any.
  /// Kinds of failure that it explains, by property.
  std::map<std::string, std::vector<std::string>> failures;
  KnownCondition condition;
  // What it explains: one of these.
  std::string reading;  ///< The wrong model under which every failing query's answer is right.
  KnownValues values = KnownValues::none;
  std::vector<std::string> rules;  ///< Of operator calls: Judgement::rule.
  std::string issue;     ///< Public address; may be empty where case and sentence are given.
  std::string sentence;  ///< Of the contract, that the case breaks.
  std::optional<model::Scenario> scenario;

  /// The issue, else the sentence.
  const std::string& reference() const { return issue.empty() ? sentence : issue; }
};

/// Reads one entry. \throws model::ScenarioError naming the field; an entry with neither an issue
/// nor a case and a sentence is refused
KnownFinding known_finding_from(const std::string& text, const std::string& file);

/// Every *.json of the folder, which need not exist. \throws as known_finding_from, file named
std::vector<KnownFinding> load_known(const std::filesystem::path& folder);

/// Entries that ship with the tool: KVCHECK_KNOWN, else as compiled in.
std::filesystem::path known_folder();

/// Whether the entry is of that target and release ("onnxruntime@1.31.1" is one of onnxruntime).
bool holds_for(const KnownFinding& known, const kernels::Capabilities& target);

/// Whether the condition allows for the scenario, and for what one entry of the batch does in one
/// of its steps.
bool concerns(const KnownCondition& condition, const model::Scenario& scenario);
bool concerns(const KnownCondition& condition, const model::EntryStep& entry);

/// The first entry that explains the failure; null = none does. Its property and kind are listed
/// there, and
/// - reading, lowest_for_hidden: the property holds once every answer that is just what the entries
///   say is mended (known_mended.h), those of this entry among them;
/// - the other values: every output that fails is as the entry says;
/// - rules: the rule that was broken is one of them.
/// Measured on the target, so that another fault with the same signature is not taken for it.
const KnownFinding* explaining_entry(std::span<const KnownFinding> known, Case& c,
                                     const Property& property, const Judgement& judgement);

/// The same of one entry alone.
bool explains(const KnownFinding& known, Case& c, const Property& property,
              const Judgement& judgement);

/// -1, 0 or 1 as release `a` is older, the same or newer: "1.9.2" is older than "1.32.0".
int compare_releases(std::string_view a, std::string_view b);

}  // namespace kvcheck::properties
