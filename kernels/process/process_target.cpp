// Target and sessions on top of a connection.
#include "kernels/process/process_target.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/process/call_head.h"
#include "kernels/process/capabilities_head.h"
#include "kernels/process/connection.h"
#include "kernels/process/protocol.h"
#include "kernels/process/session_head.h"
#include "kernels/process/shape_check.h"

namespace kvcheck::kernels {
namespace {

using std::chrono::milliseconds;

/// What target and sessions share; outlives the target while a session lives.
struct Shared {
  ProcessOptions options;
  Capabilities claims;
};

void no_tensors(std::span<const TensorHead> tensors) {
  if (tensors.empty()) return;
  throw ProtocolError(
      fmt::format("the answer holds {}; this request takes no tensor", tensors.front().name));
}

/// Asks and turns refusals and failures into the answers of the interface.
template <class T, class Take>
Answer<T> ask(Connection& connection, const Request& request, Take&& take) {
  try {
    Reply reply = connection.ask(request);
    if (reply.head.kind == AnswerHead::Kind::refused) return Refusal{std::move(reply.head.text)};
    return take(std::move(reply));
  } catch (Broken& broken) {
    return std::move(broken.failure);
  }
}

/// Hands each tensor of an answer to whoever visits its name.
auto taken_from(Reply& reply) {
  return [&reply](std::string_view name, auto& tensor) {
    for (std::size_t i = 0; i < reply.tensors.size(); ++i) {
      if (reply.head.tensors[i].name == name) tensor = std::move(reply.tensors[i]);
    }
  };
}

CacheRows take_rows(Reply& reply) {
  CacheRows rows;
  each_row_tensor(rows, taken_from(reply));
  return rows;
}

class ProcessSession final : public Session {
 public:
  ProcessSession(std::shared_ptr<const Shared> shared, std::shared_ptr<Connection> connection,
                 std::int64_t number, const SessionConfig& config)
      : shared_(std::move(shared)),
        connection_(std::move(connection)),
        number_(number),
        config_(config) {}

  ~ProcessSession() override {
    if (connection_->broken()) return;
    try {
      const auto id = connection_->next_id();
      connection_->ask(request("close", id, close_request(id, number_)));
    } catch (const Broken&) {
      // The connection remembers it, and the next open() starts the program again.
    }
  }
  ProcessSession(const ProcessSession&) = delete;
  ProcessSession& operator=(const ProcessSession&) = delete;

  Answer<StepResult> step(const StepRequest& step) override {
    check_step_request(step, config_);
    const bool want_rows = step.want_rows && shared_->claims.rows;
    const std::int64_t queries = *std::max_element(step.queries.begin(), step.queries.end());
    const auto id = connection_->next_id();
    Request asked = request("step", id, step_request(id, number_, step, want_rows));
    asked.check = [&](std::span<const TensorHead> heads) {
      check_step_answer(heads, queries, want_rows, shared_->claims, config_);
    };
    return ask<StepResult>(*connection_, asked, [&](Reply&& reply) {
      StepResult result;
      each_step_tensor(result, taken_from(reply));
      if (want_rows) result.rows = take_rows(reply);
      return result;
    });
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    check_counts("tokens", tokens, config_.batch);
    const auto id = connection_->next_id();
    return ask<std::monostate>(*connection_,
                               request("rollback", id, rollback_request(id, number_, tokens)),
                               [](Reply&&) { return std::monostate{}; });
  }

  Answer<std::monostate> load(const LoadRequest& load) override {
    check_load_request(load, config_);
    const auto id = connection_->next_id();
    return ask<std::monostate>(*connection_, request("load", id, load_request(id, number_, load)),
                               [](Reply&&) { return std::monostate{}; });
  }

  Answer<CacheRows> present() override {
    if (!shared_->claims.rows) return Refusal{"the target does not claim to hand out its rows"};
    const auto id = connection_->next_id();
    Request asked = request("present", id, present_request(id, number_));
    asked.check = [&](std::span<const TensorHead> heads) { check_rows_answer(heads, config_); };
    return ask<CacheRows>(*connection_, asked, [](Reply&& reply) { return take_rows(reply); });
  }

  std::string last_store(const ElementPlace& place) const override {
    if (!shared_->claims.has("last_store") || connection_->broken()) return "";
    const auto id = connection_->next_id();
    try {
      const Reply reply =
          connection_->ask(request("last_store", id, last_store_request(id, number_, place)));
      return reply.head.kind == AnswerHead::Kind::ok ? decode_last_store_answer(reply.text) : "";
    } catch (const Broken&) {
      return "";
    } catch (const ProtocolError&) {
      return "";
    }
  }

 private:
  Request request(std::string_view what, std::int64_t id, FrameContent content) const {
    return {what, id, std::move(content), shared_->options.time_limit, no_tensors};
  }

  std::shared_ptr<const Shared> shared_;
  std::shared_ptr<Connection> connection_;
  std::int64_t number_;
  SessionConfig config_;
};

class ProcessTarget final : public Target {
 public:
  explicit ProcessTarget(ProcessOptions options) : shared_(std::make_shared<Shared>()) {
    shared_->options = std::move(options);
  }

  const Capabilities& capabilities() const override { return shared_->claims; }

  Answer<std::unique_ptr<Session>> open(const SessionConfig& config) override {
    check_session_config(config);
    if (!connection_ || connection_->broken()) {
      if (auto failure = start()) return std::move(*failure);
    }
    const auto id = connection_->next_id();
    const std::int64_t number = ++last_session_;
    const Request request{"open", id, open_request(id, number, config), shared_->options.time_limit,
                          no_tensors};
    return ask<std::unique_ptr<Session>>(*connection_, request, [&](Reply&&) {
      return std::make_unique<ProcessSession>(shared_, connection_, number, config);
    });
  }

  Answer<CallResult> call(const OperatorCall& call) override {
    if (!shared_->claims.has("operator_calls")) return Target::call(call);
    if (!connection_ || connection_->broken()) {
      if (auto failure = start()) return std::move(*failure);
    }
    const auto id = connection_->next_id();
    const Request request{
        "call", id, call_request(id, call), shared_->options.time_limit,
        [&](std::span<const TensorHead> heads) { check_call_answer(heads, call); }};
    return ask<CallResult>(*connection_, request, [](Reply&& reply) {
      CallResult result;
      for (std::size_t i = 0; i < reply.tensors.size(); ++i) {
        result.outputs.push_back({reply.head.tensors[i].name, std::move(reply.tensors[i])});
      }
      return result;
    });
  }

  /// Starts the program and shakes hands; empty = it is ready.
  std::optional<Failure> start() {
    const ProcessOptions& options = shared_->options;
    connection_.reset();
    try {
      auto connection =
          std::make_shared<Connection>(options.label, options.program, options.arguments);
      const auto id = connection->next_id();
      Capabilities claims;
      const Request request{"hello", id, hello_request(id), options.start_limit, no_tensors};
      const Reply reply = connection->ask(request);
      if (reply.head.kind == AnswerHead::Kind::refused) {
        return Failure{Failure::Kind::nonsense,
                       fmt::format("{} refuses the handshake: {}", options.label, reply.head.text)};
      }
      claims = decode_hello(reply.text);
      if (greeted_ &&
          (claims.name != shared_->claims.name || claims.version != shared_->claims.version)) {
        return Failure{
            Failure::Kind::nonsense,
            fmt::format("{} came back as {} {}; it was {} {}", options.label, claims.name,
                        claims.version, shared_->claims.name, shared_->claims.version)};
      }
      // What was claimed once holds for the whole life of the target: readers keep references.
      if (!greeted_) shared_->claims = std::move(claims);
      greeted_ = true;
      connection_ = std::move(connection);
      return std::nullopt;
    } catch (Broken& broken) {
      return std::move(broken.failure);
    } catch (const ProtocolError& error) {
      return Failure{Failure::Kind::nonsense, fmt::format("{} answered hello with nonsense: {}",
                                                          options.label, error.what())};
    } catch (const std::runtime_error& error) {
      return Failure{Failure::Kind::crash, error.what()};
    }
  }

 private:
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Connection> connection_;
  bool greeted_ = false;
  std::int64_t last_session_ = 0;
};

}  // namespace

std::variant<std::unique_ptr<Target>, Failure> make_process_target(ProcessOptions options) {
  if (options.label.empty()) options.label = options.program;
  options.start_limit = std::max(options.start_limit, options.time_limit);
  auto target = std::make_unique<ProcessTarget>(std::move(options));
  if (auto failure = target->start()) return std::move(*failure);
  return target;
}

}  // namespace kvcheck::kernels
