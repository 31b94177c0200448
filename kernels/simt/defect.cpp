// Defects in words.
#include "kernels/simt/defect.h"

#include <fmt/format.h>

namespace kvcheck::kernels::simt {
namespace {

bool known(const SourcePlace& place) { return !place.file.empty() || place.code != 0; }

}  // namespace

std::string_view to_string(DefectKind kind) {
  switch (kind) {
    case DefectKind::data_race:
      return "data race";
    case DefectKind::out_of_bounds:
      return "out of bounds";
    case DefectKind::misaligned:
      return "misaligned access";
    case DefectKind::uninitialised_read:
      return "uninitialised read";
    case DefectKind::input_written:
      return "input written";
    case DefectKind::written_twice:
      return "written twice";
    case DefectKind::not_written:
      return "not written";
    case DefectKind::barrier_divergence:
      return "barrier divergence";
    case DefectKind::warp_mask:
      return "warp mask";
    case DefectKind::copy_in_flight:
      return "copy in flight";
    case DefectKind::matrix_operands:
      return "matrix operands";
    case DefectKind::deadlock:
      return "deadlock";
    case DefectKind::limits:
      return "limits";
  }
  return "defect";
}

std::string to_string(const SourcePlace& place) {
  if (!place.file.empty()) return fmt::format("{}:{}", place.file, place.line);
  return place.code == 0 ? "an unknown place" : fmt::format("address {:#x}", place.code);
}

std::string repository_path(std::string_view path) {
  constexpr std::string_view kRoom = "kernels/", kTests = "tests/";
  std::size_t at = path.rfind(kRoom);
  while (at != std::string_view::npos && at > 0 && path[at - 1] != '/') {
    at = path.rfind(kRoom, at - 1);
  }
  if (at == std::string_view::npos) return std::string(path);
  const bool of_test = path.substr(0, at).ends_with(kTests);
  return std::string(path.substr(of_test ? at - kTests.size() : at));
}

SourcePlace place_of(Site site) { return {repository_path(site.file_name()), site.line(), 0}; }

std::string Defect::sentence() const {
  std::string text(to_string(kind));
  if (kind == DefectKind::not_written) return detail.empty() ? text : text + ": " + detail;
  text += " at " + to_string(place);
  if (known(other)) {
    text += " with ";
    text += other.file == place.file && !other.file.empty() ? fmt::format(":{}", other.line)
                                                            : to_string(other);
  }
  text += fmt::format(", block {}", block);
  if (thread >= 0) {
    text += other_thread < 0 ? fmt::format(", thread {}", thread)
                             : fmt::format(", threads {} and {}", thread, other_thread);
  }
  return detail.empty() ? text : text + ": " + detail;
}

}  // namespace kvcheck::kernels::simt
