// Corpus: failing scenarios on disk.
#include "shrinkers/corpus.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "model/scenario_json.h"

namespace kvcheck::shrinkers {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kEntrySchema = 1;
constexpr std::size_t kMaxBytes = 4u << 20;
/// Deeper nesting than any entry has; reading stops here instead of following it.
constexpr int kMaxDepth = 32;

[[noreturn]] void fail_system(const std::string& doing, const fs::path& file, int code) {
  throw fs::filesystem_error(doing, file, std::error_code(code, std::generic_category()));
}

/// An open file descriptor.
class Descriptor {
 public:
  Descriptor(const fs::path& file, int flags) : number_(::open(file.c_str(), flags, 0666)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool ok() const { return number_ >= 0; }
  int number() const { return number_; }
  /// False with errno set when the data did not reach the disk.
  bool close() {
    const int result = ::close(number_);
    number_ = -1;
    return result == 0;
  }

 private:
  int number_;
};

bool write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

/// Makes a new or renamed name in `folder` survive a crash.
void sync_folder(const fs::path& folder) {
  const Descriptor descriptor(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!descriptor.ok()) fail_system("cannot open the folder", folder, errno);
  // File systems that cannot sync a folder say EINVAL; there is nothing more to do for them.
  if (::fsync(descriptor.number()) != 0 && errno != EINVAL) {
    fail_system("cannot sync the folder", folder, errno);
  }
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// A name beside `file` that no other writer uses and that load_folder passes over.
fs::path temporary_beside(const fs::path& file) {
  static std::atomic<unsigned> counter{0};
  return folder_of(file) /
         fmt::format(".{}.{}.{}.tmp", file.filename().string(), ::getpid(), counter++);
}

void write_temporary(const fs::path& temporary, const fs::path& file, const std::string& text) {
  Descriptor descriptor(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC);
  if (!descriptor.ok()) fail_system("cannot create a file beside", file, errno);
  if (!write_all(descriptor.number(), text) || ::fsync(descriptor.number()) != 0 ||
      !descriptor.close()) {
    fail_system("cannot write", file, errno);
  }
}

Json entry_json(const CorpusEntry& entry) {
  Json json;
  json["schema"] = kEntrySchema;
  json["property"] = entry.property;
  json["target"] = entry.target;
  json["kind"] = entry.kind;
  if (!entry.rule.empty()) json["rule"] = entry.rule;
  json["summary"] = entry.summary;
  json["note"] = entry.note;
  json["seed"] = entry.seed;
  json["case_index"] = entry.case_index;
  json["scenario"] = model::to_json(entry.scenario);
  return json;
}

[[noreturn]] void fail(const std::string& field, const std::string& value,
                       const std::string& remedy) {
  throw model::ScenarioError(fmt::format("{} = {}: {}", field, value, remedy));
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

void read_text(const Json& json, const char* name, std::string& out) {
  const auto it = json.find(name);
  if (it == json.end()) return;
  if (!it->is_string()) fail(name, shown(*it), "must be a text");
  out = it->get<std::string>();
}

void check_entry_fields(const Json& json) {
  constexpr const char* kKnown[] = {"schema", "property", "target", "kind",       "summary",
                                    "rule",   "note",     "seed",   "case_index", "scenario"};
  const auto schema = json.find("schema");
  if (schema == json.end()) fail("schema", "absent", fmt::format("write {}", kEntrySchema));
  if (!schema->is_number_integer()) fail("schema", shown(*schema), "must be an integer");
  if (*schema > kEntrySchema) {
    fail("schema", shown(*schema),
         fmt::format("is newer than this build understands ({}); use a newer kvcheck",
                     kEntrySchema));
  }
  if (*schema < 1) fail("schema", shown(*schema), "must be at least 1");
  for (const auto& item : json.items()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), item.key()) == std::end(kKnown)) {
      fail(shown(item.key()), shown(item.value()),
           fmt::format("unknown field; known here: {}", fmt::join(kKnown, ", ")));
    }
  }
}

CorpusEntry read_entry(const Json& json) {
  CorpusEntry entry;
  if (!json.is_object()) fail("text", shown(json), "must be an object");
  const auto scenario = json.find("scenario");
  if (scenario == json.end()) {
    entry.scenario = model::scenario_from_json(json);
    model::require_valid(entry.scenario);
    return entry;
  }
  check_entry_fields(json);
  read_text(json, "property", entry.property);
  read_text(json, "target", entry.target);
  read_text(json, "kind", entry.kind);
  read_text(json, "rule", entry.rule);
  read_text(json, "summary", entry.summary);
  read_text(json, "note", entry.note);
  if (const auto seed = json.find("seed"); seed != json.end()) {
    if (!seed->is_number_unsigned()) fail("seed", shown(*seed), "must be an integer, at least 0");
    entry.seed = seed->get<std::uint64_t>();
  }
  if (const auto index = json.find("case_index"); index != json.end()) {
    const bool fits = index->is_number_integer() &&
                      !(index->is_number_unsigned() && *index > std::uint64_t{INT64_MAX});
    if (!fits || *index < -1) fail("case_index", shown(*index), "must be an integer, at least -1");
    entry.case_index = index->get<std::int64_t>();
  }
  entry.scenario = model::scenario_from_json(*scenario);
  model::require_valid(entry.scenario);
  return entry;
}

/// The parser's words without the token it stopped at, which may be as long as the file.
std::string parse_words(const Json::parse_error& error) {
  std::string words = error.what();
  const auto begin = words.find("] ");
  if (begin != std::string::npos) words = words.substr(begin + 2);
  words = words.substr(0, words.find("; last read"));
  if (words.size() > 200) words.resize(200);
  return words;
}

Json parse(const std::string& text) {
  const auto stop_when_deep = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) {
      fail("text", "lists within lists", fmt::format("must be at most {} deep", kMaxDepth));
    }
    return true;
  };
  try {
    return Json::parse(text, stop_when_deep);
  } catch (const Json::parse_error& error) {
    throw model::ScenarioError("not JSON: " + parse_words(error));
  } catch (const Json::exception& error) {
    throw model::ScenarioError(fmt::format("not JSON that can be read: {}", error.what()));
  }
}

/// At most kMaxBytes and one, so that a larger file is noticed without reading it.
std::string read_limited(const fs::path& file) {
  const fs::file_status status = fs::status(file);
  if (!fs::exists(status)) fail_system("cannot find", file, ENOENT);
  if (fs::is_directory(status)) fail_system("cannot read", file, EISDIR);
  // A pipe or a device might never end or never begin.
  if (!fs::is_regular_file(status)) fail_system("cannot read what is no plain file", file, EINVAL);
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail_system("cannot open", file, errno == 0 ? EIO : errno);
  std::string text(kMaxBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) fail_system("cannot read", file, EIO);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

/// *.json in `folder` by name; files that begin with a dot are unfinished.
std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    if (item.path().extension() == ".json" && name.front() != '.') files.push_back(item.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

void write_atomically(const fs::path& file, const std::string& text) {
  const fs::path temporary = temporary_beside(file);
  try {
    write_temporary(temporary, file, text);
    if (::rename(temporary.c_str(), file.c_str()) != 0) fail_system("cannot write", file, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(folder_of(file));
}

fs::path save(const CorpusEntry& entry, const fs::path& folder) {
  if (fs::create_directories(folder)) sync_folder(folder_of(fs::absolute(folder)));
  const fs::path file = folder / (model::content_hash(entry.scenario) + ".json");
  // A foreign target's words need not be valid text; what is not is replaced.
  write_atomically(file,
                   entry_json(entry).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return file;
}

StoredEntry load_file(const fs::path& file) {
  const std::string text = read_limited(file);
  try {
    if (text.size() > kMaxBytes) {
      fail("text", fmt::format("more than {} bytes", kMaxBytes),
           fmt::format("must be at most {} bytes", kMaxBytes));
    }
    return {read_entry(parse(text)), file, file.stem().string()};
  } catch (const model::ScenarioError& error) {
    throw model::ScenarioError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

Loaded load_folder(const fs::path& folder) {
  Loaded loaded;
  for (const fs::path& file : json_files(folder)) {
    try {
      loaded.entries.push_back(load_file(file));
    } catch (const std::exception& error) {
      loaded.broken.push_back({file, error.what()});
    }
  }
  return loaded;
}

std::optional<StoredEntry> find_by_hash(const std::vector<fs::path>& folders,
                                        const std::string& prefix) {
  if (prefix.empty()) return std::nullopt;
  std::optional<fs::path> found;
  for (const fs::path& folder : folders) {
    for (const fs::path& file : json_files(folder)) {
      if (!file.stem().string().starts_with(prefix)) continue;
      // The same name in a later folder is the same scenario.
      if (found && found->stem() != file.stem()) return std::nullopt;
      if (!found) found = file;
    }
  }
  if (!found) return std::nullopt;
  return load_file(*found);
}

}  // namespace kvcheck::shrinkers
