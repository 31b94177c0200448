// Names of targets, where their parts lie on disk, and whether they can run.
#include "kernels/registry.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "kernels/cpu/flash/cpu_flash.h"
#include "kernels/cpu/naive/cpu_naive.h"
#include "kernels/cpu/planted/faults.h"
#include "kernels/cpu/planted/planted_target.h"
#include "kernels/cuda/cuda_gpu.h"
#include "kernels/cuda/cuda_simt.h"
#include "kernels/process/process_target.h"

namespace kvcheck::kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCpuNaive = "cpu-naive";
constexpr std::string_view kOnnxRuntime = "onnxruntime";
constexpr std::string_view kExec = "exec:";

/// A target that is compiled in.
struct OwnTarget {
  std::string_view name;
  std::unique_ptr<Target> (*make)();
  /// Why it cannot run here, to follow its name; null = it always can.
  std::string (*problem)() = nullptr;
  bool apart = false;  ///< Runs in a process of its own where there is a program for it.

  std::string reason() const {
    const std::string why = problem == nullptr ? "" : problem();
    return why.empty() ? "" : fmt::format("{} {}", name, why);
  }
};

constexpr OwnTarget kOwnTargets[] = {
    {kCpuNaive, [] { return make_cpu_naive(); }},
    {"cpu-naive-q8", [] { return make_cpu_naive_quantised("int8"); }},
    {"cpu-naive-q4", [] { return make_cpu_naive_quantised("int4"); }},
    {"cpu-flash", [] { return make_cpu_flash(); }},
    {"cpu-flash-dot", [] { return make_cpu_flash_dot(); }, cpu_flash_dot_problem},
    {"cpu-flash-q8", [] { return make_cpu_flash_quantised("int8"); }},
    {"cpu-flash-q4", [] { return make_cpu_flash_quantised("int4"); }},
    {"cuda-simt", [] { return make_cuda_simt(); }, cuda_simt_problem},
    {"cuda-simt-q8", [] { return make_cuda_simt_quantised(); }, cuda_simt_problem},
    {"cuda", [] { return make_cuda(false); }, cuda_problem, true},
    {"cuda-q8", [] { return make_cuda(true); }, cuda_problem, true},
};

/// The own target of the name, with whatever fault; null where there is none.
const OwnTarget* find_own(std::string_view name) {
  const std::string_view kernel = name.substr(0, name.find('+'));
  for (const OwnTarget& own : kOwnTargets) {
    if (kernel == own.name) return &own;
  }
  return nullptr;
}

/// The numbers of "1.31.1"; empty unless it is two to four of them with single dots between.
/// Nothing else may follow the @ of a name: what it selects is a folder.
std::vector<int> release_numbers(std::string_view release) {
  std::vector<int> numbers;
  std::string digits;
  for (std::size_t i = 0; i <= release.size(); ++i) {
    if (i < release.size() && release[i] >= '0' && release[i] <= '9' && digits.size() < 6) {
      digits += release[i];
    } else if (!digits.empty() && (i == release.size() || release[i] == '.')) {
      numbers.push_back(std::stoi(digits));
      digits.clear();
    } else {
      return {};
    }
  }
  return numbers.size() >= 2 && numbers.size() <= 4 ? numbers : std::vector<int>{};
}

/// The release of "onnxruntime@1.31.1"; nullopt when the name is of another form.
std::optional<std::string_view> release_of(std::string_view name) {
  const auto at = kOnnxRuntime.size();
  if (name.substr(0, at) != kOnnxRuntime || name.size() <= at || name[at] != '@') {
    return std::nullopt;
  }
  return name.substr(at + 1);
}

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string pinned_release(const fs::path& environment) {
  constexpr std::string_view kPin = "onnxruntime==";
  std::ifstream stream(environment / "requirements.txt");
  for (std::string line; std::getline(stream, line);) {
    if (line.compare(0, kPin.size(), kPin) == 0) return line.substr(kPin.size());
  }
  return "";
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Why the environment `name` cannot be used, and the remedy; empty when it can.
std::string environment_problem(std::string_view name, const RegistryOptions& options) {
  const std::string remedy = fmt::format("./kvcheck run --target {} sets it up", name);
  if (options.environments.empty()) {
    return fmt::format("KVCHECK_ENVIRONMENTS names no folder of Python environments; {}", remedy);
  }
  const fs::path folder = options.environments / name;
  if (is_there(folder / "ready") && is_there(folder / "bin" / "python")) {
    if (is_there(options.adapters / "onnxruntime_adapter.py")) return "";
    return fmt::format(
        "onnxruntime_adapter.py is not in the folder of the adapters; let KVCHECK_ADAPTERS name "
        "the folder kernels/adapters");
  }
  const std::string failed = first_line(options.environments / fmt::format("{}.failed", name));
  if (!failed.empty()) {
    return fmt::format("its Python environment could not be made: {}; {}", failed, remedy);
  }
  return fmt::format("its Python environment is not there; {}", remedy);
}

/// onnxruntime and every release that has an environment or a failed attempt at one.
std::vector<std::string> foreign_names(const RegistryOptions& options) {
  std::vector<std::pair<std::vector<int>, std::string>> releases;
  std::error_code ignored;
  for (fs::directory_iterator entry(options.environments, ignored), end; entry != end;
       entry.increment(ignored)) {
    std::string name = entry->path().filename().string();
    constexpr std::string_view kFailed = ".failed";
    if (name.ends_with(kFailed)) name.erase(name.size() - kFailed.size());
    const auto release = release_of(name);
    if (!release) continue;
    auto numbers = release_numbers(*release);
    if (!numbers.empty()) releases.emplace_back(std::move(numbers), std::move(name));
  }
  std::sort(releases.begin(), releases.end());
  releases.erase(std::unique(releases.begin(), releases.end()), releases.end());
  std::vector<std::string> names{std::string(kOnnxRuntime)};
  for (auto& [numbers, name] : releases) names.push_back(std::move(name));
  return names;
}

/// Insertions, deletions, replacements and swaps of neighbours from one to the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

/// "; did you mean a or b?" with what is near to `name`, at most three; else empty.
std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const std::size_t limit = std::max<std::size_t>(2, name.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> near;
  // A name that someone typed is short; anything else is near to nothing.
  if (name.size() > 100) return "";
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  if (near.size() > 3) near.resize(3);
  std::vector<std::string> names;
  for (auto& [distance, candidate] : near) names.push_back(std::move(candidate));
  return names.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(names, " or "));
}

/// \param known names beside those of the own targets
Unavailable unknown_target(std::string_view name, std::vector<std::string> known) {
  for (const OwnTarget& own : kOwnTargets) known.emplace_back(own.name);
  return {true, fmt::format("no target is called '{}'{}; kvcheck list targets shows all", name,
                            suggestion(name, known))};
}

/// \param name the part before the plus, \param fault the part behind it
MadeTarget make_faulty(std::string_view name, std::string_view fault) {
  constexpr std::string_view kOneRow = "@row";
  const bool one_row = fault.ends_with(kOneRow);
  if (one_row) fault.remove_suffix(kOneRow.size());
  if (auto target = make_planted(name, fault, one_row)) return target;
  if (!one_row) {
    if (auto target = make_cuda_simt_planted(name, fault)) return target;
  }
  std::vector<std::string> known;
  for (const FaultInfo& info : list_faults()) {
    if (info.target != name) continue;
    known.push_back(info.name);
    if (info.name == fault) {
      return Unavailable{
          true, fmt::format("{} has '{}' in all rows only; leave out {}", name, fault, kOneRow)};
    }
  }
  return Unavailable{true, fmt::format("{} has no planted fault '{}'{}; kvcheck list faults shows "
                                       "all",
                                       name, fault, suggestion(fault, known))};
}

/// \param unavailable says why a target does not start, given the reason
template <class Says>
MadeTarget started(ProcessOptions process, const RegistryOptions& options, Says&& unavailable) {
  process.time_limit = options.time_limit;
  auto made = make_process_target(std::move(process));
  if (auto* target = std::get_if<std::unique_ptr<Target>>(&made)) return std::move(*target);
  return Unavailable{false, unavailable(std::get<Failure>(made).detail)};
}

MadeTarget make_foreign(std::string_view name, const RegistryOptions& options) {
  if (std::string problem = environment_problem(name, options); !problem.empty()) {
    return Unavailable{false, fmt::format("{} cannot run here: {}", name, problem)};
  }
  ProcessOptions process;
  process.label = name;
  process.program = fs::absolute(options.environments / name / "bin" / "python").string();
  // -B: the folder of the adapters may be read by several at once, or not be ours to write to.
  process.arguments = {"-B", fs::absolute(options.adapters / "onnxruntime_adapter.py").string()};
  return started(std::move(process), options, [&](const std::string& why) {
    return fmt::format(
        "{} does not start: {}; remove its environment, and ./kvcheck run --target {} sets it up "
        "afresh",
        name, why, name);
  });
}

MadeTarget make_exec(std::string_view path, const RegistryOptions& options) {
  const fs::path program(path);
  std::error_code ignored;
  if (path.empty() || !fs::is_regular_file(program, ignored)) {
    return Unavailable{true, fmt::format("{}{}: there is no such file; write the path of a program "
                                         "that speaks the kvcheck protocol",
                                         kExec, path)};
  }
  if (::access(program.c_str(), X_OK) != 0) {
    return Unavailable{false, fmt::format("{}{} may not be executed; chmod +x makes it so, and a "
                                          "script names its interpreter in its first line",
                                          kExec, path)};
  }
  ProcessOptions process;
  process.label = program.filename().string();
  process.program = fs::absolute(program).string();
  return started(std::move(process), options, [&](const std::string& why) {
    return fmt::format(
        "{}{} does not start: {}; kernels/adapters/README.md describes the handshake", kExec, path,
        why);
  });
}

}  // namespace

RegistryOptions RegistryOptions::from_environment() {
  RegistryOptions options;
  if (const char* environments = std::getenv("KVCHECK_ENVIRONMENTS")) {
    options.environments = environments;
  }
  const char* adapters = std::getenv("KVCHECK_ADAPTERS");
  options.adapters = adapters != nullptr && *adapters != '\0' ? adapters : KVCHECK_DEFAULT_ADAPTERS;
  if (const char* program = std::getenv("KVCHECK_PROGRAM")) options.program = program;
  return options;
}

std::vector<TargetInfo> list_targets(const RegistryOptions& options) {
  std::vector<TargetInfo> targets;
  for (const OwnTarget& own : kOwnTargets) {
    const std::string reason = own.reason();
    targets.push_back({std::string(own.name),
                       reason.empty() ? own.make()->capabilities().version : KVCHECK_VERSION,
                       reason.empty(), reason});
  }
  for (const std::string& name : foreign_names(options)) {
    TargetInfo info;
    info.name = name;
    info.reason = environment_problem(name, options);
    info.available = info.reason.empty();
    const auto release = release_of(name);
    info.version = release ? std::string(*release) : pinned_release(options.environments / name);
    targets.push_back(std::move(info));
  }
  return targets;
}

std::vector<FaultInfo> list_faults() {
  std::vector<FaultInfo> faults = planted_faults();
  for (FaultInfo& fault : cuda_simt_faults()) faults.push_back(std::move(fault));
  return faults;
}

MadeTarget make_target(std::string_view name, const RegistryOptions& options) {
  if (find_own(name) != nullptr) {
    return runs_in_this_process(name, options) ? make_own_target(name)
                                               : make_served_target(name, options);
  }
  if (name.substr(0, kExec.size()) == kExec) return make_exec(name.substr(kExec.size()), options);
  if (name == kOnnxRuntime) return make_foreign(name, options);
  if (const auto release = release_of(name)) {
    if (!release_numbers(*release).empty()) return make_foreign(name, options);
    return Unavailable{
        true, fmt::format("'{}' names no release; write it like onnxruntime@1.32.0", name)};
  }
  return unknown_target(name, foreign_names(options));
}

MadeTarget make_own_target(std::string_view name) {
  const OwnTarget* own = find_own(name);
  if (own == nullptr) return unknown_target(name, {});
  if (const auto plus = name.find('+'); plus != name.npos) {
    return make_faulty(own->name, name.substr(plus + 1));
  }
  if (std::string reason = own->reason(); !reason.empty()) return Unavailable{false, reason};
  return own->make();
}

MadeTarget make_served_target(std::string_view name, const RegistryOptions& options) {
  const OwnTarget* own = find_own(name);
  if (own == nullptr) return unknown_target(name, {});
  if (std::string reason = own->reason(); !reason.empty()) return Unavailable{false, reason};
  ProcessOptions process;
  process.label = name;
  process.program = options.program.string();
  process.arguments = {"serve", std::string(name)};
  return started(std::move(process), options, [&](const std::string& why) {
    return fmt::format("{} does not start in a process of its own: {}; {} serve {} must run", name,
                       why, options.program.string(), name);
  });
}

bool runs_in_this_process(std::string_view name, const RegistryOptions& options) {
  const OwnTarget* own = find_own(name);
  if (own == nullptr) return false;
  return !own->apart || options.program.empty() || name != own->name;
}

}  // namespace kvcheck::kernels
