#include "kernels/bench/peer.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvcheck::kernels::bench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kFake = std::string(KVCHECK_TEST_ADAPTERS) + "/../bench/fake_peer.py";

Problem small() {
  Problem problem;
  problem.query_heads = 2;
  problem.kv_heads = 1;
  problem.head_size = 8;
  problem.length = 4;
  return problem;
}

/// What is said of a peer that makes `mistake`; empty when nothing is thrown.
std::string broken(const std::string& mistake,
                   std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  try {
    Peer peer("python3", {"-B", kFake, mistake}, limit);
    peer.time(small(), 0, true);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Peer, SaysItsNameAndAnswersTimesAndOutputs) {
  Peer peer("python3", {"-B", kFake});
  EXPECT_EQ(peer.name(), "fake");
  EXPECT_EQ(peer.version(), "7.5");
  PeerAnswer answer = peer.time(small(), .01, true);
  EXPECT_EQ(answer.times, (std::vector<double>{2e6, 1e6, 3e6}));
  EXPECT_EQ(answer.output.size(), 16u);
  EXPECT_EQ(answer.refused, "");
  answer = peer.time(small(), .01, false);
  EXPECT_EQ(answer.times.size(), 3u);
  EXPECT_TRUE(answer.output.empty());
}

TEST(Peer, ARefusalIsAnAnswer) {
  Peer peer("python3", {"-B", kFake, "refuses"});
  EXPECT_EQ(peer.time(small(), 0, true).refused, "no such operator");
  EXPECT_EQ(peer.time(small(), 0, false).refused, "no such operator");
}

TEST(Peer, WhatIsNoAnswerBreaksIt) {
  EXPECT_THAT(broken("no-greeting"), HasSubstr("answers no JSON object: hello"));
  EXPECT_THAT(broken("nonsense"), HasSubstr("answers no JSON object: nonsense"));
  EXPECT_THAT(broken("no-times"), HasSubstr("answers no times above 0"));
  EXPECT_THAT(broken("time-zero"), HasSubstr("answers no times above 0"));
  EXPECT_THAT(broken("few-outputs"), HasSubstr("answers 1 outputs instead of 16"));
}

TEST(Peer, OneThatDiesIsSaidWithItsLastWords) {
  EXPECT_THAT(broken("dies"),
              testing::AllOf(HasSubstr("exit code 3"), HasSubstr("last words: out of memory")));
}

TEST(Peer, OneThatHangsIsLeftAfterTheLimit) {
  EXPECT_THAT(broken("silent", std::chrono::milliseconds(1500)), HasSubstr("in time"));
}

TEST(Peer, ReasonsNameTheRemedy) {
  const fs::path folder = fs::path(testing::TempDir()) / "kvcheck_peer_test";
  fs::remove_all(folder);
  RegistryOptions options;
  options.adapters = folder / "kernels" / "adapters";
  EXPECT_THAT(peer_problem("jax", options), HasSubstr("KVCHECK_ENVIRONMENTS"));
  options.environments = folder / "environments";
  EXPECT_THAT(peer_problem("jax", options),
              testing::AllOf(HasSubstr("is not there"), HasSubstr("bench --peer jax")));
  fs::create_directories(options.environments);
  std::ofstream(options.environments / "jax.failed") << "no package index answered\n";
  EXPECT_THAT(peer_problem("jax", options), HasSubstr("no package index answered"));
  fs::create_directories(options.environments / "jax" / "bin");
  std::ofstream(options.environments / "jax" / "ready") << "x";
  std::ofstream(options.environments / "jax" / "bin" / "python") << "x";
  EXPECT_THAT(peer_problem("jax", options), HasSubstr("jax_peer.py is missing"));
  EXPECT_THROW(start_peer("jax", options), std::runtime_error);
  fs::create_directories(folder / "kernels" / "bench" / "peers");
  std::ofstream(folder / "kernels" / "bench" / "peers" / "jax_peer.py") << "x";
  EXPECT_EQ(peer_problem("jax", options), "");
  EXPECT_EQ(peer_problem("exec:/nowhere", options), "");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace kvcheck::kernels::bench
