// A run in one sentence.
#include "reports/run_summary.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::RunRecord;
using properties::Verdict;

std::string targets_with(const RunRecord& record, Verdict verdict) {
  std::set<std::string> names;
  for (const auto& property : record.properties) {
    if (property.status == verdict) names.insert(property.target);
  }
  if (names.size() == 1) return "on " + *names.begin();
  return fmt::format("on {} targets", names.size());
}

std::string sentence_of(const RunRecord& record, const RunSummary& run) {
  const auto total = static_cast<std::int64_t>(record.properties.size());
  const std::int64_t errored = run.count(Verdict::errored), failed = run.count(Verdict::failed);
  const std::int64_t blind = run.count(Verdict::blind), passed = run.count(Verdict::passed);
  const std::string of = fmt::format(" of {}", counted(total, "check"));
  std::string out;
  if (failed > 0) {
    out = fmt::format("{}{} broke the contract, {}.", grouped(failed), of,
                      targets_with(record, Verdict::failed));
  }
  if (errored > 0) {
    out += (out.empty() ? "" : " ") +
           fmt::format("{}{} could not be completed because kvcheck itself failed.",
                       grouped(errored), of);
  }
  if (!out.empty()) return out;
  if (blind > 0) {
    return fmt::format(
        "Nothing failed, but {}{} could not have failed: the data could not show a "
        "fault.",
        grouped(blind), of);
  }
  if (passed == 0) return "Nothing was judged.";
  if (passed == total) {
    return total == 1 ? "The one check held."
                      : fmt::format("All {} held.", counted(total, "check"));
  }
  return fmt::format("{} held; {} skipped, with the reason beside each.", counted(passed, "check"),
                     counted(total - passed, "was", "were"));
}

/// What the ledger and the coverage have to say.
void add_remarks(const RunRecord& record, RunSummary& run) {
  for (const auto& known : record.known) {
    if (known.fixed) {
      run.remarks.push_back(
          fmt::format("FIXED: {} ({}): its case passes now on {}; take {} out of the ledger.",
                      known.title, known.reference, known.target, known.file));
    } else if (known.hits > 0) {
      run.remarks.push_back(fmt::format("Known on {}, {}: {} ({}).", known.target,
                                        counted(known.hits, "failure"), known.title,
                                        known.reference));
    }
  }
  for (const auto& row : record.coverage) {
    if (row.status != "unmet") continue;
    run.remarks.push_back(fmt::format(
        "Coverage unmet, so the run decides nothing: {} on {} in {} of {} random scenarios; {:.2g} "
        "% are required.",
        row.name, row.target, grouped(row.drawn_hits), grouped(row.drawn), 100 * row.required));
  }
  if (record.stop == "hang") {
    run.remarks.emplace_back("The run ended at a request that did not return.");
  }
}

}  // namespace

RunSummary summarise(const RunRecord& record) {
  RunSummary run;
  run.verdict = record.verdict();
  for (const auto& property : record.properties) {
    ++run.checks[static_cast<std::size_t>(property.status)];
  }
  if (run.verdict == Verdict::skipped && run.count(Verdict::passed) > 0) {
    run.verdict = Verdict::passed;
  }
  run.sentence = sentence_of(record, run);
  const auto orphans =
      std::count_if(record.findings.begin(), record.findings.end(), [&](const auto& finding) {
        return std::none_of(record.properties.begin(), record.properties.end(), [&](const auto& p) {
          return p.property == finding.property && p.target == finding.target;
        });
      });
  if (orphans > 0) {
    // A finding outweighs whatever the table of properties lacks.
    run.verdict = properties::merge(run.verdict, Verdict::failed);
    run.remarks.push_back(fmt::format("{} no row in the table of properties.",
                                      counted(orphans, "finding has", "findings have")));
  }
  add_remarks(record, run);
  if (record.stop == "interrupted") {
    run.remarks.emplace_back("The run was interrupted; this is what it had found until then.");
  } else if (record.stop == "running") {
    run.remarks.emplace_back("The record was written while the run was still going on.");
  }
  const auto missing = std::count_if(record.targets.begin(), record.targets.end(),
                                     [](const auto& target) { return !target.available; });
  if (missing > 0) {
    run.remarks.push_back(fmt::format("{} not run here; the reason is under Provenance.",
                                      counted(missing, "target was", "targets were")));
  }
  return run;
}

std::vector<std::size_t> findings_of(const RunRecord& record,
                                     const properties::PropertyRecord& property) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < record.findings.size(); ++i) {
    const auto& finding = record.findings[i];
    if (finding.property == property.property && finding.target == property.target) {
      found.push_back(i);
    }
  }
  return found;
}

std::string finding_facts(const properties::FindingRecord& finding) {
  std::string out = fmt::format("Found {:.1f} s into the run, in scenario {}", finding.seconds,
                                finding.case_index);
  if (finding.occurrences > 1) {
    out +=
        fmt::format("; {} of the run fail in this way", counted(finding.occurrences, "scenario"));
  }
  if (!finding.investigated) return out + ". Not shrunk: the run ended before.";
  out += fmt::format(". Shrunk through {} in {}",
                     counted(static_cast<std::int64_t>(finding.trail.size()), "reduction"),
                     counted(finding.evaluations, "evaluation"));
  out += finding.is_minimal ? "; no smaller case fails in this way."
                            : "; the budget ran out, so a smaller case may exist.";
  if (finding.deterministic) {
    out += " Fails every time.";
  } else if (finding.failure_rate < 1) {
    out += fmt::format(" Fails in {:.0f} % of further runs.", 100 * finding.failure_rate);
  } else {
    out += " Does not fail every time.";
  }
  if (!finding.known.empty()) out += fmt::format(" Known: {}.", finding.known);
  return out;
}

}  // namespace kvcheck::reports
