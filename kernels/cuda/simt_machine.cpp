// A machine that executes the kernels on this CPU.
#include "kernels/cuda/simt_machine.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/simt/store_log.h"

namespace kvcheck::kernels::device {
namespace {

/// "; launched were unfused_scores_kernel (kernels/cuda/unfused.cuh:95), ...", each once.
std::string names_of(std::span<const void* const> kernels) {
  std::vector<std::string> names;
  for (const void* kernel : kernels) {
    std::string name = simt::kernel_words(kernel);
    if (name.empty()) name = "a kernel without a name";
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names.empty() ? "; nothing was launched"
                       : fmt::format("; launched were {}", fmt::join(names, ", "));
}

}  // namespace

std::byte* SimtMachine::allocate(std::int64_t bytes, Use use, std::string name) {
  return memory_.allocate(static_cast<std::size_t>(bytes), use, std::move(name));
}

void SimtMachine::write(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  std::memcpy(to, from.data(), from.size());
  memory_.forget_stores(to, from.size());
}

void SimtMachine::read(const std::byte* from, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

std::string SimtMachine::last_store(const std::byte* address) const {
  return records_ ? memory_.last_store_words(address) : "";
}

std::optional<Failure> SimtMachine::finish() {
  constexpr std::size_t kMostShown = 3;
  const std::vector<const void*> launched(queue_.kernels().begin(), queue_.kernels().end());
  std::vector<simt::Defect> defects = queue_.take_defects();
  // Where a launch was given up for a defect, what it did not write is no other one.
  for (std::size_t i = 0; i < expected_.size() && defects.empty(); ++i) {
    const Expected& expected = expected_[i];
    if (auto defect = memory_.check_written(expected.begin, expected.bytes)) {
      defect->detail += names_of(std::span(launched).subspan(expected.launch));
      defects.push_back(std::move(*defect));
    }
  }
  expected_.clear();
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
