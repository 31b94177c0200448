// A run of the benchmarks: rows in turn, each checked once and measured against its peers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/bench/peer.h"
#include "kernels/bench/rows.h"
#include "kernels/registry.h"
#include "properties/bench_record.h"

namespace kvcheck::properties {

struct BenchSettings {
  std::string target;              ///< Own target that is measured.
  std::vector<std::string> peers;  ///< Names of peers; empty = none.
  double row_seconds = 2;          ///< Time for one row and peer.
  std::function<bool()> stop{};    ///< True ends the row at hand early.
};

class BenchRun {
 public:
  BenchRun(BenchSettings settings, kernels::RegistryOptions options);
  ~BenchRun();

  /// Name and version of the own target. \throws std::runtime_error when it cannot be had
  std::string target_text();

  /// One record row for each peer of `row`, or one where it is measured alone.
  std::vector<BenchRow> measure(const kernels::bench::Row& row);

 private:
  struct PeerSlot {
    std::unique_ptr<kernels::bench::Peer> peer;
    std::string problem;  // Why it cannot be started.
  };
  using Step = kernels::bench::TimedStep;

  kernels::Target& target(const std::string& name);
  kernels::Target& own_target(const kernels::bench::Problem& problem,
                              const kernels::bench::OwnOptions& options);
  std::unique_ptr<Step> own_step(const kernels::bench::Problem& problem,
                                 const kernels::bench::OwnOptions& options);
  bool stopped() const { return settings_.stop && settings_.stop(); }
  PeerSlot& slot(const std::string& name);
  void against_peer(const kernels::bench::Row& row, const std::string& name, Step& ours,
                    BenchRow& found);
  void against_own(const kernels::bench::Row& row, Step& ours, BenchRow& found);
  void alone(const kernels::bench::Row& row, Step& ours, BenchRow& found);

  BenchSettings settings_;
  kernels::RegistryOptions options_;
  std::map<std::string, std::unique_ptr<kernels::Target>> targets_;
  std::map<std::string, PeerSlot> peers_;
};

}  // namespace kvcheck::properties
