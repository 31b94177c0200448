// A bench record that shows every kind of row, with figures written by hand.
#pragma once

#include "properties/bench_record.h"

namespace kvcheck::reports::samples {

properties::BenchRecord bench_record();

}  // namespace kvcheck::reports::samples
