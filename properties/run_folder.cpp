// Files of a run.
#include "properties/run_folder.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "shrinkers/corpus.h"

namespace kvcheck::properties {
namespace fs = std::filesystem;

std::optional<fs::path> Store::last_run() const {
  std::ifstream in(root / "last");
  std::string name;
  // The name is one folder of runs/, never a path, whatever the file has been made to say.
  if (!std::getline(in, name) || name.empty() || name.find('/') != std::string::npos ||
      name.front() == '.') {
    return std::nullopt;
  }
  const fs::path folder = runs() / name;
  return fs::exists(folder / "run.json") ? std::optional(folder) : std::nullopt;
}

Store Store::at(const std::string& out_option) {
  if (!out_option.empty()) return {out_option};
  const char* variable = std::getenv("KVCHECK_OUT");
  return {variable && *variable ? variable : ".kvcheck"};
}

RunFolder::RunFolder(const Store& store, const std::string& name) : path_(store.runs() / name) {
  fs::create_directories(path_);
  shrinkers::write_atomically(store.root / "last", name + "\n");
}

void RunFolder::write_record(const RunRecord& record) const {
  shrinkers::write_atomically(record_file(), to_json(record).dump(1) + "\n");
}

void RunFolder::write_current(const std::string& target, const model::Scenario& scenario) const {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["target"] = target;
  json["scenario"] = model::to_json(scenario);
  // Renamed into place: a kill at any moment leaves the old scenario or the new one, whole.
  const fs::path partial = path_ / "current.json.partial";
  std::ofstream(partial, std::ios::trunc) << json.dump() << "\n";
  fs::rename(partial, current_file());
}

void RunFolder::clear_current() const {
  std::error_code ignored;
  fs::remove(current_file(), ignored);
}

void RunFolder::clear_places() const {
  std::error_code ignored;
  fs::remove(places_file(), ignored);
}

void RunFolder::append_observations(const std::string& lines) const {
  if (!lines.empty()) std::ofstream(observations_file(), std::ios::app | std::ios::binary) << lines;
}

void RunFolder::trim_observations(std::int64_t lines) const {
  std::ifstream in(observations_file(), std::ios::binary);
  if (!in) return;
  std::string kept, line;
  for (std::int64_t i = 0; i < lines && std::getline(in, line); ++i) kept += line + "\n";
  shrinkers::write_atomically(observations_file(), kept);
}

RunRecord read_record(const fs::path& file_or_folder) {
  const fs::path file =
      fs::is_directory(file_or_folder) ? file_or_folder / "run.json" : file_or_folder;
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw model::ScenarioError(
        fmt::format("record: cannot read {}; give a run folder or its run.json", file.string()));
  }
  std::ostringstream text;
  text << in.rdbuf();
  try {
    return run_record_from_json(nlohmann::ordered_json::parse(text.str()));
  } catch (const nlohmann::ordered_json::exception& error) {
    throw model::ScenarioError(
        fmt::format("record: {} is not JSON: {}", file.string(), error.what()));
  } catch (const model::ScenarioError& error) {
    throw model::ScenarioError(fmt::format("record: {}: {}", file.string(), error.what()));
  }
}

fs::path regression_folder() {
  const char* variable = std::getenv("KVCHECK_REGRESSION");
  return variable && *variable ? variable : KVCHECK_DEFAULT_REGRESSION;
}

}  // namespace kvcheck::properties
