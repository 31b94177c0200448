// The watchdog and the crash handler.
#include "properties/watch.h"

#include <condition_variable>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

constexpr std::chrono::milliseconds kLook{100};

/// The scenario of this thread; the handler of a crash runs on the thread that crashed.
thread_local const model::Scenario* thread_scenario = nullptr;
thread_local const char* thread_target = "";

/// Marks a slot as busy while a request goes on.
class Busy {
 public:
  Busy(WatchSlot& slot, const std::atomic<std::uint64_t>& tick) : slot_(slot) {
    slot_.scenario.store(thread_scenario, std::memory_order_relaxed);
    slot_.busy_since.store(tick.load(std::memory_order_relaxed), std::memory_order_release);
    thread_target = slot_.target.c_str();
  }
  ~Busy() { slot_.busy_since.store(0, std::memory_order_release); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  WatchSlot& slot_;
};

class WatchedSession : public kernels::Session {
 public:
  WatchedSession(std::unique_ptr<kernels::Session> session, std::shared_ptr<WatchSlot> slot,
                 const std::atomic<std::uint64_t>& tick)
      : session_(std::move(session)), slot_(std::move(slot)), tick_(tick) {}

  kernels::Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    const Busy busy(*slot_, tick_);
    return session_->step(request);
  }
  kernels::Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    const Busy busy(*slot_, tick_);
    return session_->rollback(tokens);
  }
  kernels::Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    const Busy busy(*slot_, tick_);
    return session_->load(request);
  }
  kernels::Answer<kernels::CacheRows> present() override {
    const Busy busy(*slot_, tick_);
    return session_->present();
  }
  std::string last_store(const kernels::ElementPlace& place) const override {
    const Busy busy(*slot_, tick_);
    return session_->last_store(place);
  }

 private:
  std::unique_ptr<kernels::Session> session_;
  std::shared_ptr<WatchSlot> slot_;
  const std::atomic<std::uint64_t>& tick_;
};

class WatchedTarget : public kernels::Target {
 public:
  WatchedTarget(std::unique_ptr<kernels::Target> target, std::shared_ptr<WatchSlot> slot,
                const std::atomic<std::uint64_t>& tick)
      : target_(std::move(target)), slot_(std::move(slot)), tick_(tick) {}

  const kernels::Capabilities& capabilities() const override { return target_->capabilities(); }

  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override {
    const Busy busy(*slot_, tick_);
    auto answer = target_->open(config);
    if (auto* session = std::get_if<std::unique_ptr<kernels::Session>>(&answer)) {
      return std::make_unique<WatchedSession>(std::move(*session), slot_, tick_);
    }
    return answer;
  }

 private:
  std::unique_ptr<kernels::Target> target_;
  std::shared_ptr<WatchSlot> slot_;
  const std::atomic<std::uint64_t>& tick_;
};

char crash_file[4096];

void write_text(int descriptor, const char* text, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<std::size_t>(written);
  }
}

/// Not all of this may be done in a handler: the heap may be what broke. The alarm ends a handler
/// that does not return, and the case is told by its place in any event.
void on_crash(int signal) {
  std::signal(signal, SIG_DFL);
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(2);
  constexpr char kWords[] = "kvcheck: a target crashed in this process; its scenario is in ";
  write_text(STDERR_FILENO, kWords, sizeof kWords - 1);
  write_text(STDERR_FILENO, crash_file, std::strlen(crash_file));
  write_text(STDERR_FILENO, "\n", 1);
  if (thread_scenario) {
    nlohmann::ordered_json json;
    json["schema"] = 1;
    json["target"] = thread_target;
    json["scenario"] = model::to_json(*thread_scenario);
    const std::string text = json.dump() + "\n";
    const int file = ::open(crash_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file >= 0) write_text(file, text.data(), text.size());
  }
  ::raise(signal);
}

}  // namespace

Watchdog::Watchdog(std::chrono::milliseconds limit, std::function<void(const WatchSlot&)> on_hang)
    : limit_(limit / kLook + 1),
      on_hang_(std::move(on_hang)),
      thread_([this](const std::stop_token& token) {
        std::mutex mutex;
        std::condition_variable_any ended;  // A short run need not wait for the next look.
        std::unique_lock lock(mutex);
        while (!ended.wait_for(lock, token, kLook, [&] { return token.stop_requested(); })) {
          ++tick_;
          look();
        }
      }) {}

Watchdog::~Watchdog() = default;

void Watchdog::look() {
  const std::scoped_lock lock(mutex_);
  for (const auto& slot : slots_) {
    const std::uint64_t since = slot->busy_since.load(std::memory_order_acquire);
    if (since == 0 || tick_ - since <= static_cast<std::uint64_t>(limit_)) continue;
    if (on_hang_) on_hang_(*slot);
    on_hang_ = nullptr;
  }
}

std::unique_ptr<kernels::Target> Watchdog::watch(std::unique_ptr<kernels::Target> target) {
  auto slot = std::make_shared<WatchSlot>();
  slot->target = target->capabilities().name;
  const std::scoped_lock lock(mutex_);
  slots_.push_back(slot);
  return std::make_unique<WatchedTarget>(std::move(target), slot, tick_);
}

void Watchdog::note(const model::Scenario& scenario) { thread_scenario = &scenario; }

void write_scenario_on_crash(const std::filesystem::path& file) {
  const std::string text = file.string();
  if (text.size() >= sizeof crash_file) return;
  std::memcpy(crash_file, text.c_str(), text.size() + 1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    std::signal(signal, on_crash);
  }
}

}  // namespace kvcheck::properties
