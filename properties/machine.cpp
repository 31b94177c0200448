// Processor and load, from /proc.
#include "properties/machine.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <thread>

#include <fmt/format.h>

namespace kvcheck::properties {

std::string machine_text() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(in, line)) {
    if (line.rfind("model name", 0) == 0) {
      model = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

double load_average() {
  std::ifstream in("/proc/loadavg");
  double load = std::numeric_limits<double>::quiet_NaN();
  in >> load;
  return in ? load : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace kvcheck::properties
