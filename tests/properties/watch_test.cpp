// A request that does not return is told with its case; one that returns is not.
#include "properties/watch.h"

#include <condition_variable>

#include <gtest/gtest.h>

#include "kernels/cpu/naive/cpu_naive.h"
#include "model/scenario_json.h"
#include "properties/case_judge.h"
#include "shrinkers/corpus.h"

namespace kvcheck::properties {
namespace {

/// Opens nothing until it is told to.
class StuckTarget : public kernels::Target {
 public:
  const kernels::Capabilities& capabilities() const override { return capabilities_; }
  kernels::Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig&) override {
    std::unique_lock lock(mutex);
    released.wait(lock, [&] { return free; });
    return kernels::Refusal{"released"};
  }
  std::mutex mutex;
  std::condition_variable released;
  bool free = false;

 private:
  kernels::Capabilities capabilities_ = kernels::make_cpu_naive()->capabilities();
};

TEST(Watchdog, TellsTheCaseOfARequestThatHangs) {
  auto stuck = std::make_unique<StuckTarget>();
  StuckTarget& target = *stuck;
  std::atomic<int> calls{0};
  std::string text;
  Watchdog watchdog(std::chrono::milliseconds(200), [&](const WatchSlot& slot) {
    text = slot.target + " " + model::canonical_text(*slot.scenario);
    ++calls;
    const std::scoped_lock lock(target.mutex);
    target.free = true;
    target.released.notify_all();
  });
  const auto watched = watchdog.watch(std::move(stuck));
  const auto scenario =
      model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[{"append":5}]})");
  Watchdog::note(scenario);
  const auto answer = watched->open({});
  EXPECT_TRUE(std::holds_alternative<kernels::Refusal>(answer));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(text, "cpu-naive " + model::canonical_text(scenario));
}

TEST(Watchdog, LetsATargetThatAnswersGoOn) {
  Watchdog watchdog(std::chrono::seconds(60), [](const WatchSlot&) { FAIL(); });
  const auto watched = watchdog.watch(kernels::make_cpu_naive());
  const auto scenario = model::parse_scenario(
      R"({"schema":1,"operator":"gqa","steps":[{"past":2},{"append":2},{"rollback":1},{"append":1}]})");
  Watchdog::note(scenario);
  for (const char* id : {"target.answers", "values.within_bound", "cache.resident_range"}) {
    EXPECT_EQ(judge_fresh(*watched, scenario, *find_property(id)).verdict, Verdict::passed) << id;
  }
}

using CrashDeathTest = testing::Test;

TEST(CrashDeathTest, ACrashLeavesItsScenario) {
  const auto file = std::filesystem::temp_directory_path() / "kvcheck_crash.json";
  std::filesystem::remove(file);
  EXPECT_DEATH(
      {
        write_scenario_on_crash(file);
        const auto scenario =
            model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[{"append":6}]})");
        Watchdog::note(scenario);
        std::abort();
      },
      "crashed in this process");
  EXPECT_EQ(shrinkers::load_file(file).entry.scenario,
            model::parse_scenario(R"({"schema":1,"operator":"gqa","steps":[{"append":6}]})"));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace kvcheck::properties
