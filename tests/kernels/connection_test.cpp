// Connections to an adapter that keeps the protocol and checks that the other end does.
#include "kernels/process/connection.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/process/session_head.h"
#include "tests/kernels/expect_contains.h"

namespace kvcheck::kernels {
namespace {

using namespace std::chrono_literals;

/// The echo target, greeted.
class EchoConnection : public ::testing::Test {
 protected:
  EchoConnection()
      : connection_("echo", "python3",
                    {"-B", fmt::format("{}/echo_adapter.py", KVCHECK_TEST_ADAPTERS)}) {}

  Reply ask(std::string head, std::vector<NamedTensor> tensors = {}) {
    const std::int64_t id = connection_.next_id();
    // Heads of the tests are objects without an id.
    head = fmt::format("{{\"id\":{},{}", id, head.substr(1));
    return connection_.ask(
        {"a test", id, {std::move(head), std::move(tensors)}, 60s, [](std::span<const TensorHead>) {
         }});
  }
  std::string detail_of(const std::string& head, const std::vector<NamedTensor>& tensors = {}) {
    try {
      ask(head, tensors);
    } catch (const Broken& broken) {
      EXPECT_EQ(broken.failure.kind, Failure::Kind::crash);
      return broken.failure.detail;
    }
    return "(no failure)";
  }
  void greet() { ask(R"({"kind":"hello","protocol":1})"); }
  void open() {
    SessionConfig config;
    config.capacity = 4;
    const std::int64_t id = connection_.next_id();
    connection_.ask({"open", id, open_request(id, 1, config), 60s, [](auto) {}});
  }

  Connection connection_;
};

TEST_F(EchoConnection, GivesBackTheHeadAsItCame) {
  const Reply reply = ask(R"({"kind":"hello","protocol":1})");
  EXPECT_EQ(reply.head.kind, AnswerHead::Kind::ok);
  expect_contains(reply.text, "\"capabilities\"");
  EXPECT_FALSE(connection_.broken());
}

TEST_F(EchoConnection, StopsAtAKindThatItDoesNotKnow) {
  greet();
  expect_contains(detail_of(R"({"kind":"fork","session":1})"),
                  "request kind 'fork' is unknown to protocol 1");
  EXPECT_TRUE(connection_.broken());
  expect_contains(detail_of(R"({"kind":"hello","protocol":1})"), "fork");
}

TEST_F(EchoConnection, StopsAtAProtocolThatItDoesNotSpeak) {
  expect_contains(detail_of(R"({"kind":"hello","protocol":2})"), "this adapter speaks 1");
}

TEST_F(EchoConnection, WantsTheHandshakeFirst) {
  expect_contains(detail_of(R"({"kind":"open","session":1,"config":{}})"),
                  "open came before hello");
}

TEST_F(EchoConnection, RefusesAConfigurationThatItDoesNotKnow) {
  greet();
  const Reply reply = ask(R"({"kind":"open","session":1,"config":{"logit_bias":30}})");
  EXPECT_EQ(reply.head.kind, AnswerHead::Kind::refused);
  expect_contains(reply.head.text, "config.logit_bias");
}

TEST_F(EchoConnection, StopsAtAnIncompleteConfiguration) {
  greet();
  expect_contains(detail_of(R"({"kind":"open","session":1,"config":{"op":"gqa"}})"),
                  "config.opset is missing");
}

TEST_F(EchoConnection, StopsAtAFieldOfAStepThatItDoesNotKnow) {
  greet();
  open();
  expect_contains(
      detail_of(R"({"kind":"step","session":1,"tokens":[1],"queries":[1],"fork_of":3})"),
      "unknown field 'fork_of'");
}

TEST_F(EchoConnection, StopsAtASessionThatIsNotOpen) {
  greet();
  open();
  expect_contains(detail_of(R"({"kind":"present","session":2})"), "session 2 is not open");
}

TEST_F(EchoConnection, ComparesTensorsWithTheSession) {
  greet();
  open();
  const Tensor query = Tensor::zeros(ElementType::f32, {1, 1, 1, 8});
  const Tensor key = Tensor::zeros(ElementType::f32, {1, 1, 1, 7});
  const std::vector<NamedTensor> tensors{{"query", &query}, {"key", &key}};
  expect_contains(detail_of(R"({"kind":"step","session":1,"tokens":[1],"queries":[1],"tensors":[)"
                            R"({"name":"query","type":"f32","shape":[1,1,1,8]},)"
                            R"({"name":"key","type":"f32","shape":[1,1,1,7]}]})",
                            tensors),
                  "key is f32 [1, 1, 1, 7]; it must be f32 [1, 1, 1, 8]");
}

TEST_F(EchoConnection, WantsTheTensorsToFillTheBody) {
  greet();
  open();
  const Tensor rows = Tensor::zeros(ElementType::f32, {3});
  const std::vector<NamedTensor> tensors{{"rows.key", &rows}};
  expect_contains(detail_of(R"({"kind":"load","session":1,"lengths":[0],"tensors":[)"
                            R"({"name":"rows.key","type":"f32","shape":[2]}]})",
                            tensors),
                  "take 8 bytes, its body 12");
}

TEST_F(EchoConnection, WantsOneCountForEveryEntry) {
  greet();
  open();
  expect_contains(detail_of(R"({"kind":"rollback","session":1,"tokens":[1,1]})"),
                  "tokens = [1, 1]: must hold 1 counts");
}

TEST_F(EchoConnection, StopsAtAHeadThatIsNoJson) { expect_contains(detail_of("{]"), "not JSON"); }

}  // namespace
}  // namespace kvcheck::kernels
