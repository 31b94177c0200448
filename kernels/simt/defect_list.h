// Defects of one launch, each once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/simt/defect.h"

namespace kvcheck::kernels::simt {

class DefectList {
 public:
  explicit DefectList(std::size_t most) : most_(most) {}

  /// Whether a defect of this kind between these places has yet to be added. Cheap, since a wrong
  /// kernel asks it for every word. \param other 0 = no other place
  bool wants(DefectKind kind, std::uintptr_t place, std::uintptr_t other);
  void add(Defect defect) { defects_.push_back(std::move(defect)); }
  /// One whose places are lines already.
  void add_once(Defect defect);

  /// In the order in which they were found, with lines in place of addresses.
  std::vector<Defect> take();

 private:
  struct Seen {
    DefectKind kind;
    std::uintptr_t place, other;
  };
  std::size_t most_;
  std::vector<Seen> seen_;
  std::vector<Defect> defects_;
};

}  // namespace kvcheck::kernels::simt
