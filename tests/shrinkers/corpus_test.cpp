// The corpus keeps entries across a round trip, appears whole or not at all, and survives files
// that are broken or hostile.
#include "shrinkers/corpus.h"

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "model/scenario_json.h"
#include "tests/shrinkers/random_scenario.h"

namespace kvcheck::shrinkers {
namespace {

namespace fs = std::filesystem;
using model::Operator;
using model::Past;
using model::ScenarioError;
using testing::plain_scenario;
using testing::random_scenario;

/// A folder of its own for each test, removed afterwards.
class Corpus : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kvcheck_corpus_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  /// What load_file says about a file with this text.
  std::string complaint(const std::string& text) {
    const fs::path file = write("entry.json", text);
    try {
      load_file(file);
    } catch (const ScenarioError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.rfind(file.string() + ": ", 0), 0u) << message;
      EXPECT_LT(message.size(), 1000u);
      return message.substr(file.string().size() + 2);
    }
    return "accepted";
  }

  fs::path folder_;
};

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

CorpusEntry some_entry(std::uint64_t seed) {
  CorpusEntry entry;
  entry.scenario = random_scenario(seed % 2 ? Operator::gqa : Operator::attention, seed);
  entry.property = "visible-set";
  entry.target = "cpu \"fast\"";
  entry.kind = "leak";
  entry.summary = "query 1 sees key 3 \xe2\x86\x92 weight 0.12\n";
  entry.note = "line\ttab";
  entry.seed = UINT64_MAX - seed;
  entry.case_index = 7;
  return entry;
}

void expect_equal(const CorpusEntry& a, const CorpusEntry& b) {
  EXPECT_EQ(a.scenario, b.scenario);
  EXPECT_EQ(a.property, b.property);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.summary, b.summary);
  EXPECT_EQ(a.note, b.note);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.case_index, b.case_index);
}

TEST_F(Corpus, KeepsEveryFieldAcrossARoundTrip) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const CorpusEntry entry = some_entry(seed);
    const fs::path file = save(entry, folder_ / "failing");
    EXPECT_EQ(file, folder_ / "failing" / (model::content_hash(entry.scenario) + ".json"));
    const StoredEntry stored = load_file(file);
    expect_equal(stored.entry, entry);
    EXPECT_EQ(stored.hash, model::content_hash(entry.scenario));
    EXPECT_EQ(stored.file, file);
  }
  EXPECT_EQ(load_folder(folder_ / "failing").entries.size(), 50u);
}

TEST_F(Corpus, WritesTheDocumentedFields) {
  const auto json = nlohmann::ordered_json::parse(read(save(some_entry(1), folder_)));
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  EXPECT_EQ(names, (std::vector<std::string>{"schema", "property", "target", "kind", "summary",
                                             "note", "seed", "case_index", "scenario"}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["scenario"]["schema"], 1);
}

TEST_F(Corpus, ReadsABareScenario) {
  const auto scenario = random_scenario(Operator::gqa, 4);
  const StoredEntry stored = load_file(write("mine.json", model::to_json(scenario).dump()));
  EXPECT_EQ(stored.entry.scenario, scenario);
  EXPECT_EQ(stored.entry.property, "");
  EXPECT_EQ(stored.entry.case_index, -1);
  EXPECT_EQ(stored.hash, "mine");
}

TEST_F(Corpus, ReadsAnEntryThatLeavesFieldsOut) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["scenario"] = model::to_json(plain_scenario({Past{{1}}}));
  const StoredEntry stored = load_file(write("short.json", json.dump()));
  EXPECT_EQ(stored.entry.property, "");
  EXPECT_EQ(stored.entry.seed, 0u);
  EXPECT_EQ(stored.entry.case_index, -1);
}

TEST_F(Corpus, NamesAScenarioThatIsNotValid) {
  auto scenario = plain_scenario({Past{{1}}});
  scenario.steps.push_back(model::Rollback{{5}});
  ASSERT_FALSE(model::validate(scenario).empty());
  const std::string bare = model::to_json(scenario).dump();
  EXPECT_NE(complaint(bare).find("steps[1].rollback"), std::string::npos);
  EXPECT_NE(complaint("{\"schema\":1,\"scenario\":" + bare + "}").find("steps[1].rollback"),
            std::string::npos);
  EXPECT_EQ(load_folder(folder_).broken.size(), 1u);
}

TEST_F(Corpus, SavingAgainRefreshesTheEntry) {
  CorpusEntry entry = some_entry(3);
  save(entry, folder_);
  entry.note = "seen again";
  const fs::path file = save(entry, folder_);
  EXPECT_EQ(load_file(file).entry.note, "seen again");
  EXPECT_EQ(load_folder(folder_).entries.size(), 1u);
}

TEST_F(Corpus, WordsThatAreNoTextAreReplacedNotLost) {
  CorpusEntry entry = some_entry(3);
  entry.summary = "bytes \xff\xfe here";
  const StoredEntry stored = load_file(save(entry, folder_));
  EXPECT_EQ(stored.entry.summary, "bytes \xef\xbf\xbd\xef\xbf\xbd here");
}

TEST_F(Corpus, LeavesNoTemporaryFile) {
  save(some_entry(1), folder_);
  write_atomically(folder_ / "text", "hello");
  EXPECT_EQ(read(folder_ / "text"), "hello");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
}

TEST_F(Corpus, AFailedWriteLeavesTheOldFileAndNoTemporary) {
  // Renaming onto a folder that is not empty fails after the temporary file was written.
  fs::create_directories(folder_ / "taken.json" / "inside");
  EXPECT_THROW(write_atomically(folder_ / "taken.json", "text"), fs::filesystem_error);
  EXPECT_TRUE(fs::exists(folder_ / "taken.json" / "inside"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Corpus, AFailedWriteNamesTheFile) {
  try {
    write_atomically(folder_ / "absent" / "entry.json", "text");
    FAIL() << "wrote into a folder that does not exist";
  } catch (const fs::filesystem_error& error) {
    EXPECT_EQ(error.path1(), folder_ / "absent" / "entry.json");
  }
}

TEST_F(Corpus, AReaderSeesOneWholeVersionWhileOthersAreWritten) {
  const fs::path file = folder_ / "versions";
  const std::string first(200000, 'a'), second(300000, 'b');
  write_atomically(file, first);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) write_atomically(file, i % 2 ? first : second);
    done = true;
  });
  std::int64_t reads = 0;
  do {
    const std::string text = read(file);
    EXPECT_TRUE(text == first || text == second) << text.size();
    ++reads;
  } while (!done);
  writer.join();
  EXPECT_GT(reads, 0);
}

TEST_F(Corpus, WritersOfTheSameEntryDoNotDisturbEachOther) {
  const CorpusEntry entry = some_entry(9);
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int j = 0; j < 10; ++j) save(entry, folder_);
    });
  }
  for (auto& writer : writers) writer.join();
  expect_equal(load_file(save(entry, folder_)).entry, entry);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Corpus, UnfinishedFilesAreNotPartOfAFolder) {
  save(some_entry(1), folder_);
  write(".0123456789abcdef.json.1.0.tmp", "{\"schema\":1,");
  write(".hidden.json", "{");
  write("notes.txt", "no entry");
  const Loaded loaded = load_folder(folder_);
  EXPECT_EQ(loaded.entries.size(), 1u);
  EXPECT_TRUE(loaded.broken.empty());
}

TEST_F(Corpus, BrokenFilesAreReportedAndTheRestIsRead) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) save(some_entry(seed), folder_);
  write("broken.json", "{\"schema\":1,");
  write("empty.json", "");
  fs::create_directory(folder_ / "folder.json");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.json").c_str(), 0600), 0);
  const Loaded loaded = load_folder(folder_);
  EXPECT_EQ(loaded.entries.size(), 3u);
  ASSERT_EQ(loaded.broken.size(), 4u);
  for (const BrokenEntry& broken : loaded.broken) {
    EXPECT_NE(broken.message.find(broken.file.string()), std::string::npos) << broken.message;
  }
}

TEST_F(Corpus, EntriesComeSortedByName) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) save(some_entry(seed), folder_);
  const Loaded loaded = load_folder(folder_);
  EXPECT_TRUE(std::is_sorted(loaded.entries.begin(), loaded.entries.end(),
                             [](const auto& a, const auto& b) { return a.hash < b.hash; }));
}

TEST_F(Corpus, AFolderThatDoesNotExistIsEmpty) {
  const Loaded loaded = load_folder(folder_ / "absent");
  EXPECT_TRUE(loaded.entries.empty());
  EXPECT_TRUE(loaded.broken.empty());
}

TEST_F(Corpus, FindsByTheBeginningOfTheHash) {
  const CorpusEntry entry = some_entry(5);
  const std::string hash = model::content_hash(entry.scenario);
  save(entry, folder_ / "failing");
  const std::vector<fs::path> folders{folder_ / "regression", folder_ / "failing"};
  const auto found = find_by_hash(folders, hash.substr(0, 6));
  ASSERT_TRUE(found.has_value());
  expect_equal(found->entry, entry);
  EXPECT_TRUE(find_by_hash(folders, hash).has_value());
  EXPECT_FALSE(find_by_hash(folders, "").has_value());
  EXPECT_FALSE(find_by_hash(folders, hash + "0").has_value());
  EXPECT_FALSE(find_by_hash(folders, "../failing/" + hash).has_value());
}

TEST_F(Corpus, APrefixOfSeveralEntriesFindsNone) {
  write("ab12.json", model::to_json(plain_scenario({Past{{1}}})).dump());
  write("ab34.json", model::to_json(plain_scenario({Past{{2}}})).dump());
  EXPECT_FALSE(find_by_hash({folder_}, "ab").has_value());
  EXPECT_TRUE(find_by_hash({folder_}, "ab3").has_value());
}

TEST_F(Corpus, TheSameEntryInTwoFoldersIsOneEntry) {
  const CorpusEntry entry = some_entry(5);
  save(entry, folder_ / "origin");
  save(entry, folder_ / "failing");
  const auto found = find_by_hash({folder_ / "failing", folder_ / "origin"},
                                  model::content_hash(entry.scenario).substr(0, 8));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->file.parent_path(), folder_ / "failing");
}

TEST_F(Corpus, AMissingFileIsAFileSystemError) {
  EXPECT_THROW(load_file(folder_ / "absent.json"), fs::filesystem_error);
  EXPECT_THROW(load_file(folder_), fs::filesystem_error);
}

TEST_F(Corpus, NamesWhatIsWrongWithAFile) {
  const std::string scenario = model::to_json(plain_scenario({Past{{1}}})).dump();
  const auto entry = [&](const std::string& fields) {
    return complaint("{" + fields + ",\"scenario\":" + scenario + "}");
  };
  EXPECT_EQ(entry("\"schema\":1"), "accepted");
  EXPECT_EQ(complaint("").rfind("not JSON: parse error at line 1, column 1", 0), 0u);
  EXPECT_EQ(complaint("[1]"), "text = [1]: must be an object");
  EXPECT_EQ(entry("\"property\":\"p\""), "schema = absent: write 1");
  EXPECT_EQ(entry("\"schema\":2"),
            "schema = 2: is newer than this build understands (1); use a newer kvcheck");
  EXPECT_EQ(entry("\"schema\":0"), "schema = 0: must be at least 1");
  EXPECT_EQ(entry("\"schema\":\"1\""), "schema = \"1\": must be an integer");
  EXPECT_EQ(entry("\"schema\":1,\"property\":7"), "property = 7: must be a text");
  EXPECT_EQ(entry("\"schema\":1,\"seed\":-1"), "seed = -1: must be an integer, at least 0");
  EXPECT_EQ(entry("\"schema\":1,\"seed\":1.5"), "seed = 1.5: must be an integer, at least 0");
  EXPECT_EQ(entry("\"schema\":1,\"case_index\":-2"),
            "case_index = -2: must be an integer, at least -1");
  EXPECT_EQ(entry("\"schema\":1,\"case_index\":18446744073709551615"),
            "case_index = 18446744073709551615: must be an integer, at least -1");
  EXPECT_NE(entry("\"schema\":1,\"command\":\"rm\"").find("unknown field"), std::string::npos);
  EXPECT_NE(complaint("{\"schema\":1,\"scenario\":5}").find("must be an object"),
            std::string::npos);
  EXPECT_NE(complaint("{\"schema\":1,\"operator\":\"gqa\",\"steps\":5}").find("steps"),
            std::string::npos);
}

TEST_F(Corpus, StopsAtDeepNesting) {
  EXPECT_EQ(complaint(std::string(2000000, '[')),
            "text = lists within lists: must be at most 32 deep");
  std::string objects;
  for (int i = 0; i < 300000; ++i) objects += "{\"a\":";
  EXPECT_EQ(complaint(objects), "text = lists within lists: must be at most 32 deep");
}

TEST_F(Corpus, RefusesAHugeFileWithoutReadingIt) {
  const fs::path file = write("entry.json", "{");
  fs::resize_file(file, 100u << 20);
  try {
    load_file(file);
    FAIL() << "read 100 MiB";
  } catch (const ScenarioError& error) {
    EXPECT_NE(std::string(error.what()).find("must be at most 4194304 bytes"), std::string::npos);
  }
  EXPECT_EQ(complaint("{" + std::string((4u << 20) - 1, ' ')).substr(0, 8), "not JSON");
  EXPECT_NE(complaint("{" + std::string(4u << 20, ' ')).find("must be at most"), std::string::npos);
}

TEST_F(Corpus, ALongTokenDoesNotFloodTheMessage) {
  // The bad byte ends a text of a thousand letters, which the parser quotes.
  const std::string message =
      complaint("{\"schema\":1,\"summary\":\"" + std::string(1000, 'y') + "\xff\"}");
  EXPECT_EQ(message.rfind("not JSON: ", 0), 0u);
  EXPECT_EQ(message.find("yy"), std::string::npos) << message;
}

TEST_F(Corpus, RefusesBytesThatAreNoText) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(i * 37);
  EXPECT_EQ(complaint(bytes).rfind("not JSON: ", 0), 0u);
}

}  // namespace
}  // namespace kvcheck::shrinkers
