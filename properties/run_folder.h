// The folder of a run: its record, its page and the scenario that is running.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "model/scenario.h"
#include "properties/run_record.h"

namespace kvcheck::properties {

/// Where runs and findings are kept: DIR/runs/NAME/, DIR/corpus/failing/, DIR/corpus/origin/,
/// DIR/corpus/near/ and DIR/last, which names the newest run.
struct Store {
  std::filesystem::path root;
  std::filesystem::path failing() const { return root / "corpus" / "failing"; }
  std::filesystem::path origin() const { return root / "corpus" / "origin"; }
  std::filesystem::path near() const { return root / "corpus" / "near"; }
  std::filesystem::path runs() const { return root / "runs"; }
  /// The newest run, empty when there was none.
  std::optional<std::filesystem::path> last_run() const;
  /// --out, else KVCHECK_OUT, else .kvcheck in the working directory.
  static Store at(const std::string& out_option);
};

class RunFolder {
 public:
  /// Creates the folder; `name` is made of digits, letters and '-'.
  RunFolder(const Store& store, const std::string& name);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path record_file() const { return path_ / "run.json"; }
  std::filesystem::path page_file() const { return path_ / "page.html"; }
  /// Which case every worker is at (case_places.h).
  std::filesystem::path places_file() const { return path_ / "cases.json"; }
  /// The scenario that is run again, or that crashed.
  std::filesystem::path current_file() const { return path_ / "current.json"; }
  std::filesystem::path observations_file() const { return path_ / "observations.jsonl"; }

  void write_record(const RunRecord& record) const;
  /// The scenario about to run again, so that a crash leaves it behind. Not synced: it must survive
  /// this process, not a power cut.
  void write_current(const std::string& target, const model::Scenario& scenario) const;
  void clear_current() const;
  void clear_places() const;

  /// Adds lines to observations.jsonl; nothing for no lines.
  void append_observations(const std::string& lines) const;
  /// Keeps the first `lines` of observations.jsonl: those that a record has counted.
  void trim_observations(std::int64_t lines) const;

 private:
  std::filesystem::path path_;
};

/// Reads a record from run.json or from the folder that holds it.
/// \throws model::ScenarioError with the file named
RunRecord read_record(const std::filesystem::path& file_or_folder);

/// Regression scenarios that ship with the tool: KVCHECK_REGRESSION, else as compiled in.
std::filesystem::path regression_folder();

}  // namespace kvcheck::properties
