#include "kernels/simt/defect_list.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "kernels/simt/symbols.h"

namespace kvcheck::kernels::simt {
namespace {

/// Unrolled loops: so many instructions may stand for one line.
constexpr std::size_t kInstructionsOfLine = 8;

void resolve(SourcePlace& place) {
  if (place.file.empty() && place.code != 0) place = place_of(place.code);
}

bool same_line(const SourcePlace& a, const SourcePlace& b) {
  return a.file.empty() ? b.file.empty() && a.code == b.code : a.file == b.file && a.line == b.line;
}

std::uintptr_t key_of(const SourcePlace& place) {
  if (place.file.empty()) return place.code;
  return std::hash<std::string>()(place.file) + static_cast<std::uintptr_t>(place.line);
}

}  // namespace

void DefectList::add_once(Defect defect) {
  if (wants(defect.kind, key_of(defect.place), key_of(defect.other))) add(std::move(defect));
}

bool DefectList::wants(DefectKind kind, std::uintptr_t place, std::uintptr_t other) {
  if (seen_.size() >= most_ * kInstructionsOfLine) return false;
  for (const Seen& seen : seen_) {
    if (seen.kind == kind && seen.place == place && seen.other == other) return false;
  }
  seen_.push_back({kind, place, other});
  return true;
}

std::vector<Defect> DefectList::take() {
  std::vector<Defect> lines;
  for (Defect& defect : defects_) {
    if (lines.size() == most_) break;
    resolve(defect.place);
    resolve(defect.other);
    const bool known = std::any_of(lines.begin(), lines.end(), [&](const Defect& line) {
      return line.kind == defect.kind && same_line(line.place, defect.place) &&
             same_line(line.other, defect.other);
    });
    if (!known) lines.push_back(std::move(defect));
  }
  defects_.clear();
  seen_.clear();
  return lines;
}

}  // namespace kvcheck::kernels::simt
