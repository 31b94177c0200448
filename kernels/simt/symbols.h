// From addresses of code to lines of sources.
#pragma once

#include <cstdint>

#include "kernels/simt/defect.h"

namespace kvcheck::kernels::simt {

/// The line of the call that returns to `code`. Of functions inlined there the innermost outside
/// of the runtime. Where the program carries no line numbers the file is empty.
SourcePlace place_of(std::uintptr_t code);

}  // namespace kvcheck::kernels::simt
