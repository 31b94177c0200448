// Line numbers by the library that the compiler brings along, where the build found it.
#include "kernels/simt/symbols.h"

#include <string_view>

#if defined(KVCHECK_HAS_BACKTRACE)
#include <backtrace.h>
#endif

namespace kvcheck::kernels::simt {

#if defined(KVCHECK_HAS_BACKTRACE)
namespace {

void ignore(void*, const char*, int) {}

/// Called for each function that the address lies in, the innermost first.
int take_frame(void* into, std::uintptr_t, const char* file, int line, const char*) {
  if (file == nullptr) return 0;
  SourcePlace& place = *static_cast<SourcePlace*>(into);
  const std::string path = repository_path(file);
  const bool runtime = path.starts_with("kernels/simt/");
  if (!place.file.empty() && runtime) return 0;
  place.file = path;
  place.line = line;
  return runtime ? 0 : 1;
}

}  // namespace

SourcePlace place_of(std::uintptr_t code) {
  static backtrace_state* const state = backtrace_create_state(nullptr, 1, ignore, nullptr);
  SourcePlace place;
  place.code = code;
  if (code != 0 && state != nullptr) backtrace_pcinfo(state, code - 1, take_frame, ignore, &place);
  return place;
}
#else
SourcePlace place_of(std::uintptr_t code) {
  SourcePlace place;
  place.code = code;
  return place;
}
#endif

}  // namespace kvcheck::kernels::simt
