// Rows: what `kvcheck bench` measures, with the ratios that are to be reached.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/timed_step.h"

namespace kvcheck::kernels::bench {

/// Ratios to reach; 0 = none is set.
struct Goal {
  double at_least = 0;
  double aim = 0;
  bool set() const { return at_least > 0; }
};

/// A foreign library to measure against.
struct PeerGoal {
  std::string peer;  ///< "onnxruntime"
  Goal goal;         ///< Of the peer's time over ours.
};

/// The project's own code, run in another way.
struct OwnPeer {
  std::string name;  ///< "own full cache"
  Problem problem;
  OwnOptions options;
  Goal goal;  ///< Of the other time over ours.
};

/// Measured against peers, against itself, or alone where both are empty.
struct Row {
  std::string id;    ///< Stable: "decode.f32.64/8/64.T8192".
  std::string what;  ///< "decode", "prefill", "windowed", "local window", "layout", ...
  Problem problem;
  OwnOptions ours{};
  std::vector<PeerGoal> peers{};
  /// Where a peer is given another element type of the cache than ours; empty = the same.
  std::string peer_element_type{};
  std::optional<OwnPeer> other{};
  Goal roof{};         ///< Share of the roof max(bytes / bandwidth, flops / peak).
  bool quick = false;  ///< Part of `--quick`.
};

/// Every row, in the order of the report. Ids are unique.
std::vector<Row> all_rows();

/// Whether `text` matches `pattern`, in which '*' stands for anything and '?' for one character.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace kvcheck::kernels::bench
