// Server: the sessions of one connection, and what a target answers to each kind of request.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/process/fields.h"
#include "kernels/process/frame.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// An ok answer: its own fields, and its tensors.
struct ServerResult {
  nlohmann::json fields = nlohmann::json::object();
  std::vector<OperatorCall::Input> tensors;

  /// The frame; its tensors are those of this result.
  FrameContent content(std::int64_t id) const;
};

class Server {
 public:
  /// The target must outlive the server.
  explicit Server(Target& target) : target_(target) {}

  /// \throws ProtocolError or std::invalid_argument for a request that the protocol does not allow,
  ///         and what the target throws
  Answer<ServerResult> answer(const Fields& head, RequestTensors& tensors);

 private:
  struct Opened {
    SessionConfig config;
    std::unique_ptr<Session> session;
  };
  using Handler = Answer<ServerResult> (Server::*)(const Fields& head, RequestTensors& tensors);
  static const std::map<std::string, Handler>& handlers();

  Answer<ServerResult> hello(const Fields& head, RequestTensors& tensors);
  Answer<ServerResult> open(const Fields& head, RequestTensors& tensors);
  Answer<ServerResult> step(const Fields& head, RequestTensors& tensors);
  Answer<ServerResult> rollback(const Fields& head, RequestTensors& tensors);
  Answer<ServerResult> load(const Fields& head, RequestTensors& tensors);
  Answer<ServerResult> present(const Fields& head, RequestTensors& tensors);
  Answer<ServerResult> last_store(const Fields& head, RequestTensors& tensors);
  Answer<ServerResult> call(const Fields& head, RequestTensors& tensors);
  Answer<ServerResult> close(const Fields& head, RequestTensors& tensors);

  Opened& opened(const Fields& head);

  Target& target_;
  bool greeted_ = false;
  std::map<std::int64_t, Opened> sessions_;
};

}  // namespace kvcheck::kernels
