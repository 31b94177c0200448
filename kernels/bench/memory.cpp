// Resident memory and its peak, from /proc.
#include "kernels/bench/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace kvcheck::kernels::bench {
namespace {

/// A field of /proc/self/status in bytes; -1 = not there.
std::int64_t status_bytes(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return -1;
}

/// Sets the peak to what is resident now.
bool reset_peak() {
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;
  return static_cast<bool>(out);
}

}  // namespace

std::int64_t peak_growth(const std::function<void()>& work) {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
  const bool told = reset_peak();
  const std::int64_t before = status_bytes("VmRSS");
  work();
  const std::int64_t peak = status_bytes("VmHWM");
  return told && before >= 0 ? std::max<std::int64_t>(0, peak - before) : 0;
}

}  // namespace kvcheck::kernels::bench
