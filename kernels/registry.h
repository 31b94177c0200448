// Registry: the targets by name, whether they can run here, and why not.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// Where and how targets run.
struct RegistryOptions {
  /// Folder with one Python environment per foreign target and release: onnxruntime,
  /// onnxruntime@1.31.1, ... Set by the launcher in KVCHECK_ENVIRONMENTS.
  std::filesystem::path environments;
  /// Folder of the adapters; KVCHECK_ADAPTERS, else as compiled in.
  std::filesystem::path adapters;
  /// The program that serves own targets when it is started with `serve NAME`: kvcheck. Own targets
  /// that could take a whole run with them (cuda: a device fault loses the context of its process)
  /// then run in a process of their own; empty = they run in this one. Set by kvcheck in
  /// KVCHECK_PROGRAM.
  std::filesystem::path program;
  /// Time that a target in a process of its own may take for one request.
  std::chrono::milliseconds time_limit{10000};

  static RegistryOptions from_environment();
};

struct TargetInfo {
  std::string name;     ///< "cpu-naive", "onnxruntime", "onnxruntime@1.31.1".
  std::string version;  ///< Empty when unknown before it starts.
  bool available = false;
  std::string reason;  ///< Why it cannot run here, and the remedy; empty when available.
};

/// Every target that this build knows, own ones first. Starts no process.
std::vector<TargetInfo> list_targets(const RegistryOptions& options);

/// A planted fault: a small mistake in a copy of an own kernel, kept to prove that the suite
/// finds it. Selected as TARGET+NAME, and as TARGET+NAME@row where it is made in single rows of the
/// middle head only.
struct FaultInfo {
  std::string name;       ///< "window_one_wide".
  std::string target;     ///< "cpu-naive", "cpu-flash", "cpu-flash-q8", ...
  std::string kind;       ///< "window edge", "mask origin", "layout", "rollback", ...
  std::string statement;  ///< One sentence: what it does wrong.
  /// Whether TARGET+NAME@row is there: the outputs of queries at positions 3, 8, 13, ... of the
  /// middle query head and rows 3, 8, 13, ... of the middle KV head come from the mistaken kernel,
  /// everything else from the healthy one.
  bool one_row = false;
  std::vector<std::string> reports;  ///< Public reports that it stands for: "C06".
  /// Shortest length of an entry at which it can show.
  std::int64_t from_length = 1;
};
/// One element for each target that has the fault.
std::vector<FaultInfo> list_faults();

/// Why a target could not be made: unknown name (with the nearest known ones) or not available.
struct Unavailable {
  bool unknown = false;
  std::string reason;
};

using MadeTarget = std::variant<std::unique_ptr<Target>, Unavailable>;

/// "cpu-naive", "cpu-naive+FAULT", "cpu-naive+FAULT@row", "onnxruntime", "onnxruntime@VERSION", or
/// "exec:PROGRAM": an
/// executable that speaks the kvcheck protocol. Only a person may write the last form; names that
/// come from files must not be handed in with it.
MadeTarget make_target(std::string_view name, const RegistryOptions& options);

/// An own target, with or without a planted fault, in this process.
MadeTarget make_own_target(std::string_view name);

/// The same in a process of its own, options.program. What it does wrong is a Failure.
/// \pre options.program is not empty
MadeTarget make_served_target(std::string_view name, const RegistryOptions& options);

/// Whether a target of make_target() runs in this process, which then ends with it when it crashes.
bool runs_in_this_process(std::string_view name, const RegistryOptions& options);

}  // namespace kvcheck::kernels
