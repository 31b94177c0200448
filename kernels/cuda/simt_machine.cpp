// A machine that executes the kernels on this CPU.
#include "kernels/cuda/simt_machine.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace kvcheck::kernels::device {

std::byte* SimtMachine::allocate(std::int64_t bytes, Use use, std::string name) {
  return memory_.allocate(static_cast<std::size_t>(bytes), use, std::move(name));
}

void SimtMachine::write(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

void SimtMachine::read(const std::byte* from, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

std::optional<Failure> SimtMachine::finish() {
  constexpr std::size_t kMostShown = 3;
  const std::vector<simt::Defect> defects = queue_.take_defects();
  if (defects.empty()) return std::nullopt;
  std::string detail;
  for (std::size_t i = 0; i < std::min(defects.size(), kMostShown); ++i) {
    detail += (i > 0 ? "; " : "") + defects[i].sentence();
  }
  if (defects.size() > kMostShown)
    detail += fmt::format("; and {} more", defects.size() - kMostShown);
  return Failure{Failure::Kind::defect, std::move(detail)};
}

}  // namespace kvcheck::kernels::device
