// Figures of the benchmarks: time against T, the capacity curve, the share of the roof.
#pragma once

#include <vector>

#include "properties/bench_record.h"
#include "reports/html_writer.h"

namespace kvcheck::reports {

/// Decode time over T on logarithmic axes, one figure for each shape of f32 rows.
std::vector<Element> time_figures(const properties::BenchRecord& record);

/// Time of windowed steps over G = C - W + 1, with the fitted curve and its optimum.
std::vector<Element> capacity_figures(const properties::BenchRecord& record);

/// One bar for each row that has a share of the roof; empty without one.
Element roof_figure(const properties::BenchRecord& record);

}  // namespace kvcheck::reports
