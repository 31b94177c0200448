// Audit: what the suite is worth, measured on faults that were planted.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "properties/audit/subjects.h"
#include "properties/catalog.h"

namespace kvcheck::properties {

struct AuditOptions {
  std::uint64_t seed = 1;
  double seconds = 20;         ///< For each subject.
  std::int64_t scenarios = 0;  ///< For each subject at most; 0 = as the time allows.
  std::int64_t context = 0;    ///< Length of the past, about; 0 = as a run draws it.
  bool one_row = false;        ///< Faults made in a single row of a single head.
  bool random_only = false;    ///< Random draws from the start, without corpus and lattice.
  std::int64_t further = 20;   ///< Scenarios judged after the one that kills, for the matrix.
  bool deepen = false;         ///< Ask properties that saw fewer than two faults alone.
  int workers = 0;             ///< 0 = one for each core.
  std::filesystem::path corpus;
  const std::atomic<bool>* interrupted = nullptr;
};

/// What the suite did with one subject.
struct SubjectResult {
  std::string name, place, kind, statement;
  bool killed = false;
  std::string by;       ///< The property that named the right kind first.
  std::string finding;  ///< Its kind of finding.
  std::string sentence;
  std::int64_t scenarios = 0;  ///< Judged up to the one that killed it, itself included; else all.
  double seconds = 0;
  /// Property and finding of the first failure, where that one did not name the right kind.
  std::string first;
  std::set<std::string> seen_by;  ///< Every property that failed on it.
};

/// A target without a fault.
struct ControlResult {
  std::string name;
  std::int64_t scenarios = 0;
  std::int64_t false_alarms = 0;
  std::string sentence;  ///< Of the first.
  double seconds = 0;
};

struct AuditResult {
  AuditOptions options;
  std::vector<SubjectResult> faults;  ///< In the order of the subjects.
  std::vector<ControlResult> controls;
  /// Properties that no subject can be asked: calls.*, where no target takes operator calls.
  std::vector<std::string> unasked;
  double seconds = 0;

  std::int64_t killed() const;
  std::int64_t false_alarms() const;
  bool held() const;
  /// By property id: how many faults of each kind it saw.
  std::map<std::string, std::map<std::string, std::int64_t>> matrix() const;
};

/// Called from any worker, one at a time.
using AuditObserver = std::function<void(const SubjectResult&)>;

/// Judges scenarios until a property names the kind of fault, or the budget is used up.
SubjectResult audit_subject(const Subject& subject, const AuditOptions& options);

/// Judges `scenarios` scenarios, fewer when the time is used up; any failure is a false alarm.
ControlResult audit_control(const Subject& subject, std::int64_t scenarios,
                            const AuditOptions& options);

/// All subjects, and then every control on as many scenarios as the slowest kill took (at least
/// 500). The same seed gives the same kills whatever the number of workers.
AuditResult run_audit(const std::vector<Subject>& subjects, const std::vector<Subject>& controls,
                      const AuditOptions& options, const AuditObserver& observer);

}  // namespace kvcheck::properties
