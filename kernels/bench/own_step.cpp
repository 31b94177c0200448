// Which own code computes a problem, and with which switches.
#include <string>

#include <fmt/format.h>
#include <sys/prctl.h>

#include "kernels/bench/timed_step.h"

namespace kvcheck::kernels::bench {
namespace {

/// Keeps huge pages from this process while it is there. What is touched meanwhile stays on small
/// pages, but for what the system may put together later in the background.
class SmallPages {
 public:
  explicit SmallPages(bool wanted) : wanted_(wanted) {
    if (wanted_ && ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
      throw NotTimed("this system cannot keep huge pages from a process");
    }
  }
  ~SmallPages() {
    if (wanted_) ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  }
  SmallPages(const SmallPages&) = delete;
  SmallPages& operator=(const SmallPages&) = delete;

 private:
  bool wanted_;
};

}  // namespace

std::string own_target_name(const std::string& target, const Problem& problem) {
  const bool plain = target == "cpu-flash" || target == "cpu-naive";
  if (!plain || !problem.quantised()) return target;
  return target + (problem.element_type == "int8" ? "-q8" : "-q4");
}

std::unique_ptr<TimedStep> make_own_step(Target& target, const Problem& problem,
                                         const OwnOptions& options) {
  const Capabilities& can = target.capabilities();
  const bool flash = can.name.starts_with("cpu-flash");
  if (!options.share_group && !flash) {
    throw NotTimed(fmt::format("{} always shares what it loads among a group's heads", can.name));
  }
  if (problem.quantised() && !can.has("cache_" + problem.element_type)) {
    throw NotTimed(fmt::format("{} has no {} cache", can.name, problem.element_type));
  }
  const SmallPages small_pages(!options.huge_pages);
  if (flash) return make_flash_step(can, problem, options);
  return make_session_step(target, problem, options);
}

}  // namespace kvcheck::kernels::bench
