// Line numbers by the library that the compiler brings along, where the build found it.
#include "kernels/simt/symbols.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#if defined(KVCHECK_HAS_BACKTRACE)
#include <backtrace.h>
#endif
#include <cxxabi.h>

namespace kvcheck::kernels::simt {

#if defined(KVCHECK_HAS_BACKTRACE)
namespace {

/// "void kvcheck::(anonymous namespace)::decode_kernel<float>(...)" is "decode_kernel".
std::string bare_name(std::string_view demangled) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  std::string text(demangled);
  for (std::size_t at = text.find(kUnnamed); at != text.npos; at = text.find(kUnnamed)) {
    text.erase(at, kUnnamed.size());
  }
  text.resize(std::min(text.size(), text.find_first_of("<(")));
  const std::size_t before = text.find_last_of(": ");
  return before == text.npos ? text : text.substr(before + 1);
}

void ignore(void*, const char*, int) {}

backtrace_state* lines() {
  static backtrace_state* const state = backtrace_create_state(nullptr, 1, ignore, nullptr);
  return state;
}

void take_name(void* into, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
  if (symbol == nullptr) return;
  int status = 0;
  char* const whole = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  *static_cast<std::string*>(into) = bare_name(whole == nullptr ? symbol : whole);
  std::free(whole);
}

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
  SourcePlace place;
  place.code = code;
  if (code != 0 && lines() != nullptr) {
    backtrace_pcinfo(lines(), code - 1, take_frame, ignore, &place);
  }
  return place;
}

std::string function_name(const void* function) {
  std::string name;
  if (function != nullptr && lines() != nullptr) {
    backtrace_syminfo(lines(), reinterpret_cast<std::uintptr_t>(function), take_name, ignore,
                      &name);
  }
  return name;
}
#else
SourcePlace place_of(std::uintptr_t code) {
  SourcePlace place;
  place.code = code;
  return place;
}

std::string function_name(const void*) { return ""; }
#endif

SourcePlace place_of_function(const void* function) {
  return function == nullptr ? SourcePlace{}
                             : place_of(reinterpret_cast<std::uintptr_t>(function) + 1);
}

}  // namespace kvcheck::kernels::simt
