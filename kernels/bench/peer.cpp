// Lines to and from a peer's process.
#include "kernels/bench/peer.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "kernels/process/child_process.h"
#include "kernels/process/sigpipe_block.h"

namespace kvcheck::kernels::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestLine = std::size_t{64} << 20;
constexpr std::size_t kLastWords = 2000;  // Bytes of standard error that a message may show.
constexpr std::string_view kExec = "exec:";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

fs::path worker_of(std::string_view name, const RegistryOptions& options) {
  return options.adapters.parent_path() / "bench" / "peers" / fmt::format("{}_peer.py", name);
}

std::vector<double> numbers(const Json& json, const char* field) {
  std::vector<double> found;
  for (const Json& number : json.value(field, Json::array())) {
    found.push_back(number.is_number() ? number.get<double>() : std::nan(""));
  }
  return found;
}

}  // namespace

/// Standard streams of the process, line by line, each within a time limit.
class Peer::Lines {
 public:
  Lines(const std::string& program, const std::vector<std::string>& arguments)
      : program_(program), child_(program, arguments) {}

  void send(std::string text, Clock::time_point deadline) {
    text += '\n';
    SigpipeBlock block;
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t count = ::write(child_.input(), text.data() + at, text.size() - at);
      if (count > 0) {
        at += static_cast<std::size_t>(count);
      } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
        if (errno == EPIPE) block.raised();
        fail("does not read its requests");
      } else {
        wait(deadline);
      }
    }
  }

  Json receive(Clock::time_point deadline) {
    std::size_t end;
    while ((end = buffer_.find('\n')) == std::string::npos) {
      if (buffer_.size() > kLongestLine) fail("sends a line without end");
      wait(deadline);
    }
    const std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) fail(fmt::format("answers no JSON object: {:.60}", line));
    return json;
  }

  [[noreturn]] void fail(const std::string& what) {
    drain(child_.errors(), errors_);
    std::string text = fmt::format("{} {}", program_, what);
    while (!errors_.empty() && errors_.back() == '\n') errors_.pop_back();
    if (const std::size_t line = errors_.rfind('\n'); !errors_.empty()) {
      text += fmt::format("; its last words: {}",
                          errors_.substr(line == std::string::npos ? 0 : line + 1));
    }
    throw std::runtime_error(text);
  }

 private:
  /// Takes in what is there; waits for it until the deadline.
  void wait(Clock::time_point deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) fail("did not answer in time");
    pollfd ends[] = {{child_.output(), POLLIN, 0}, {child_.errors(), POLLIN, 0}};
    ::poll(ends, child_.errors() < 0 ? 1 : 2, static_cast<int>(std::min<long>(left, 60000)));
    if (!drain(child_.output(), buffer_)) {
      const auto ended = child_.wait(std::chrono::seconds(1));
      fail(fmt::format("ended early ({})", ended.value_or("its output is closed")));
    }
    if (child_.errors() >= 0 && !drain(child_.errors(), errors_)) child_.close_errors();
    if (errors_.size() > kLastWords) errors_.erase(0, errors_.size() - kLastWords);
  }

  /// False at the end of the stream.
  static bool drain(int descriptor, std::string& into) {
    if (descriptor < 0) return false;
    char bytes[1 << 14];
    while (true) {
      const ssize_t count = ::read(descriptor, bytes, sizeof(bytes));
      if (count > 0) {
        into.append(bytes, static_cast<std::size_t>(count));
      } else if (count == 0) {
        return false;
      } else if (errno != EINTR) {
        return errno == EAGAIN;
      }
    }
  }

  std::string program_;
  ChildProcess child_;
  std::string buffer_, errors_;
};

Peer::Peer(const std::string& program, const std::vector<std::string>& arguments,
           std::chrono::milliseconds limit)
    : lines_(std::make_unique<Lines>(program, arguments)), limit_(limit) {
  const Json greeting = lines_->receive(Clock::now() + limit);
  if (!greeting.contains("peer") || !greeting["peer"].is_string() ||
      !greeting.contains("version") || !greeting["version"].is_string()) {
    lines_->fail("does not begin with its name and version");
  }
  name_ = greeting["peer"];
  version_ = greeting["version"];
}

Peer::~Peer() = default;

PeerAnswer Peer::time(const Problem& problem, double seconds, bool want_output) {
  const Json fields = {{"operation", problem.operation},
                       {"query_heads", problem.query_heads},
                       {"kv_heads", problem.kv_heads},
                       {"head_size", problem.head_size},
                       {"element_type", problem.element_type},
                       {"T", problem.length},
                       {"window", problem.window},
                       {"capacity", problem.capacity},
                       {"seed", problem.seed}};
  const auto deadline =
      Clock::now() + limit_ + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  lines_->send(Json({{"case", fields}, {"seconds", seconds}, {"output", want_output}}).dump(),
               deadline);
  const Json json = lines_->receive(deadline);
  PeerAnswer answer;
  if (json.contains("refused")) {
    answer.refused = json["refused"].is_string() ? json["refused"].get<std::string>() : "no reason";
    return answer;
  }
  answer.times = numbers(json, "times");
  answer.output = numbers(json, "output");
  if (answer.times.empty() ||
      !std::all_of(answer.times.begin(), answer.times.end(),
                   [](double time) { return std::isfinite(time) && time > 0; })) {
    lines_->fail("answers no times above 0");
  }
  const auto elements = static_cast<std::size_t>(problem.query_heads * problem.head_size);
  if (want_output && answer.output.size() != elements) {
    lines_->fail(fmt::format("answers {} outputs instead of {}", answer.output.size(), elements));
  }
  return answer;
}

const std::vector<std::string>& peer_names() {
  static const std::vector<std::string> names = {"onnxruntime", "openvino", "jax"};
  return names;
}

std::string peer_problem(std::string_view name, const RegistryOptions& options) {
  if (name.substr(0, kExec.size()) == kExec) return "";
  const std::string remedy = fmt::format("./kvcheck bench --peer {} sets it up", name);
  const fs::path environment = options.environments / name;
  if (options.environments.empty()) {
    return fmt::format("KVCHECK_ENVIRONMENTS names no folder of Python environments; {}", remedy);
  }
  if (!is_there(environment / "ready") || !is_there(environment / "bin" / "python")) {
    const std::string failed = first_line(options.environments / fmt::format("{}.failed", name));
    if (failed.empty()) return fmt::format("its Python environment is not there; {}", remedy);
    return fmt::format("its Python environment could not be made: {}; {}", failed, remedy);
  }
  if (!is_there(worker_of(name, options))) {
    return fmt::format("{} is missing; let KVCHECK_ADAPTERS name the folder kernels/adapters",
                       worker_of(name, options).string());
  }
  return "";
}

std::unique_ptr<Peer> start_peer(std::string_view name, const RegistryOptions& options) {
  if (const std::string problem = peer_problem(name, options); !problem.empty()) {
    throw std::runtime_error(problem);
  }
  if (name.substr(0, kExec.size()) == kExec) {
    return std::make_unique<Peer>(std::string(name.substr(kExec.size())),
                                  std::vector<std::string>{});
  }
  return std::make_unique<Peer>((options.environments / name / "bin" / "python").string(),
                                std::vector<std::string>{"-B", worker_of(name, options).string()});
}

}  // namespace kvcheck::kernels::bench
