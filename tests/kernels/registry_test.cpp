// Names of targets and what stands in their way.
#include "kernels/registry.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/kernels/expect_contains.h"

namespace kvcheck::kernels {
namespace {

namespace fs = std::filesystem;

/// A folder of environments and one of adapters, gone at the end.
class Registry : public ::testing::Test {
 protected:
  Registry() {
    std::string pattern = (fs::temp_directory_path() / "kvcheck-registry-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    options_.environments = root_ / "environments";
    options_.adapters = root_ / "adapters";
    fs::create_directories(options_.environments);
    fs::create_directories(options_.adapters);
    // The echo target stands in for the adapter that needs a library.
    fs::create_symlink(fs::path(KVCHECK_TEST_ADAPTERS) / "echo_adapter.py",
                       options_.adapters / "onnxruntime_adapter.py");
  }
  ~Registry() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  static void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  static void write_script(const fs::path& file, const std::string& command) {
    write(file, "#!/bin/sh\nexec " + command + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  void make_environment(const std::string& name) const {
    write_script(options_.environments / name / "bin" / "python", "python3 \"$@\"");
    write(options_.environments / name / "ready", "stamp\n");
    write(options_.environments / name / "requirements.txt", "numpy==2\nonnxruntime==1.32.0\n");
  }
  TargetInfo info(const std::string& name) const {
    for (const TargetInfo& target : list_targets(options_)) {
      if (target.name == name) return target;
    }
    ADD_FAILURE() << name << " is not listed";
    return {};
  }
  Unavailable unavailable(const std::string& name) const {
    auto made = make_target(name, options_);
    if (auto* reason = std::get_if<Unavailable>(&made)) return *reason;
    ADD_FAILURE() << name << " was made";
    return {};
  }

  fs::path root_;
  RegistryOptions options_;
};

TEST_F(Registry, MakesOwnTargetsAndTheirFaults) {
  auto made = make_target("cpu-naive", options_);
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Target>>(made));
  EXPECT_TRUE(std::get<std::unique_ptr<Target>>(made)->capabilities().outputs);
  const auto faults = list_faults();
  ASSERT_FALSE(faults.empty());
  for (const FaultInfo& fault : faults) {
    EXPECT_TRUE(std::holds_alternative<std::unique_ptr<Target>>(
        make_target(fmt::format("{}+{}", fault.target, fault.name), options_)))
        << fault.name;
  }
}

TEST_F(Registry, SuggestsTheNearestNames) {
  EXPECT_TRUE(unavailable("cpu-navie").unknown);
  expect_contains(unavailable("cpu-navie").reason, "did you mean cpu-naive?");
  expect_contains(unavailable("onxruntime").reason, "did you mean onnxruntime?");
  expect_contains(unavailable("cpu-naive+window_one_wid").reason, "did you mean window_one_wide?");
  expect_contains(unavailable("cpu-naive+").reason, "kvcheck list faults");
  EXPECT_EQ(unavailable("something else entirely").reason.find("did you mean"), std::string::npos);
  EXPECT_TRUE(unavailable("").unknown);
  EXPECT_TRUE(unavailable(std::string(100000, 'x')).unknown);
}

TEST_F(Registry, ListsOwnTargetsFirst) {
  const auto targets = list_targets(options_);
  ASSERT_GE(targets.size(), 2U);
  EXPECT_EQ(targets[0].name, "cpu-naive");
  EXPECT_TRUE(targets[0].available);
  EXPECT_FALSE(targets[0].version.empty());
}

TEST_F(Registry, SaysHowToGetAnEnvironment) {
  EXPECT_FALSE(info("onnxruntime").available);
  expect_contains(info("onnxruntime").reason, "./kvcheck run --target onnxruntime sets it up");
  expect_contains(unavailable("onnxruntime@1.31.1").reason,
                  "./kvcheck run --target onnxruntime@1.31.1 sets it up");
  EXPECT_FALSE(unavailable("onnxruntime@1.31.1").unknown);
  options_.environments.clear();
  expect_contains(info("onnxruntime").reason, "KVCHECK_ENVIRONMENTS");
}

TEST_F(Registry, PassesOnWhyAnEnvironmentFailed) {
  write(options_.environments / "onnxruntime@1.2.3.failed", "there is no release 1.2.3\n");
  const TargetInfo target = info("onnxruntime@1.2.3");
  EXPECT_FALSE(target.available);
  EXPECT_EQ(target.version, "1.2.3");
  expect_contains(target.reason, "could not be made: there is no release 1.2.3");
}

TEST_F(Registry, NeedsTheStampOfACompleteEnvironment) {
  make_environment("onnxruntime");
  EXPECT_TRUE(info("onnxruntime").available);
  EXPECT_EQ(info("onnxruntime").version, "1.32.0");
  EXPECT_EQ(info("onnxruntime").reason, "");
  fs::remove(options_.environments / "onnxruntime" / "ready");
  EXPECT_FALSE(info("onnxruntime").available);
}

TEST_F(Registry, NeedsTheAdapter) {
  make_environment("onnxruntime");
  fs::remove(options_.adapters / "onnxruntime_adapter.py");
  expect_contains(info("onnxruntime").reason, "KVCHECK_ADAPTERS");
}

TEST_F(Registry, ListsEveryReleaseInTheOrderOfItsNumbers) {
  for (const char* name : {"onnxruntime@1.30.0", "onnxruntime@1.9.1", "onnxruntime@1.30.0.1",
                           "onnxruntime@..", "onnxruntime@main", "browser"}) {
    make_environment(name);
  }
  std::vector<std::string> names;
  for (const TargetInfo& target : list_targets(options_)) names.push_back(target.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "cpu-naive", "cpu-naive-q8", "cpu-naive-q4", "cpu-flash", "cpu-flash-dot",
                "cpu-flash-q8", "cpu-flash-q4", "cuda-simt", "cuda-simt-q8", "cuda", "cuda-q8",
                "onnxruntime", "onnxruntime@1.9.1", "onnxruntime@1.30.0", "onnxruntime@1.30.0.1"}));
}

TEST_F(Registry, TakesNoPathForARelease) {
  make_environment("onnxruntime");
  for (const char* release : {"../onnxruntime", "1.32.0/../../x", "..", ".", "", "1", "1.", ".1",
                              "1..2", "1.2.3.4.5", "1.x", "1.2 ", "1.2\n", "9999999.1"}) {
    const Unavailable reason = unavailable(fmt::format("onnxruntime@{}", release));
    EXPECT_TRUE(reason.unknown) << release;
    expect_contains(reason.reason, "write it like onnxruntime@1.32.0");
  }
}

TEST_F(Registry, StartsAForeignTargetWithItsOwnPython) {
  make_environment("onnxruntime@1.31.1");
  auto made = make_target("onnxruntime@1.31.1", options_);
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Target>>(made))
      << std::get<Unavailable>(made).reason;
  EXPECT_EQ(std::get<std::unique_ptr<Target>>(made)->capabilities().name, "echo");
}

TEST_F(Registry, SaysWhyAForeignTargetDoesNotStart) {
  make_environment("onnxruntime");
  write_script(options_.environments / "onnxruntime" / "bin" / "python",
               "sh -c 'echo ImportError: no onnxruntime >&2; exit 1'");
  const Unavailable reason = unavailable("onnxruntime");
  EXPECT_FALSE(reason.unknown);
  expect_contains(reason.reason, "ImportError: no onnxruntime");
  expect_contains(reason.reason, "./kvcheck run --target onnxruntime sets it up afresh");
}

TEST_F(Registry, RunsAProgramThatAPersonNames) {
  const fs::path program = root_ / "my-target";
  write_script(program, fmt::format("python3 -B '{}/echo_adapter.py'", KVCHECK_TEST_ADAPTERS));
  auto made = make_target("exec:" + program.string(), options_);
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Target>>(made))
      << std::get<Unavailable>(made).reason;
  EXPECT_EQ(std::get<std::unique_ptr<Target>>(made)->capabilities().version, "1.0");

  fs::permissions(program, fs::perms::owner_read);
  expect_contains(unavailable("exec:" + program.string()).reason, "chmod +x");
  expect_contains(unavailable("exec:" + (root_ / "none").string()).reason, "no such file");
  EXPECT_TRUE(unavailable("exec:").unknown);
  EXPECT_TRUE(unavailable("exec:" + root_.string()).unknown);
}

TEST_F(Registry, RefusesAProgramThatDoesNotGreet) {
  const fs::path program = root_ / "mute";
  write_script(program, "true");
  expect_contains(unavailable("exec:" + program.string()).reason, "README.md");
}

TEST_F(Registry, ReadsItsFoldersFromTheEnvironment) {
  ::setenv("KVCHECK_ENVIRONMENTS", "/some/environments", 1);
  ::setenv("KVCHECK_ADAPTERS", "/some/adapters", 1);
  EXPECT_EQ(RegistryOptions::from_environment().environments, "/some/environments");
  EXPECT_EQ(RegistryOptions::from_environment().adapters, "/some/adapters");
  ::unsetenv("KVCHECK_ENVIRONMENTS");
  ::unsetenv("KVCHECK_ADAPTERS");
  EXPECT_TRUE(RegistryOptions::from_environment().environments.empty());
  EXPECT_TRUE(fs::exists(RegistryOptions::from_environment().adapters / "kvcheck_adapter.py"));
}

}  // namespace
}  // namespace kvcheck::kernels
