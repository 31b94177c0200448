// A target that is served over two pipes, for tests that write its requests frame by frame.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "kernels/process/serve.h"
#include "kernels/process/session_head.h"
#include "tests/kernels/expect_contains.h"

namespace kvcheck::kernels {

/// Keeps what it is asked and answers as it is told.
class Told final : public Target {
 public:
  Told() { claims.name = "told"; }

  const Capabilities& capabilities() const override { return claims; }
  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    if (config.batch > 8) return Refusal{"too many"};
    ++sessions;
    return std::make_unique<ToldSession>(*this, sessions);
  }
  Answer<CallResult> call(const OperatorCall& call) override {
    called = call;
    return CallResult{{{"Y", Tensor::zeros(ElementType::f64, {2})}}};
  }

  Capabilities claims;
  int sessions = 0;
  int closed = 0;
  OperatorCall called;
  StepRequest stepped;
  LoadRequest loaded;
  ElementPlace place;
  std::function<Answer<StepResult>(int session)> on_step = [](int session) {
    StepResult result;
    result.output = Tensor::zeros(ElementType::f32, {1, 1, 1, 8});
    result.output->bytes[0] = static_cast<std::byte>(session);
    result.rows = CacheRows{Tensor::zeros(ElementType::f32, {1, 1, 4, 8}),
                            Tensor::zeros(ElementType::f32, {1, 1, 4, 8})};
    return result;
  };

 private:
  class ToldSession final : public Session {
   public:
    ToldSession(Told& told, int number) : told_(told), number_(number) {}
    ~ToldSession() override { ++told_.closed; }
    ToldSession(const ToldSession&) = delete;
    ToldSession& operator=(const ToldSession&) = delete;
    Answer<StepResult> step(const StepRequest& step) override {
      told_.stepped = step;
      return told_.on_step(number_);
    }
    Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
      if (tokens[0] > 1) return Refusal{"only one"};
      return std::monostate{};
    }
    Answer<std::monostate> load(const LoadRequest& load) override {
      told_.loaded = load;
      return std::monostate{};
    }
    Answer<CacheRows> present() override { return CacheRows{}; }
    std::string last_store(const ElementPlace& place) const override {
      told_.place = place;
      return "stored at line 7";
    }

   private:
    Told& told_;
    int number_;
  };
};

/// A pipe whose ends can be closed one by one.
struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe";
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(int end) { ::close(std::exchange(ends[static_cast<std::size_t>(end)], -1)); }
  int reader() const { return ends[0]; }
  int writer() const { return ends[1]; }

  std::array<int, 2> ends{-1, -1};
};

/// A served target; the requests of a test are small enough for the pipe.
class Served : public testing::Test {
 protected:
  Served()
      : server_([this] {
          code_ = serve(told_, {requests_.reader(), answers_.writer()});
          answers_.close(1);
        }) {}
  ~Served() override {
    if (server_.joinable()) code();
  }

  /// The exit code, once the requests have ended.
  int code() {
    if (requests_.writer() >= 0) requests_.close(1);
    server_.join();
    return code_;
  }

  void write(const void* data, std::size_t bytes) const {
    EXPECT_EQ(::write(requests_.writer(), data, bytes), static_cast<ssize_t>(bytes));
  }
  void read(void* data, std::size_t bytes) const {
    for (std::size_t got = 0; got < bytes;) {
      const ssize_t now = ::read(answers_.reader(), static_cast<char*>(data) + got, bytes - got);
      ASSERT_GT(now, 0);
      got += static_cast<std::size_t>(now);
    }
  }

  /// The head of the answer; its body is left in body_.
  nlohmann::json answer() {
    std::array<std::byte, kPrefixBytes> bytes{};
    read(bytes.data(), bytes.size());
    const FramePrefix prefix = decode_prefix(bytes, FrameKind::answer);
    std::string head(prefix.head_bytes, '\0');
    read(head.data(), head.size());
    body_.resize(prefix.body_bytes);
    read(body_.data(), body_.size());
    return nlohmann::json::parse(head);
  }

  nlohmann::json ask(const FrameContent& content) {
    OutgoingFrame frame("a test", content.head, content.tensors);
    while (!frame.done()) {
      if (!frame.write_to(requests_.writer())) ADD_FAILURE() << "nobody reads";
    }
    return answer();
  }
  nlohmann::json ask(const std::string& head) { return ask(FrameContent{head, {}}); }

  void greet() { EXPECT_EQ(ask(hello_request(1))["answer"], "ok"); }
  void open(std::int64_t session) {
    EXPECT_EQ(ask(open_request(1, session, SessionConfig{}))["answer"], "ok");
  }
  void ready() {
    greet();
    open(1);
  }

  /// The error of a request, after which nothing more is served.
  std::string error_of(const FrameContent& content) { return error_in(ask(content)); }
  std::string error_of(const std::string& head) { return error_of(FrameContent{head, {}}); }
  std::string error_in(const nlohmann::json& answer) {
    EXPECT_EQ(answer["answer"], "error") << answer;
    EXPECT_EQ(code(), 1);
    return answer.value("detail", "");
  }

  static StepRequest one_token() {
    StepRequest step;
    step.tokens = step.queries = {1};
    step.query = step.key = step.value = Tensor::zeros(ElementType::f32, {1, 1, 1, 8});
    return step;
  }

  Pipe requests_, answers_;
  Told told_;
  int code_ = -1;
  std::vector<std::byte> body_;
  std::thread server_;
};

}  // namespace kvcheck::kernels
