// From addresses of code to lines of sources.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/simt/defect.h"

namespace kvcheck::kernels::simt {

/// The line of the call that returns to `code`. Of functions inlined there the innermost outside
/// of the runtime. Where the program carries no line numbers the file is empty.
SourcePlace place_of(std::uintptr_t code);

/// The name of the function whose code begins there, without its namespaces, template arguments and
/// parameters: "decode_kernel". Empty where the program carries no names.
std::string function_name(const void* function);
/// The line where that function begins.
SourcePlace place_of_function(const void* function);

}  // namespace kvcheck::kernels::simt
