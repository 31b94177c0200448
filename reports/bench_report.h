// Reports of the benchmarks: from a bench record to a page and to terminal text. Pure functions.
#pragma once

#include <string>

#include "properties/bench_record.h"

namespace kvcheck::reports {

/// One self-contained HTML page without script: figures, ratios, growth, provenance.
std::string bench_page(const properties::BenchRecord& record);

/// The table for a terminal, at most 100 columns; colour only when asked.
std::string bench_text(const properties::BenchRecord& record, bool colour);

}  // namespace kvcheck::reports
