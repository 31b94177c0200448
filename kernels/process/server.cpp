// One handler for each kind of request.
#include "kernels/process/server.h"

#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/process/answer_head.h"
#include "kernels/process/call_head.h"
#include "kernels/process/capabilities_head.h"
#include "kernels/process/protocol.h"
#include "kernels/process/session_head.h"
#include "kernels/process/shape_check.h"

namespace kvcheck::kernels {
namespace {

constexpr const char* kSession = "session";

/// What `take` makes of the value of an answer.
template <class T, class Take>
Answer<ServerResult> answer_of(Answer<T>&& answer, Take&& take) {
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  if (auto* failure = std::get_if<Failure>(&answer)) return std::move(*failure);
  return take(std::move(std::get<T>(answer)));
}

ServerResult nothing(std::monostate) { return {}; }

void append_rows(CacheRows& rows, ServerResult& result) {
  each_row_tensor(rows, [&](const char* name, Tensor& tensor) {
    result.tensors.push_back({name, std::move(tensor)});
  });
}

}  // namespace

FrameContent ServerResult::content(std::int64_t id) const {
  std::vector<NamedTensor> named;
  for (const OperatorCall::Input& output : tensors) named.push_back({output.name, &output.tensor});
  return ok_answer(id, fields, std::move(named));
}

const std::map<std::string, Server::Handler>& Server::handlers() {
  static const std::map<std::string, Handler> table{
      {"hello", &Server::hello},           {"open", &Server::open}, {"step", &Server::step},
      {"rollback", &Server::rollback},     {"load", &Server::load}, {"present", &Server::present},
      {"last_store", &Server::last_store}, {"call", &Server::call}, {"close", &Server::close}};
  return table;
}

Answer<ServerResult> Server::answer(const Fields& head, RequestTensors& tensors) {
  const auto kind = head.get<std::string>("kind");
  const auto found = handlers().find(kind);
  if (found == handlers().end()) {
    std::vector<std::string> known;
    for (const auto& [name, handler] : handlers()) known.push_back(name);
    throw ProtocolError(fmt::format("request kind '{}' is unknown to protocol {}; known are {}",
                                    shown(kind, 40), kProtocol, fmt::join(known, ", ")));
  }
  if (!greeted_ && kind != "hello") throw ProtocolError(fmt::format("{} came before hello", kind));
  return (this->*found->second)(head, tensors);
}

Server::Opened& Server::opened(const Fields& head) {
  const auto number = head.get<std::int64_t>(kSession);
  const auto found = sessions_.find(number);
  if (found == sessions_.end()) throw ProtocolError(fmt::format("session {} is not open", number));
  return found->second;
}

Answer<ServerResult> Server::hello(const Fields& head, RequestTensors& tensors) {
  tensors.finish();
  if (const auto protocol = head.get<std::int64_t>("protocol"); protocol != kProtocol) {
    throw ProtocolError(
        fmt::format("protocol {} is asked for; this target speaks {}", protocol, kProtocol));
  }
  greeted_ = true;
  return ServerResult{hello_fields(target_.capabilities()), {}};
}

Answer<ServerResult> Server::open(const Fields& head, RequestTensors& tensors) {
  const auto number = head.get<std::int64_t>(kSession);
  if (sessions_.contains(number)) {
    throw ProtocolError(fmt::format("session {} is open already", number));
  }
  auto decoded = decode_open(head, tensors);
  if (auto* refusal = std::get_if<Refusal>(&decoded)) return std::move(*refusal);
  tensors.finish();
  auto& config = std::get<SessionConfig>(decoded);
  check_session_config(config);
  return answer_of(target_.open(config), [&](std::unique_ptr<Session>&& session) {
    sessions_.emplace(number, Opened{std::move(config), std::move(session)});
    return ServerResult{};
  });
}

Answer<ServerResult> Server::step(const Fields& head, RequestTensors& tensors) {
  const auto& [config, session] = opened(head);
  const StepRequest step = decode_step(head, tensors);
  tensors.finish();
  check_step_request(step, config);
  return answer_of(session->step(step), [&](StepResult&& answer) {
    ServerResult result;
    each_step_tensor(answer, [&](const char* name, std::optional<Tensor>& tensor) {
      if (tensor) result.tensors.push_back({name, std::move(*tensor)});
    });
    if (step.want_rows && answer.rows) append_rows(*answer.rows, result);
    return result;
  });
}

Answer<ServerResult> Server::rollback(const Fields& head, RequestTensors& tensors) {
  const auto& [config, session] = opened(head);
  const std::vector<std::int64_t> tokens = decode_rollback(head);
  tensors.finish();
  check_counts("tokens", tokens, config.batch);
  return answer_of(session->rollback(tokens), nothing);
}

Answer<ServerResult> Server::load(const Fields& head, RequestTensors& tensors) {
  const auto& [config, session] = opened(head);
  const LoadRequest load = decode_load(head, tensors);
  tensors.finish();
  check_load_request(load, config);
  return answer_of(session->load(load), nothing);
}

Answer<ServerResult> Server::present(const Fields& head, RequestTensors& tensors) {
  tensors.finish();
  return answer_of(opened(head).session->present(), [](CacheRows&& rows) {
    ServerResult result;
    append_rows(rows, result);
    return result;
  });
}

Answer<ServerResult> Server::last_store(const Fields& head, RequestTensors& tensors) {
  tensors.finish();
  const ElementPlace place = decode_last_store(head);
  return ServerResult{last_store_fields(opened(head).session->last_store(place)), {}};
}

Answer<ServerResult> Server::call(const Fields& head, RequestTensors& tensors) {
  const OperatorCall call = decode_call(head, tensors);
  return answer_of(target_.call(call), [](CallResult&& result) {
    return ServerResult{nlohmann::json::object(), std::move(result.outputs)};
  });
}

Answer<ServerResult> Server::close(const Fields& head, RequestTensors& tensors) {
  tensors.finish();
  opened(head);
  sessions_.erase(head.get<std::int64_t>(kSession));
  return ServerResult{};
}

}  // namespace kvcheck::kernels
