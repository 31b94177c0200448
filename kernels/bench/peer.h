// Peer: a foreign library that is timed in a process of its own, over JSON lines.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/problem.h"
#include "kernels/registry.h"

namespace kvcheck::kernels::bench {

/// What a peer says to one request.
struct PeerAnswer {
  std::vector<double> times;   ///< Nanoseconds per step, one for each timed run.
  std::vector<double> output;  ///< [query heads][head size] of the last query, where asked for.
  std::string refused;         ///< Why the peer has no such problem; else empty.
};

/// The process is there as long as the object; between requests it waits without using a core.
class Peer {
 public:
  /// `limit`: time for one answer beyond the seconds that it is to measure.
  /// \throws std::runtime_error when it cannot be started or does not speak the protocol
  Peer(const std::string& program, const std::vector<std::string>& arguments,
       std::chrono::milliseconds limit = std::chrono::minutes(3));
  ~Peer();

  const std::string& name() const { return name_; }        ///< "onnxruntime"
  const std::string& version() const { return version_; }  ///< "1.32.0"

  /// \throws std::runtime_error when the process broke; it is dead from then on
  PeerAnswer time(const Problem& problem, double seconds, bool want_output);

 private:
  class Lines;
  std::unique_ptr<Lines> lines_;
  std::chrono::milliseconds limit_;
  std::string name_, version_;
};

/// The peers of the project, the one that sets most targets first.
const std::vector<std::string>& peer_names();

/// Why `name` cannot be started here, and the remedy; empty when it can. "exec:PROGRAM" is a
/// program that speaks the protocol.
std::string peer_problem(std::string_view name, const RegistryOptions& options);

/// \throws std::runtime_error with peer_problem(), or as the constructor
std::unique_ptr<Peer> start_peer(std::string_view name, const RegistryOptions& options);

}  // namespace kvcheck::kernels::bench
