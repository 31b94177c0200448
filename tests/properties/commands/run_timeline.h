// The timeline command, run with its output caught.
#pragma once

#include <sstream>
#include <string>

#include "properties/commands/timeline_command.h"

namespace kvcheck::properties {

struct Outcome {
  int code = 0;
  std::string out, err;
};

inline Outcome run(const TimelineOptions& options) {
  std::ostringstream out, err;
  Outcome result;
  result.code = timeline_command(options, out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

}  // namespace kvcheck::properties
