// Names of verdicts and kinds of finding, as spelled in run.json.
#include "properties/verdict.h"

#include <array>
#include <cstddef>

namespace kvcheck::properties {
namespace {

constexpr std::array<std::string_view, 5> kVerdictNames = {"passed", "skipped", "blind", "failed",
                                                           "errored"};

constexpr std::array<std::string_view, 17> kKindNames = {"leak",
                                                         "missing_key",
                                                         "wrong_row",
                                                         "stale_row",
                                                         "over_bound",
                                                         "not_finite",
                                                         "influence",
                                                         "split_difference",
                                                         "rollback_difference",
                                                         "bits_difference",
                                                         "crash",
                                                         "hang",
                                                         "nonsense",
                                                         "defect",
                                                         "wrongly_accepted",
                                                         "wrongly_refused",
                                                         "nondeterministic"};

static_assert(kVerdictNames.size() == static_cast<std::size_t>(Verdict::errored) + 1);
static_assert(kKindNames.size() == static_cast<std::size_t>(Kind::nondeterministic) + 1);

template <class Enum, std::size_t n>
std::optional<Enum> find(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  return kVerdictNames.at(static_cast<std::size_t>(verdict));
}

std::string_view to_string(Kind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }

std::optional<Verdict> verdict_from(std::string_view name) {
  return find<Verdict>(kVerdictNames, name);
}

std::optional<Kind> kind_from(std::string_view name) { return find<Kind>(kKindNames, name); }

}  // namespace kvcheck::properties
