// Where in a source file a call stands. What std::source_location is, for compilers without it.
#pragma once

namespace kvcheck::kernels::simt {

class Site {
 public:
  constexpr Site() = default;
  /// As a default argument: the place of the call whose argument it is.
  static constexpr Site current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    Site site;
    site.file_ = file;
    site.line_ = line;
    return site;
  }
  /// As the compiler was given it; empty where the place is not known.
  constexpr const char* file_name() const { return file_; }
  constexpr int line() const { return line_; }

 private:
  const char* file_ = "";
  int line_ = 0;
};

}  // namespace kvcheck::kernels::simt
