// Corpus: failing scenarios on disk, one file each, named by content hash.
//
// DIR/regression/ is checked in and always replayed, and never deleted by the tool; DIR/failing/
// holds minimal failing scenarios; DIR/origin/ the same before shrinking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::shrinkers {

/// What a corpus file holds: a scenario and where it came from. A bare scenario file reads as an
/// entry without origin.
struct CorpusEntry {
  model::Scenario scenario;
  std::string property;  ///< Property id; empty = every property that applies.
  std::string target;    ///< Target name; empty = any.
  std::string kind;      ///< Kind of finding; empty for a regression that passes.
  std::string rule{};    ///< That was broken, where findings of one kind differ by it.
  std::string summary;
  std::string note;              ///< Why it is kept, for people.
  std::uint64_t seed = 0;        ///< Run seed of its first discovery.
  std::int64_t case_index = -1;  ///< Case in that run; -1 = written by hand.
};

struct StoredEntry {
  CorpusEntry entry;
  std::filesystem::path file;
  std::string hash;  ///< File name without extension.
};

/// A file in the corpus that does not read; the run goes on without it and says so.
struct BrokenEntry {
  std::filesystem::path file;
  std::string message;
};

struct Loaded {
  std::vector<StoredEntry> entries;  ///< Sorted by file name.
  std::vector<BrokenEntry> broken;
};

/// Writes FOLDER/<hash>.json through a temporary file, fsync and atomic rename; creates FOLDER.
/// \throws std::filesystem::filesystem_error naming the file
std::filesystem::path save(const CorpusEntry& entry, const std::filesystem::path& folder);

/// Writes any text the same way.
void write_atomically(const std::filesystem::path& file, const std::string& text);

/// Reads an entry or a bare scenario, at most 4 MiB.
/// \throws model::ScenarioError, also when validate() refuses, or
/// std::filesystem::filesystem_error, each with the file named
StoredEntry load_file(const std::filesystem::path& file);

/// Every *.json in FOLDER, which need not exist; names that begin with a dot are left out.
Loaded load_folder(const std::filesystem::path& folder);

/// The entry whose hash begins with `prefix` in any of `folders`; empty when none or several. The
/// same name in several folders is one entry, taken from the first.
/// \throws as load_file for the one file found
std::optional<StoredEntry> find_by_hash(const std::vector<std::filesystem::path>& folders,
                                        const std::string& prefix);

}  // namespace kvcheck::shrinkers
