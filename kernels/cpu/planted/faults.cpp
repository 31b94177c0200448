// The list of planted faults, by target and name.
#include "kernels/cpu/planted/faults.h"

#include <sstream>

#include "kernels/cpu/planted/fault_list.h"

namespace kvcheck::kernels {
namespace {

struct NamedKernel {
  Kernel bit;
  const char* name;
};
constexpr NamedKernel kKernels[] = {{kNaive, "cpu-naive"},      {kNaiveQ8, "cpu-naive-q8"},
                                    {kNaiveQ4, "cpu-naive-q4"}, {kFlash, "cpu-flash"},
                                    {kFlashQ8, "cpu-flash-q8"}, {kFlashQ4, "cpu-flash-q4"}};

template <class Function>
void for_each_fault(const Function& function) {
  for (const auto list :
       {attention_fault_list(), cache_fault_list(), input_fault_list(), flash_fault_list()}) {
    for (const PlantedFault& planted : list) {
      for (const NamedKernel& kernel : kKernels) {
        if ((planted.kernels & kernel.bit) != 0) function(planted, kernel.name);
      }
    }
  }
}

std::vector<std::string> words_of(const char* text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

const std::vector<FaultInfo>& planted_faults() {
  static const std::vector<FaultInfo> faults = [] {
    std::vector<FaultInfo> list;
    for_each_fault([&](const PlantedFault& planted, const char* target) {
      list.push_back({planted.name, target, planted.kind, planted.statement, planted.one_row,
                      words_of(planted.reports), planted.from_length});
    });
    return list;
  }();
  return faults;
}

std::vector<FaultInfo> faults_of(std::string_view target) {
  std::vector<FaultInfo> list;
  for (const FaultInfo& fault : planted_faults()) {
    if (fault.target == target) list.push_back(fault);
  }
  return list;
}

std::optional<Fault> fault_of(std::string_view target, std::string_view name) {
  std::optional<Fault> found;
  for_each_fault([&](const PlantedFault& planted, const char* kernel) {
    if (planted.name == name && kernel == target) found = planted.fault;
  });
  return found;
}

}  // namespace kvcheck::kernels
